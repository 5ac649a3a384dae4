"""Blocks become spans that fit: what fits stays whole, what does not is cut and packed again, evenly."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from wellhead.ingest.chunk.blocks import Block, line_offsets, trim
from wellhead.ingest.chunk.cuts import CASCADES, Cutter, evenly
from wellhead.ingest.chunk.measure import Measure

__all__ = ["Piece", "fit", "pack"]


class Piece(msgspec.Struct, frozen=True):
    """A span that fits. `lead` is the span of the table header to be repeated before it, `lead_size` its tokens."""

    start: int
    end: int
    lead: tuple[int, int] | None = None
    lead_size: int = 0


def fit(measure: Measure, blocks: Sequence[Block], size: int) -> list[Piece]:
    """Pieces of at most `size` tokens that cover everything but white space in `blocks`.

    A heading stays with the block that follows it, if need be with the first part of it.
    """
    pieces: list[Piece] = []
    waiting: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            waiting.append(block)
        else:
            pieces += _headed(measure, waiting, block, size)
            waiting = []
    pieces += _joined(measure, waiting, size)
    return pack(measure, pieces, size)


def _headed(measure: Measure, headings: list[Block], block: Block, size: int) -> list[Piece]:
    if not headings:
        return _cut(measure, block, size)
    start = headings[0].start
    if measure.count(start, block.end) <= size:
        return _whole(measure, start, block.end)
    room = size - measure.count(start, headings[-1].end)
    if room < size // 2:  # headings that fill a passage by themselves
        return [*_joined(measure, headings, size), *_cut(measure, block, size)]
    parts = _cut(measure, block, room)
    return [*_whole(measure, start, parts[0].end if parts else block.end), *parts[1:]]


def _joined(measure: Measure, headings: list[Block], size: int) -> list[Piece]:
    return pack(measure, [piece for block in headings for piece in _cut(measure, block, size)], size)


def _whole(measure: Measure, start: int, end: int) -> list[Piece]:
    span = trim(measure.text, start, end)
    return [Piece(*span)] if span else []


def _cut(measure: Measure, block: Block, size: int) -> list[Piece]:
    if measure.count(block.start, block.end) <= size:
        return _whole(measure, block.start, block.end)
    if block.inner:
        return fit(measure, block.inner, size)
    if block.kind == "table":
        return _cut_table(measure, block, size)
    return _cascade(measure, block.start, block.end, size, CASCADES[block.kind])


def _cut_table(measure: Measure, block: Block, size: int) -> list[Piece]:
    """A table between rows. Each part but the first has the header rows before it, and leaves room for them."""
    header_end = [*line_offsets(measure.text, block.start, block.end)[2:], block.end][0]
    header = trim(measure.text, block.start, header_end)
    header_size = measure.count(block.start, header_end)
    if header is None or header_size > size // 3:  # a header that would crowd out the rows is not repeated
        return _cascade(measure, block.start, block.end, size, CASCADES["table"])
    parts = _cascade(measure, block.start, block.end, size - header_size, CASCADES["table"])
    return [part if part.start < header_end else Piece(part.start, part.end, header, header_size) for part in parts]


def _cascade(measure: Measure, start: int, end: int, size: int, cutters: tuple[Cutter, ...]) -> list[Piece]:
    if measure.count(start, end) <= size:
        return _whole(measure, start, end)
    cuts = cutters[0](measure.text, start, end) if cutters else evenly(measure, start, end, size)
    rest = cutters[1:]
    pieces: list[Piece] = []
    for first, last in zip([start, *cuts], [*cuts, end], strict=True):
        pieces += _cascade(measure, first, last, size, rest) if cutters else _whole(measure, first, last)
    return pack(measure, pieces, size) if cuts and cutters else pieces


def pack(measure: Measure, pieces: Sequence[Piece], size: int) -> list[Piece]:
    """Neighbours joined into as few spans as `size` allows, as evenly as whole pieces allow.

    The smallest capacity that still gives the fewest spans is found by bisection, so that 250 tokens become twice
    125 and not 240 and 10.
    """
    if len(pieces) < 2:
        return list(pieces)
    ends = [piece.end for piece in pieces]
    fewest = _greedy(measure, pieces, ends, size)
    low, high = 1, size
    while low < high:
        middle = (low + high) // 2
        if len(_greedy(measure, pieces, ends, middle)) <= len(fewest):
            high = middle
        else:
            low = middle + 1
    bounds = _even_tail(measure, pieces, _greedy(measure, pieces, ends, high))
    return [_join(pieces[first], pieces[last - 1]) for first, last in zip([0, *bounds], bounds, strict=False)]


def _greedy(measure: Measure, pieces: Sequence[Piece], ends: Sequence[int], size: int) -> list[int]:
    """For each span, the index after its last piece, every span filled in turn up to `size`."""
    bounds: list[int] = []
    first = 0
    while first < len(pieces):
        limit = measure.reach(pieces[first].start, size - pieces[first].lead_size)
        first = max(first + 1, bisect_right(ends, limit, first))
        bounds.append(first)
    return bounds


def _even_tail(measure: Measure, pieces: Sequence[Piece], bounds: list[int]) -> list[int]:
    """`bounds` with the last two spans cut where the larger of them is smallest."""
    if len(bounds) < 2:
        return bounds
    first = bounds[-3] if len(bounds) > 2 else 0
    last = bounds[-1]

    def larger(cut: int) -> int:
        return max(_weight(measure, pieces, first, cut), _weight(measure, pieces, cut, last))

    low, high = first + 1, bounds[-2]
    while low < high and larger(high - 1) < larger(high):
        high -= 1
    return [*bounds[:-2], high, last]


def _weight(measure: Measure, pieces: Sequence[Piece], first: int, last: int) -> int:
    return pieces[first].lead_size + measure.count(pieces[first].start, pieces[last - 1].end)


def _join(first: Piece, last: Piece) -> Piece:
    return first if first is last else Piece(first.start, last.end, first.lead, first.lead_size)
