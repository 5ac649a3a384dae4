"""How large a stretch of text is, in tokens, and the record of one cut."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import sub
from typing import TypeAlias

import msgspec
import numpy as np

from wellhead.errors import ConfigError
from wellhead.records import Document

__all__ = ["Chunker", "Measure", "Slice", "TokenStarts", "check_size", "word_starts"]


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One passage to be: `document.text[start:end]`, where it stands, and what must be said before it.

    Args:
        start, end: characters, half open; the slice is never blank.
        heading: the path of headings in force, outermost first; no element holds a line break.
        context: text of the document that must stand before the slice in what is embedded (the header rows of a
            table that was cut); "" for none. Never part of the slice.
        page: from 1, or None where the source has no pages.
    """

    start: int
    end: int
    heading: tuple[str, ...] = ()
    context: str = ""
    page: int | None = None


TokenStarts: TypeAlias = Callable[[str], Sequence[int]]
"""The offsets (characters) at which the tokens of a text begin, ascending; repeats are counted."""

Chunker: TypeAlias = Callable[[Document], list[Slice]]

# Scripts written without spaces: each character counts as a token, or a page of Chinese would be one word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Marks that the `re` module does not take for letters: without them one Hindi word would count as five.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff\u200c\u200d"
_TOKEN = re.compile(rf"[{_UNSPACED}]|(?:[^\W{_UNSPACED}]|[{_MARKS}])+|[^\w\s{_MARKS}]+")
# The same for text that is ASCII alone, several times as fast: what kind of token each character belongs to, if any.
_ASCII_KINDS = bytes(
    1 if re.match(r"\w", character) else 0 if re.match(r"\s", character) else 2 for character in map(chr, range(128))
) + bytes(128)

LONGEST = 32
"""A token longer than this (characters) is counted as several, so that no slice is without bound."""


def word_starts(text: str) -> list[int]:
    """Where words, runs of punctuation, and characters of scripts without spaces begin: the fallback measure."""
    if not text.isascii():
        return [found.start() for found in _TOKEN.finditer(text)]
    kinds = np.frombuffer(text.encode().translate(_ASCII_KINDS), dtype=np.uint8)
    before = np.concatenate((np.zeros(1, dtype=np.uint8), kinds[:-1]))
    starts: list[int] = np.flatnonzero((kinds != before) & (kinds > 0)).tolist()
    return starts


class Measure:
    """Counts the tokens between any two offsets of one text, in O(log n).

    A token of more than `LONGEST` characters counts once more for each half of `LONGEST`: a megabyte of base64 that
    a tokenizer calls one unknown word is large all the same.
    """

    def __init__(self, text: str, token_starts: TokenStarts = word_starts) -> None:
        self.text = text
        self.starts = _bounded(sorted(token_starts(text)), len(text))

    def count(self, start: int, end: int) -> int:
        """Tokens in `text[start:end]`; one that begins before `start` and reaches into it counts too."""
        if start >= end:
            return 0
        first = bisect_left(self.starts, start)
        return bisect_left(self.starts, end) - first + self._begun(first, start)

    def reach(self, start: int, size: int) -> int:
        """The largest `end` for which `count(start, end) <= size`."""
        first = bisect_left(self.starts, start)
        last = max(first, first + size - self._begun(first, start))
        return self.starts[last] if last < len(self.starts) else len(self.text)

    def _begun(self, first: int, start: int) -> int:
        return 0 if first < len(self.starts) and self.starts[first] == start else 1


def _bounded(starts: list[int], length: int) -> list[int]:
    ends = [*starts[1:], length]
    if starts and starts[0] <= LONGEST and max(map(sub, ends, starts)) <= LONGEST:
        return starts
    bounded: list[int] = []
    for start, following in pairwise([0, *starts, length]):
        bounded.append(start)
        if following - start > LONGEST:
            bounded.extend(range(start + LONGEST // 2, following, LONGEST // 2))
    return bounded[1:]


def check_size(size: int) -> None:
    """Raise ConfigError unless a passage may hold at least one token."""
    if size < 1:
        raise ConfigError(
            f"a passage cannot be of {size} tokens",
            where="chunker",
            why="every passage holds at least one token",
            fix="set the size to 1 or more; 240 is the default",
        )
