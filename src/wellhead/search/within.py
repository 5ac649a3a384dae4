"""A view of some rows of a view: what a handle bound to a scope sees, with the statistics of these rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from wellhead.lazy import lazy
from wellhead.ports import Column, Field, Posting, VectorPart, View
from wellhead.records import MetadataValue, Passage

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, IntArray, RowArray

__all__ = ["Within", "only"]


class Within:
    """The live rows of `view` that `admits` (bool[space]) marks, as a view of its own; all others are dead in it."""

    def __init__(self, view: View, admits: BoolArray) -> None:
        self.whole = view
        self.live: BoolArray = admits if view.live is None else admits & view.live
        self._count = int(np.count_nonzero(self.live))
        self.version = view.version
        self.space = view.space
        self.dims = view.dims
        self.stems: Field = _FieldWithin(view, view.stems, self.live)
        self.words: Field = _FieldWithin(view, view.words, self.live)
        self._columns: dict[str, Column | None] = {}

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Within cannot be pickled: open the index again in the other process")

    def __len__(self) -> int:
        return self._count

    @property
    def vectors(self) -> Sequence[VectorPart]:
        return self.whole.vectors

    @property
    def with_vectors(self) -> int:
        return self._with_vectors

    @lazy
    def _with_vectors(self) -> int:
        parts = self.whole.vectors
        return sum(
            int(np.count_nonzero((part.scales > 0.0) & self.live[part.first : part.first + len(part.scales)]))
            for part in parts
        )

    @property
    def languages(self) -> Mapping[str, int]:
        return self._languages

    @lazy
    def _languages(self) -> Mapping[str, int]:
        return dict(sorted(Counter(self.language(row) for row in np.flatnonzero(self.live).tolist()).items()))

    def language(self, row: int) -> str:
        return self.whole.language(row)

    def documents(self, rows: RowArray) -> Sequence[int]:
        return self.whole.documents(rows)

    @property
    def document_count(self) -> int:
        return self._document_count

    @lazy
    def _document_count(self) -> int:
        return self.count_documents(np.flatnonzero(self.live).astype(np.int32))

    def count_documents(self, rows: IntArray) -> int:
        return self.whole.count_documents(rows)

    def contents(self, rows: RowArray) -> Sequence[bytes]:
        return self.whole.contents(rows)

    def same_texts(self, rows: RowArray) -> Sequence[Sequence[int]]:
        return [self._own(same) for same in self.whole.same_texts(rows)]

    def by_id(self, rows: RowArray) -> IntArray:
        return self.whole.by_id(rows)

    def column(self, key: str) -> Column | None:
        if key not in self._columns:
            found = self.whole.column(key)
            self._columns[key] = None if found is None else only(found, self.live)
        return self._columns[key]

    def keys(self) -> Sequence[str]:
        return [key for key in self.whole.keys() if self.column(key) is not None]  # noqa: SIM118 (no mapping)

    def row(self, passage_id: str) -> int | None:
        found = self.whole.row(passage_id)
        return None if found is None or not self.live[found] else found

    def starting(self, prefix: str) -> Sequence[int]:
        return self._own(self.whole.starting(prefix))

    def rows_of(self, document_id: str) -> Sequence[int]:
        return self._own(self.whole.rows_of(document_id))

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        return self.whole.passages(rows)

    def _own(self, rows: Sequence[int]) -> list[int]:
        return [row for row in rows if self.live[row]]


def only(column: Column, live: BoolArray | None) -> Column | None:
    """A column over the live rows (None: all) and without values of others; None where no live row has the key."""
    codes: IntArray = column.codes if live is None else np.where(live, column.codes, np.int32(-1))
    used = np.unique(codes)
    used = used[used >= 0]
    if not len(used):
        return None
    renumbered = np.full(len(column.values) + 1, -1, dtype=np.int32)  # the last place is that of code -1
    renumbered[used] = np.arange(len(used), dtype=np.int32)
    values: list[MetadataValue] = [column.values[code] for code in used.tolist()]
    return Column(renumbered[codes], values)


class _FieldWithin:
    """One analysed field of a view over some of its rows."""

    def __init__(self, view: View, field: Field, live: BoolArray) -> None:
        self._view = view
        self._field = field
        self._live = live

    @property
    def lengths(self) -> IntArray:
        return self._field.lengths

    @lazy
    def total(self) -> int:
        return int(self._field.lengths[self._live].sum(dtype=np.int64))

    def posting(self, term: str) -> Posting | None:
        found = self._field.posting(term)
        if found is None:
            return None
        own = self._live[found.rows]
        return Posting(found.rows[own], found.counts[own]) if own.any() else None

    def frequency(self, term: str) -> int:
        found = self.posting(term)
        return 0 if found is None else self._view.count_documents(found.rows)

    def folded(self, term: str) -> Sequence[str]:
        return [spelling for spelling in self._field.folded(term) if self.posting(spelling) is not None]
