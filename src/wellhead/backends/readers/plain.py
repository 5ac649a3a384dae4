"""Plain text, reStructuredText and source code: the text as it is, with its kind and, where it has one, its title."""

from __future__ import annotations

import re
from itertools import pairwise

from wellhead.backends.readers.decode import decode
from wellhead.backends.readers.languages import is_code, media_type_of
from wellhead.backends.readers.reading import Reading

__all__ = ["read_plain"]

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")  # PEP 263
_XML = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([-\w.]+)["']""")
_TITLE_LINES = 200
_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}$")


def read_plain(data: bytes, name: str) -> Reading:
    """Any text file; nothing in it is changed. The title is that of a reStructuredText document, else "".

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits.
    """
    decoded = decode(data, declared=_declared(data), where=name)
    media_type = media_type_of(name, decoded.text[:200].partition("\n")[0])
    return Reading(
        text=decoded.text,
        title=_section_title(decoded.text) if media_type == "text/x-rst" else "",
        metadata=decoded.metadata,
        media_type=media_type,
        language="en" if is_code(media_type) else None,
    )


def _declared(data: bytes) -> str | None:
    """The encoding named by an XML declaration, or by a coding comment in the first two lines."""
    head = data[:1024]
    found = _XML.match(head) or next(filter(None, map(_COOKIE.match, head.split(b"\n", 2)[:2])), None)
    return found[1].decode("ascii", "replace") if found else None


def _section_title(text: str) -> str:
    """The first line that is underlined by punctuation at least as long as itself."""
    lines = [line.rstrip() for line in text[:20_000].splitlines()[:_TITLE_LINES]]
    for line, below in pairwise(lines):
        title = line.strip()
        if title and not _RULE.match(title) and _RULE.match(below) and len(below) >= len(title):
            return title
    return ""
