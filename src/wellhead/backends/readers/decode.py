"""Bytes become text, once and exactly: the text that comes out is the text that is stored.

Order: a byte order mark, UTF-16 without one where it is evident, UTF-8, the encoding the file declares, and only
then a guess. Line ends stay as they are. U+0000 and halves of surrogate pairs become U+FFFD, one for one, so that
nothing shifts.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import msgspec

from wellhead.backends.readers.reading import FileSkipped
from wellhead.errors import DocumentError

__all__ = ["Decoded", "clean", "decode", "is_binary"]

_SAMPLE = 1 << 16  # bytes looked at for binary content and for a guess

# The longest first: the mark of UTF-32 LE begins with that of UTF-16 LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_MAGIC = (
    *(b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*", b"\x00\x00\x01\x00"),
    *(
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"\x1f\x8b",
        b"BZh91AY",
        b"\xfd7zXZ\x00",
        b"7z\xbc\xaf\x27\x1c",
        b"\x28\xb5\x2f\xfd",
    ),
    *(b"Rar!\x1a\x07", b"\x7fELF", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\x00asm", b"SQLite format 3\x00"),
    *(b"\xd0\xcf\x11\xe0", b"wOFF\x00", b"wOF2\x00", b"OTTO\x00", b"\x00\x01\x00\x00", b"OggS\x00"),
)
_CONTROLS = bytes({*range(0x20), 0x7F} - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B})

# Encodings that real files are found in. What a file declares is believed only if it is one of these
# (or UTF): codecs such as `unicode_escape` or `utf_7` would let a file write its own characters.
_LEGACY = (
    *("cp1252", "cp932", "euc_jp", "gb18030", "big5", "cp949", "koi8_r", "koi8_u", "cp1251", "iso8859_5"),
    *("cp1250", "iso8859_2", "cp1253", "iso8859_7", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
)
# As browsers read them: a label means the larger set that its users write.
_WIDER = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "iso8859-11": "cp874",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
_LABELS = frozenset({codecs.lookup(name).name for name in _LEGACY} | {"utf-8", "big5hkscs"})
_LABELS |= {"iso2022_jp", "iso8859-15", "iso8859-8", "iso8859-6", "mac-roman"}

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """Text, the encoding it was read with, and how many characters had to be replaced by U+FFFD."""

    text: str
    encoding: str
    replaced: int = 0

    @property
    def metadata(self) -> dict[str, str]:
        """{"encoding": ...} where a reader of the index should know of it: not for sound Unicode."""
        if self.replaced:
            return {"encoding": f"{self.encoding}, {self.replaced} invalid replaced"}
        return {} if self.encoding.startswith("utf-") else {"encoding": self.encoding}


def clean(text: str) -> str:
    """`text` with what cannot be stored replaced by U+FFFD, one for one."""
    return _UNSTORABLE.sub("\ufffd", text)


def is_binary(data: bytes) -> bool:
    """True for a known magic number, or for more control characters than text has (over 2 % of the first 64 KiB).

    UTF-16 and UTF-32 are text.
    """
    if _marked(data) or _evident_utf16(data):
        return False
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if data.startswith(_MAGIC) or controls > max(1, len(sample) // 50) or 0 < controls == len(sample):
        return True
    return b"\x00" in data and not _is_utf8(data)


def decode(data: bytes, *, declared: str | None = None, where: str = "") -> Decoded:
    """Decode a whole file.

    Args:
        data: its bytes.
        declared: the encoding that the file names itself; unknown names are ignored.
        where: the file, for error messages.

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits.
    """
    if is_binary(data):
        raise FileSkipped("binary", where=where)
    mark = _marked(data)
    if mark:
        return _replacing(data[len(mark[0]) :], mark[1])
    wide = _evident_utf16(data)
    if wide:
        return _replacing(data, wide)
    for encoding in _candidates(data, declared):
        try:
            return Decoded(text=clean(data.decode(encoding)), encoding=encoding)
        except UnicodeDecodeError:
            continue
    return _damaged(data, where)


def _candidates(data: bytes, declared: str | None) -> Iterator[str]:
    if b"\x1b$B" in data or b"\x1b$@" in data:  # ASCII bytes throughout, which UTF-8 would take as they are
        yield "iso2022_jp"
    yield "utf-8"
    label = _known_label(declared)
    if label:
        yield label
    if not _mostly_utf8(data):
        yield from _guesses(data)


def _damaged(data: bytes, where: str) -> Decoded:
    if _mostly_utf8(data):
        return _replacing(data, "utf-8")
    raise DocumentError(
        "its characters cannot be read",
        where=where,
        why="the bytes fit no known encoding",
        fix="save the file as UTF-8",
    )


def _marked(data: bytes) -> tuple[bytes, str] | None:
    return next((mark for mark in _MARKS if data.startswith(mark[0])), None)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _replacing(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    replaced = text.count("\ufffd") - data.count("\ufffd".encode(encoding))
    return Decoded(text=clean(text), encoding=encoding, replaced=max(0, replaced))


def _evident_utf16(data: bytes) -> str | None:
    """UTF-16 without a mark: zero bytes on one side of every second pair or more, next to none on the other."""
    sample = data[: _SAMPLE // 2 * 2]
    pairs = len(sample) // 2
    if pairs < 2 or len(data) % 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros * 2 > pairs and others * 50 <= pairs and _reads_as_text(sample, encoding):
            return encoding
    return None


def _reads_as_text(sample: bytes, encoding: str) -> bool:
    text = sample.decode(encoding, "replace")
    strange = sum((character < " " and not character.isspace()) or character == "\ufffd" for character in text)
    return strange * 50 <= len(text)


def _mostly_utf8(data: bytes) -> bool:
    """UTF-8 with a few damaged bytes: at least four sound characters beyond ASCII for each replaced one."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = len(text) - len(text.encode("ascii", "ignore")) - broken
    return sound >= 4 * broken > 0


def _known_label(declared: str | None) -> str | None:
    try:
        name = codecs.lookup((declared or "").strip()).name
    except (LookupError, ValueError):
        return None
    name = _WIDER.get(name, name)
    return name if name in _LABELS else None


def _guesses(data: bytes) -> list[str]:
    """Encodings in order of likelihood, judged on the lines that have bytes beyond ASCII.

    Where those bytes stand alone between ASCII letters, the text is in a Latin script: then Windows-1252, by far the
    commonest, goes before look-alikes that the detector cannot tell apart on few letters.
    """
    from charset_normalizer import from_bytes

    sample = b"\n".join(line for line in data.split(b"\n") if not line.isascii())[:_SAMPLE]
    sample = sample.rsplit(b"\n", 1)[0]  # never half a character at the end
    found = from_bytes(sample, cp_isolation=list(_LEGACY), enable_fallback=False)
    names = [name for match in found for name in (match.encoding, *match.could_be_from_charset) if name in _LEGACY]
    runs = _HIGH_RUN.findall(sample)
    if "cp1252" in names and sum(len(run) == 1 for run in runs) * 2 > len(runs):
        names.insert(0, "cp1252")
    return [*dict.fromkeys(names), "cp1252"]
