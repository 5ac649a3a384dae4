"""A view of some rows of a view: what a handle bound to a scope sees, with the statistics of these rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from wellhead.ports import Column, Field, Posting, Vectors, View
from wellhead.records import Passage

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, IntArray, RowArray

__all__ = ["Within"]


class Within:
    """The rows of `view` that `admits` (bool[n]) marks, as a view of its own."""

    def __init__(self, view: View, admits: BoolArray) -> None:
        self._view = view
        self._rows: RowArray = np.flatnonzero(admits)
        self._places: IntArray = np.full(len(view), -1, dtype=np.int32)
        self._places[self._rows] = np.arange(len(self._rows), dtype=np.int32)
        self.version = view.version
        self.stems: Field = _FieldWithin(view.stems, self._rows, self._places)
        self.words: Field = _FieldWithin(view.words, self._rows, self._places)
        self.vectors = Vectors(view.vectors.matrix, view.vectors.of[self._rows])
        self.documents: IntArray = view.documents[self._rows]
        self.contents: IntArray = view.contents[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def languages(self) -> Mapping[str, int]:
        return self._languages

    @cached_property
    def _languages(self) -> Mapping[str, int]:
        return dict(sorted(Counter(self.language(row) for row in range(len(self))).items()))

    def language(self, row: int) -> str:
        return self._view.language(int(self._rows[row]))

    def column(self, key: str) -> Column | None:
        found = self._view.column(key)
        if found is None or not (found.codes[self._rows] >= 0).any():
            return None
        return Column(found.codes[self._rows], found.values)

    def keys(self) -> Sequence[str]:
        return [key for key in self._view.keys() if self.column(key) is not None]  # noqa: SIM118 (no mapping)

    def row(self, passage_id: str) -> int | None:
        found = self._view.row(passage_id)
        return None if found is None else self._own(found)

    def starting(self, prefix: str) -> Sequence[int]:
        own = (self._own(row) for row in self._view.starting(prefix))
        return [row for row in own if row is not None]

    def rows_of(self, document_id: str) -> Sequence[int]:
        own = (self._own(row) for row in self._view.rows_of(document_id))
        return [row for row in own if row is not None]

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        return self._view.passages([int(self._rows[row]) for row in rows])

    def _own(self, row: int) -> int | None:
        place = int(self._places[row])
        return None if place < 0 else place


class _FieldWithin:
    """One analysed field over some rows."""

    def __init__(self, field: Field, rows: RowArray, places: IntArray) -> None:
        self._field = field
        self._places = places
        self.lengths: IntArray = field.lengths[rows]
        self.total = int(self.lengths.sum())

    def posting(self, term: str) -> Posting | None:
        found = self._field.posting(term)
        if found is None:
            return None
        places = self._places[found.rows]
        own = places >= 0
        return Posting(places[own], found.counts[own]) if own.any() else None

    def folded(self, term: str) -> Sequence[str]:
        return [spelling for spelling in self._field.folded(term) if self.posting(spelling) is not None]
