"""reStructuredText into sections and blocks: titles by their adornment, blocks by blank lines."""

from __future__ import annotations

import re

from wellhead.ingest.chunk.blocks import Block, Line, Section, lines_of
from wellhead.ingest.chunk.markdown import one_line, sections_of

__all__ = ["rst_sections"]

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*")


def rst_sections(text: str) -> list[Section]:
    """The sections of a reStructuredText, in order. Levels are given by the order in which adornments appear."""
    lines = lines_of(text)
    spans = _titles(lines)
    styles: list[str] = []
    titles: dict[int, tuple[int, str]] = {}
    for first, _, style, title in spans:
        if style not in styles:
            styles.append(style)
        titles[lines[first].start] = (styles.index(style) + 1, one_line(title))
    return sections_of(_blocks(text, lines, {first: after for first, after, _, _ in spans}), titles)


def _titles(lines: list[Line]) -> list[tuple[int, int, str, str]]:
    """(first line, line after the last, adornment, title); an overlined style differs from the same one underlined."""
    found: list[tuple[int, int, str, str]] = []
    place = 0
    while place + 1 < len(lines):
        over = place + 2 < len(lines) and _mark(lines[place])
        if over and over == _mark(lines[place + 2]) and _is_title(lines[place + 1], lines[place + 2]):
            found.append((place, place + 3, over * 2, lines[place + 1].text))
            place += 3
        elif _unindented(lines, place) and _is_title(lines[place], lines[place + 1]):
            found.append((place, place + 2, _mark(lines[place + 1]), lines[place].text))
            place += 2
        else:
            place += 1
    return found


def _mark(line: Line) -> str:
    return line.text[0] if _ADORNMENT.fullmatch(line.text) else ""


def _is_title(title: Line, under: Line) -> bool:
    long_enough = len(under.text.rstrip()) >= min(len(title.text.strip()), 4)
    return not title.blank and not _mark(title) and bool(_mark(under)) and long_enough


def _unindented(lines: list[Line], place: int) -> bool:
    """The line follows a blank one (or nothing) and is not indented."""
    return (place == 0 or lines[place - 1].blank) and not lines[place].indent


def _blocks(text: str, lines: list[Line], titles: dict[int, int]) -> list[Block]:
    """Titles, and runs from an unindented line after a blank one on: what is indented goes with what it follows."""
    starts: list[tuple[int, bool]] = []
    title_end = 0
    for place, line in enumerate(lines):
        if place in titles:
            starts.append((line.start, True))
            title_end = titles[place]
        elif place >= title_end and not line.blank and (not starts or starts[-1][1] or _unindented(lines, place)):
            starts.append((line.start, False))
    ends = [*(start for start, _ in starts), len(text)][1:]
    return [
        Block(start, end, "heading" if is_title else "prose")
        for (start, is_title), end in zip(starts, ends, strict=True)
    ]
