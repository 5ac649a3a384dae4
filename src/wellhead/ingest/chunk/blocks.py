"""What a parsed document is made of: sections under a heading path, each with its blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

__all__ = ["Block", "Kind", "Line", "Section", "cover", "line_offsets", "lines_of", "trim"]

Kind: TypeAlias = Literal["prose", "code", "table", "heading"]
_LINE_END = re.compile(r"\r\n?|\n")
_INK = re.compile(r"\S")
_CLOSERS = (")", "]", "}")


class Block(msgspec.Struct, frozen=True):
    """A stretch of text that is kept whole where it fits.

    Args:
        start, end: characters, half open.
        kind: how it is cut where it does not fit and has no inner blocks.
        inner: the blocks it is made of (the items of a list), covering it; () for a leaf.
    """

    start: int
    end: int
    kind: Kind = "prose"
    inner: tuple[Block, ...] = ()


class Section(msgspec.Struct, frozen=True):
    """The blocks under one heading, the heading itself first. `path` is outermost first.

    Args:
        paths: (offset, path) pairs in ascending order, where the path changes within the section (source code).
    """

    path: tuple[str, ...]
    blocks: tuple[Block, ...]
    paths: tuple[tuple[int, tuple[str, ...]], ...] = ()

    @property
    def start(self) -> int:
        return self.blocks[0].start

    @property
    def end(self) -> int:
        return self.blocks[-1].end

    @property
    def bare(self) -> bool:
        """Nothing but headings."""
        return all(block.kind == "heading" for block in self.blocks)


class Line(msgspec.Struct, frozen=True):
    """One line: where it begins, its text without the line end, and its indentation in columns."""

    start: int
    text: str

    @property
    def blank(self) -> bool:
        return not self.text or self.text.isspace()

    @property
    def indent(self) -> int:
        lead = self.text[: len(self.text) - len(self.text.lstrip())]
        return len(lead.expandtabs(4))

    @property
    def closes(self) -> bool:
        """It only ends what was opened before."""
        return self.text.lstrip().startswith(_CLOSERS)


def line_offsets(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Where each line of `text[start:end]` begins.

    A line ends with LF, CR LF or a lone CR and with nothing else, as in CommonMark (`str.splitlines` knows more).
    """
    end = len(text) if end is None else end
    return [start, *(found.end() for found in _LINE_END.finditer(text, start, end) if found.end() < end)]


def lines_of(text: str, start: int = 0, end: int | None = None) -> list[Line]:
    """The lines of `text[start:end]`."""
    end = len(text) if end is None else end
    offsets = line_offsets(text, start, end)
    return [
        Line(begin, text[begin:after].rstrip("\r\n")) for begin, after in zip(offsets, [*offsets[1:], end], strict=True)
    ]


def trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span without blank lines before it and white space after it; the indentation of its first line stays.

    None when nothing is left.
    """
    found = _INK.search(text, start, end)
    if found is None:
        return None
    begin = found.start()
    indented = begin
    while indented > start and text[indented - 1] in " \t":
        indented -= 1
    if indented == 0 or text[indented - 1] in "\r\n":
        begin = indented
    return begin, begin + len(text[begin:end].rstrip())


def cover(text: str, start: int, end: int, blocks: Iterable[Block]) -> tuple[Block, ...]:
    """`blocks` in order without overlap, and a prose block for every stretch of `text[start:end]` they leave out."""
    covered: list[Block] = []
    cursor = start
    for block in blocks:
        first, last = max(block.start, cursor), min(block.end, end)
        if first >= last:
            continue
        if _INK.search(text, cursor, first):
            covered.append(Block(cursor, first))
        covered.append(block if (first, last) == (block.start, block.end) else Block(first, last, block.kind))
        cursor = last
    if _INK.search(text, cursor, end):
        covered.append(Block(cursor, end))
    return tuple(covered)
