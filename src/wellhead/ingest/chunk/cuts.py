"""Where a block that does not fit may be cut: for each kind a cascade, from the best places to the last resort.

A cutter gets the text and a span and returns offsets strictly inside the span, ascending.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

from wellhead.ingest.chunk.blocks import Kind, Line, line_offsets, lines_of
from wellhead.ingest.chunk.measure import Measure

__all__ = ["CASCADES", "Cutter", "evenly", "sentences"]

Cutter: TypeAlias = Callable[[str, int, int], list[int]]

# The look-behind keeps a run of a million full stops linear: a run is tried once, at its beginning.
_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]+[\"'”’»)\]*_`]*(?=\s)\s*"
    r"|(?<![。！？｡])[。！？｡]+[」』”’）)\]]*\s*"
    r"|[؟۔।॥።။។։]+\s*"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“])(?:[^\W\d_]|[A-Za-z]\.[A-Za-z]|[Aa]l|[Cc]f|[Dd]r|[Ee]d|[Ee]tc|[Ff]igs?|[Mm]rs?|[Mm]s|[Nn]o|[Pp]p?"
    r"|[Pp]rof|[Ss]t|[Vv]s|[Vv]ol|[Aa]pprox|[Ii]nc|[Ee]q|[Ss]ec|[Cc]h)$"
)
_BREAK = re.compile(r"[\r\n]")
_WORD = re.compile(r"(?<!\S)\S")
_CLUSTER_LIMIT = 32


def sentences(text: str, start: int, end: int) -> list[int]:
    """Where sentences begin. A full stop after an initial or an abbreviation, or before a small letter, ends none."""
    return [
        found.end()
        for found in _SENTENCE_END.finditer(text, start, end)
        if found.end() < end and not _abbreviated(text, start, found)
    ]


def _abbreviated(text: str, start: int, found: re.Match[str]) -> bool:
    if text[found.start()] != "." or text[found.start() : found.start() + 2] == "..":
        return False
    before = text[max(start, found.start() - 12) : found.start()]
    return text[found.end()].islower() or _ABBREVIATION.search(before) is not None


def ended_lines(text: str, start: int, end: int) -> list[int]:
    """Where sentences begin that begin a line: the better half of `sentences`."""
    return [
        cut for cut in sentences(text, start, end) if _BREAK.search(text[max(start, cut - 40) : cut].rstrip(" \t")[-1:])
    ]


def lines(text: str, start: int, end: int) -> list[int]:
    """Where lines begin."""
    return line_offsets(text, start, end)[1:]


def words(text: str, start: int, end: int) -> list[int]:
    """Where runs of other than white space begin."""
    return [found.start() for found in _WORD.finditer(text, start, end) if found.start() > start]


def rows(text: str, start: int, end: int) -> list[int]:
    """Where a table's rows begin; its header, delimiter and first row stay together."""
    return line_offsets(text, start, end)[3:]


def gaps(text: str, start: int, end: int) -> list[int]:
    """Where the text goes on after blank lines."""
    return [line.start for line in _openings(lines_of(text, start, end))]


def outer_gaps(text: str, start: int, end: int) -> list[int]:
    """Of `gaps`, those that stand least indented: before a definition, never inside of one.

    A comment or a decorator stays with what follows it, for no blank line parts them.
    """
    return _least_indented(_openings(lines_of(text, start, end)))


def outer_lines(text: str, start: int, end: int) -> list[int]:
    """Where the least indented lines after the first begin."""
    return _least_indented([line for line in lines_of(text, start, end)[1:] if not line.blank and not line.closes])


def _openings(found: list[Line]) -> list[Line]:
    return [line for before, line in pairwise(found) if before.blank and not line.blank and not line.closes]


def _least_indented(found: list[Line]) -> list[int]:
    least = min((line.indent for line in found), default=0)
    return [line.start for line in found if line.indent == least]


_PROSE: tuple[Cutter, ...] = (ended_lines, sentences, lines, words)
# `outer_gaps` once for each depth of nesting that is worth keeping together.
_CODE: tuple[Cutter, ...] = (outer_gaps, outer_gaps, outer_gaps, outer_gaps, gaps, outer_lines, lines, words)

CASCADES: dict[Kind, tuple[Cutter, ...]] = {
    "prose": (gaps, *_PROSE),
    "heading": _PROSE,
    "code": _CODE,
    "table": (rows, *_PROSE),
}


def evenly(measure: Measure, start: int, end: int, size: int) -> list[int]:
    """The last resort: cuts between tokens, in parts as even as `size` allows, never inside of a character.

    What a reader sees as one character (a letter with its marks, an emoji of several parts, CR LF) is kept whole
    up to `_CLUSTER_LIMIT` code points, even where that alone is more than `size` tokens.
    """
    total = measure.count(start, end)
    step = -(-total // -(-total // size))
    cuts: list[int] = []
    cursor = start
    while measure.count(cursor, end) > size:
        cursor = _whole(measure.text, cursor, measure.reach(cursor, step))
        if cursor >= end:
            break
        cuts.append(cursor)
    return cuts


def _whole(text: str, start: int, target: int) -> int:
    """The boundary between characters at `target`, else the nearest before it (after `start`), else after it."""
    target = max(target, start + 1)
    for place in range(target, max(start, target - _CLUSTER_LIMIT), -1):
        if _between(text, place):
            return place
    for place in range(target, min(len(text), start + _CLUSTER_LIMIT)):
        if _between(text, place):
            return place
    return max(target, min(len(text), start + _CLUSTER_LIMIT))


def _between(text: str, place: int) -> bool:
    """Whether a cut at `place` falls between two characters as a reader sees them (the main rules of UAX 29)."""
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if before == "\r":
        return after != "\n"
    if before == "\u200d" or after in "\u200d\u200c" or unicodedata.category(after)[0] == "M":
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f" or "\u1160" <= after <= "\u11ff":
        return False
    return not (_is_flag(after) and _flags_before(text, place) % 2)


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, place: int) -> int:
    count = 0
    while count < place and count < _CLUSTER_LIMIT * 2 and _is_flag(text[place - 1 - count]):
        count += 1
    return count
