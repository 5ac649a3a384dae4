"""`fixed`: windows of one size, whatever the text says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from wellhead.errors import UsageError
from wellhead.ingest.chunk.measure import Slice, TokenStarts, word_starts
from wellhead.records import Document

__all__ = ["Unit", "check_window", "fixed"]

Unit: TypeAlias = Literal["chars", "tokens"]


def check_window(size: int, overlap: int, unit: str = "chars") -> None:
    """Raise UsageError unless windows of `size` that share `overlap` advance. Call it where a chunker is configured."""
    if not 0 <= overlap < size:
        raise UsageError(
            f"need 0 <= overlap < size, got size={size}, overlap={overlap}",
            where="chunker fixed",
            why="or the window never advances",
            fix="choose an overlap of 0 or more that is smaller than the size, for example size=400, overlap=50",
        )
    if unit not in ("chars", "tokens"):
        raise UsageError(f"no unit named {unit!r}", where="chunker fixed", fix="use 'chars' or 'tokens'")


def fixed(
    document: Document,
    *,
    size: int = 400,
    overlap: int = 50,
    unit: Unit = "chars",
    redundant_tail: bool = False,
    token_starts: TokenStarts = word_starts,
) -> list[Slice]:
    """Windows of `size` that each share `overlap` with the one before: one begins every `size - overlap` units.

    Args:
        size, overlap: in `unit`; 0 <= overlap < size.
        redundant_tail: keep windows at the end that lie wholly inside the one before them (with 400 and 50, a text of
            351 to 400 characters gives two windows). The only way to have a slice inside another.
        token_starts: the measure of `unit="tokens"`.

    Windows of nothing but white space are left out: a passage is never blank.

    Raises:
        UsageError: the window would never advance, or the unit is unknown.
    """
    check_window(size, overlap, unit)
    text = document.text
    marks: Sequence[int] = range(len(text)) if unit == "chars" else sorted(token_starts(text))
    slices: list[Slice] = []
    reached = -1
    for first in range(0, len(marks), size - overlap):
        start = marks[first]
        end = marks[first + size] if first + size < len(marks) else len(text)
        if (end > reached or redundant_tail) and not text[start:end].isspace():
            slices.append(Slice(start=start, end=end))
        reached = end
    return slices
