"""A part: rows as flat arrays, sorted by scope and then by number; in memory, or mapped from the file of a segment.

Terms are known by their number in the table `terms`; the part holds their words too, so that to look one up asks
nobody else. A passage's number only grows, so within a scope the newest rows stand last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from wellhead.analyze import fold_accents
from wellhead.lazy import lazy
from wellhead.records import MetadataValue

__all__ = ["FIELDS", "Blobs", "Names", "Part", "PartField", "arrays_of_blobs", "arrays_of_words", "word_hash"]

FIELDS = ("stems", "words")


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """What the numbers in the arrays of a part stand for.

    Args:
        scopes: ascending; `scope_starts` says where the rows of each begin. languages: "" for none.
        keys: of the metadata. dims: of the vectors; 0 where no row has one.
    """

    scopes: tuple[str, ...]
    languages: tuple[str, ...]
    keys: tuple[str, ...]
    dims: int


class Blobs:
    """Byte strings one after the other: uint8 `data`, and where each begins: int64[n + 1]."""

    def __init__(self, data: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self._data = data.data
        self._starts = starts.data

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, place: int) -> bytes:
        return bytes(self._data[self._starts[place] : self._starts[place + 1]])

    def __iter__(self) -> Iterator[bytes]:
        return (self[place] for place in range(len(self)))


def arrays_of_blobs(name: str, blobs: Sequence[bytes]) -> dict[str, NDArray[Any]]:
    """The arrays that `Blobs` reads, under `name`."""
    starts = np.zeros(len(blobs) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs)), out=starts[1:])
    return {f"{name}.data": np.frombuffer(b"".join(blobs), dtype=np.uint8), f"{name}.starts": starts}


# 64 bits by which a word is looked up; words of equal hash are told apart by their bytes.
word_hash = xxhash.xxh3_64_intdigest


def arrays_of_words(words: Mapping[int, bytes]) -> dict[str, NDArray[Any]]:
    """The vocabulary of a part: the word of each term, and the words that folding accents changes."""
    listed = list(words.values())
    hashes = np.fromiter(map(word_hash, listed), dtype=np.uint64, count=len(listed))
    order = np.argsort(hashes, kind="stable")
    if bool((np.diff(hashes[order]) == 0).any()):  # words of equal hash stand in the order of their bytes
        order = np.array(sorted(range(len(listed)), key=lambda place: (int(hashes[place]), listed[place])))
    ordered = [listed[place] for place in order.tolist()]
    folded = sorted(
        (word_hash(plain.encode()), place)
        for place, word in enumerate(ordered)
        if not word.isascii() and (plain := fold_accents(word.decode())) != word.decode()
    )
    return {
        "word.hashes": hashes[order],
        "word.terms": np.fromiter(words, dtype=np.int32, count=len(words))[order],
        "folded.hashes": np.array([entry[0] for entry in folded], dtype=np.uint64),
        "folded.places": np.array([entry[1] for entry in folded], dtype=np.int32),
        **arrays_of_blobs("word", ordered),
    }


class PartField:
    """The postings of one analysed field, by the number of the term."""

    def __init__(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.terms: NDArray[np.int32] = arrays[f"{name}.terms"]
        self.starts: NDArray[np.int64] = arrays[f"{name}.starts"]
        self.rows: NDArray[np.int32] = arrays[f"{name}.rows"]
        self.counts: NDArray[Any] = arrays[f"{name}.counts"]
        self.lengths: NDArray[np.int32] = arrays[f"{name}.lengths"]
        # Plain searches in these beat numpy's, which costs more to call than it saves.
        self._terms, self._starts, self._rows = self.terms.data, self.starts.data, self.rows.data

    def span(self, term: int, first: int, last: int) -> tuple[int, int]:
        """Where the rows `first` to `last` (left out) of a term stand in `rows` and `counts`."""
        place = bisect_left(self._terms, term)
        if place == len(self._terms) or self._terms[place] != term:
            return 0, 0
        low, high = self._starts[place], self._starts[place + 1]
        if first > 0:
            low = bisect_left(self._rows, first, low, high)
        if last < len(self.lengths):
            high = bisect_left(self._rows, last, low, high)
        return low, high


class Part:
    """Rows and their arrays; immutable.

    The arrays, n rows in the order of (scope, number):
        scope_starts int64[s + 1]: where the rows of each scope begin.
        numbers, docs int64[n]; number_order int32[n]: the rows by number. languages int16[n].
        contents uint64[n, 2]: the first 16 bytes of the text's sha256; content_order int32[n]: rows by the first 8.
        body as `Blobs`: the passage itself (body.py), so that a search reads no table.
        ids as `Blobs`; id_keys uint64[n]: their first 8 bytes, so that they compare as the ids do.
        For each field its terms, starts, rows, counts and lengths (`PartField`).
        floats float32[n, dims], codes int8[n, dims], scales float32[n] (0.0: no vector).
        For each metadata key its codes int32[n] (-1: none), and its distinct values as JSON.
        The vocabulary (`arrays_of_words`).
    """

    def __init__(
        self, names: Names, arrays: Mapping[str, NDArray[Any]], is_untouched: Callable[[], bool] = lambda: True
    ) -> None:
        self.names = names
        self.is_untouched = is_untouched  # whether what is mapped still is what was written
        self.arrays = arrays
        self.numbers: NDArray[np.int64] = arrays["numbers"]
        self.docs: NDArray[np.int64] = arrays["docs"]
        self.id_keys: NDArray[np.uint64] = arrays["id_keys"]
        self.contents: NDArray[np.uint64] = arrays["contents"]
        self.languages: NDArray[np.int16] = arrays["languages"]
        self.floats: NDArray[np.float32] = arrays["floats"]
        self.codes: NDArray[np.int8] = arrays["codes"]
        self.scales: NDArray[np.float32] = arrays["scales"]
        self.bodies = Blobs(arrays["body.data"], arrays["body.starts"])
        self.ids = Blobs(arrays["id.data"], arrays["id.starts"])
        self.words = Blobs(arrays["word.data"], arrays["word.starts"])
        self.fields = {name: PartField(name, arrays) for name in FIELDS}
        self._hashes = arrays["word.hashes"].data
        self._terms = arrays["word.terms"].data
        self._starts = arrays["scope_starts"].data
        self._values: dict[str, list[MetadataValue]] = {}

    def __len__(self) -> int:
        return len(self.numbers)

    def span(self, scope: str) -> tuple[int, int]:
        """The rows of a scope: from the first to the last (left out)."""
        place = bisect_left(self.names.scopes, scope)
        if place == len(self.names.scopes) or self.names.scopes[place] != scope:
            return 0, 0
        return self._starts[place], self._starts[place + 1]

    def term(self, word: bytes) -> int | None:
        """The number of a word's term, or None when no row of the part holds it."""
        wanted = word_hash(word)
        place = bisect_left(self._hashes, wanted)
        while place < len(self._hashes) and self._hashes[place] == wanted:
            if self.words[place] == word:
                return self._terms[place]
            place += 1
        return None

    def accented(self, plain: bytes) -> list[bytes]:
        """The words other than `plain` that become it once accents are folded."""
        hashes, places = self.arrays["folded.hashes"], self.arrays["folded.places"]
        if not len(hashes):
            return []
        wanted = np.uint64(word_hash(plain))
        span = slice(int(np.searchsorted(hashes, wanted)), int(np.searchsorted(hashes, wanted, side="right")))
        found = (self.words[place] for place in places[span].tolist())
        return [word for word in found if fold_accents(word.decode()).encode() == plain]

    def rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """The rows of those of these numbers that are here."""
        order: NDArray[np.int32] = self.arrays["number_order"]
        places = np.searchsorted(self.numbers, numbers, sorter=order)
        found = order[places[places < len(order)]]
        rows: NDArray[np.int32] = found[self.numbers[found] == numbers[places < len(order)]]
        return rows

    def with_contents(self, contents: NDArray[np.uint64]) -> list[tuple[int, int]]:
        """Every row that has one of these texts, with the place of that text.

        Args:
            contents: uint64[m, 2], the first 16 bytes of each text's sha256.
        """
        keys = contents[:, 0]
        first = np.searchsorted(self._contents, keys)
        last = np.searchsorted(self._contents, keys, side="right")
        order: NDArray[np.int32] = self.arrays["content_order"]
        return [
            (place, row)
            for place in np.flatnonzero(first < last).tolist()
            for row in order[first[place] : last[place]].tolist()
            if self.contents[row, 1] == contents[place, 1]
        ]

    @lazy
    def repeats(self) -> NDArray[np.bool_]:
        """Whether another row's text may be the same: bool[n]."""
        ordered = self._contents
        same = np.zeros(len(ordered), dtype=np.bool_)
        same[1:] = np.equal(ordered[1:], ordered[:-1])
        same[:-1] |= same[1:]
        repeats = np.empty(len(ordered), dtype=np.bool_)
        repeats[self.arrays["content_order"]] = same
        return repeats

    @lazy
    def _contents(self) -> NDArray[np.uint64]:
        ordered: NDArray[np.uint64] = self.contents[self.arrays["content_order"], 0]
        return ordered

    def column(self, key: str) -> tuple[NDArray[np.int32], list[MetadataValue]] | None:
        """The codes and the distinct values of a metadata key; None when no row has it."""
        if key not in self.names.keys:
            return None
        place = self.names.keys.index(key)
        if key not in self._values:
            listed: list[Any] = msgspec.json.decode(self.arrays[f"values.{place}"].tobytes())
            self._values[key] = [tuple(value) if isinstance(value, list) else value for value in listed]
        return self.arrays[f"codes.{place}"], self._values[key]
