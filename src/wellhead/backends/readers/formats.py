"""Which reader takes which file: one table, by the name's suffix, then by content."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from wellhead.backends.readers.decode import is_binary
from wellhead.backends.readers.reading import FileSkipped, Reading
from wellhead.errors import DocumentError, WellheadError

__all__ = ["check_name", "has_binary_name", "read_bytes"]

Reader: TypeAlias = Callable[[bytes, str], Reading]

# Module and function, imported when the first such file is read.
_MARKDOWN = ("markdown", "read_markdown")
_HTML = ("html", "read_html")
_PLAIN = ("plain", "read_plain")
_READERS = {
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"), _MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml", ".shtml"), _HTML),
    **dict.fromkeys((".csv", ".tsv", ".tab"), ("tables", "read_csv")),
    **dict.fromkeys((".json", ".geojson", ".webmanifest"), ("json_text", "read_json")),
    **dict.fromkeys((".jsonl", ".ndjson"), ("json_text", "read_json_lines")),
    ".ipynb": ("notebook", "read_notebook"),
}
# Documents that hold text which no reader takes yet: refused, so that nobody believes them indexed.
_UNREAD_SUFFIXES = (
    ".pdf .doc .docx .dotx .odt .ott .rtf .ppt .pptx .pps .ppsx .odp .xls .xlsx .xlsm .xlsb .ods .epub .mobi .azw3 "
    ".djvu .eml .mbox .pages .numbers .one .vsdx .xps .ps .chm"
)
_UNREAD_MAGIC = {b"%PDF-": ".pdf", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "older Office formats"}
# Known to hold no text: skipped by the walking rules without being opened.
_BINARY_SUFFIXES = (
    ".png .jpg .jpeg .jpe .gif .bmp .ico .icns .tif .tiff .webp .avif .heic .heif .psd .cr2 .xcf .exr "
    ".mp3 .mp4 .m4a .m4v .wav .flac .ogg .oga .ogv .opus .aac .avi .mov .mkv .webm .wmv .flv .mid "
    ".ttf .otf .woff .woff2 .eot .zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .lz4 .jar .war .whl .egg .deb .rpm .apk "
    ".dmg .iso .exe .dll .so .dylib .class .pyc .pyo .pyd .wasm .sqlite .sqlite3 "
    ".parquet .feather .arrow .npy .npz .pkl .pickle .pt .pth .onnx .safetensors .gguf .h5 .hdf5"
)
_UNREAD = frozenset(_UNREAD_SUFFIXES.split())
_BINARY = frozenset(_BINARY_SUFFIXES.split())


def has_binary_name(name: str) -> bool:
    """True for images, sound, fonts, archives, executables and data formats, by suffix."""
    return _suffix(name) in _BINARY


def check_name(name: str) -> None:
    """Raises what `read_bytes` would raise for a file of this name, whatever its content."""
    suffix = _suffix(name)
    if has_binary_name(name):
        raise FileSkipped("binary", where=name)
    if suffix in _UNREAD:
        raise _no_reader(suffix, name)


def read_bytes(data: bytes, name: str) -> Reading:
    """A file's bytes as text, by the reader that its name (or else its first bytes) calls for.

    Raises:
        FileSkipped: nothing to index: binary, or empty once read.
        DocumentError: a document without a reader, malformed, or in no known encoding; the cause is chained.
    """
    check_name(name)
    for magic, kind in _UNREAD_MAGIC.items():
        if data.startswith(magic):
            raise _no_reader(kind, name)
    if is_binary(data):
        raise FileSkipped("binary", where=name)
    module, function = _READERS.get(_suffix(name)) or _by_content(data)
    reader: Reader = getattr(import_module(f"wellhead.backends.readers.{module}"), function)
    try:
        reading = reader(data, name)
    except WellheadError:
        raise
    except Exception as error:  # a library met what its authors did not foresee: this file fails, the run goes on
        raise DocumentError(
            "the file cannot be read", where=name, why=f"{type(error).__name__}: {error}", fix="mend or exclude it"
        ) from error
    if not reading.text.strip():
        raise FileSkipped("empty", where=name)
    return reading


def _suffix(name: str) -> str:
    # As `PurePosixPath.suffix`, which costs more than all else that is done for a file that is unchanged.
    last = name.lower().rpartition("/")[2]
    dot = last.rfind(".")
    return last[dot:] if 0 < dot < len(last) - 1 else ""


def _by_content(data: bytes) -> tuple[str, str]:
    head = data[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return _HTML if head.startswith((b"<!doctype html", b"<html")) else _PLAIN


def _no_reader(suffix: str, name: str) -> DocumentError:
    return DocumentError(
        f"no reader for {suffix} in this version",
        where=name,
        why="its text would be missing from the index",
        fix="convert it to Markdown, HTML or plain text, or exclude it",
    )
