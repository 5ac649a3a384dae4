"""Source code: blocks before its outermost definitions, and the path of the definitions that enclose a place."""

from __future__ import annotations

import re
from itertools import pairwise

from wellhead.ingest.chunk.blocks import Block, Line, Section, lines_of

__all__ = ["code_sections"]

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([^)]*\))?|override|open"
    r"|sealed|data|inline|unsafe|virtual|declare)\s+)*"
)
_DEFINITION = re.compile(
    rf"\s*{_MODIFIERS}(?P<word>class|interface|struct|enum|trait|impl|object|record|protocol|namespace|module"
    r"|def|function|func|fun|fn|sub)(?:<[^>]*>)?\s+(?:\([^)]*\)\s*)?(?P<name>[^\W\d][\w.:$]*)"
    r"(?=\s*(?:[(\[{<:;=]|$)|\s+(?:extends|implements|for|where|with|is|final)\b)"
)
# What stands right above a definition and belongs to it.
_ATTACHED = ("@", "#", "//", "/*", "*", "--", ";", "%")
_BRACES = ("{", "}", ")", "]", "end")


def code_sections(text: str) -> list[Section]:
    """One section: code has no headings. Its `paths` name the enclosing definitions: `("class Key", "def rotate")`."""
    lines = lines_of(text)
    starts = [0, *_outermost(lines)]
    blocks = [Block(start, end, "code") for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [Section((), tuple(blocks), tuple(_paths(lines)))]


def _outermost(lines: list[Line]) -> list[int]:
    return [
        line.start
        for before, line in pairwise(lines)
        if before.blank and not line.blank and not line.indent and not line.closes
    ]


def _paths(lines: list[Line]) -> list[tuple[int, tuple[str, ...]]]:
    """Where the path of enclosing definitions changes, by indentation alone, whatever the language."""
    paths: list[tuple[int, tuple[str, ...]]] = []
    enclosing: list[tuple[int, str]] = []
    attached: int | None = None
    for line in lines:
        bare = line.text.strip()
        if not bare:
            attached = None
        elif bare.startswith(_ATTACHED):
            attached = line.start if attached is None else attached
        elif not bare.startswith(_BRACES):
            enclosing = [above for above in enclosing if above[0] < line.indent]
            enclosing += _definition(line)
            path = tuple(name for _, name in enclosing)
            if path != (paths[-1][1] if paths else ()):
                paths.append((line.start if attached is None else attached, path))
            attached = None
    return paths


def _definition(line: Line) -> list[tuple[int, str]]:
    found = _DEFINITION.match(line.text[:300])
    return [(line.indent, f"{found['word']} {found['name'].rstrip('.:')}")] if found else []
