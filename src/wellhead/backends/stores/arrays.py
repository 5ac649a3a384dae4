"""The plain view: one scope as flat numpy arrays, rows by passage id, nothing quantised, nothing dead.

What the memory store hands out, and what every faster view must agree with.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.postings import ArrayField
from wellhead.lazy import lazy
from wellhead.ports import Column, VectorPart
from wellhead.records import Metadata, MetadataValue, Passage

__all__ = ["ArrayView", "ScopeRows", "codes", "line_up"]


class ScopeRows(NamedTuple):
    """What a store hands over: the n rows of one scope, by passage id ascending.

    `documents` int32[n] are places in `document_ids` and `metadata`; every document there has a row.
    `contents` int32[n] are equal for rows of equal text. `vectors` float32[n, d], all zeros for a row without one.
    """

    ids: Sequence[str]
    document_ids: Sequence[str]
    metadata: Sequence[Metadata]
    documents: NDArray[np.int32]
    ordinals: NDArray[np.int32]
    contents: NDArray[np.int32]
    languages: Sequence[str]
    stems: ArrayField
    words: ArrayField
    vectors: NDArray[np.float32]


def codes(values: Iterable[Hashable]) -> tuple[NDArray[np.int32], list[Hashable]]:
    """Small numbers for equal values, in order of first appearance: int32[n], and the value of each number."""
    seen: dict[Hashable, int] = {}
    numbers = np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.int32)
    return numbers, list(seen)


def line_up(keys: Sequence[bytes], vectors: Mapping[bytes, NDArray[np.float32]]) -> NDArray[np.float32]:
    """The rows' vectors, one line a row: float32[n, d].

    Args:
        keys: the vector key of each row; b"" or a key that is not in `vectors` for a row without one.
    """
    dims = next((vectors[key].size for key in keys if key in vectors), 0)
    lines = np.zeros((len(keys), dims), dtype=np.float32)
    for row, key in enumerate(keys):
        if key in vectors:
            lines[row] = vectors[key]
    lines.flags.writeable = False  # searches of several threads share it
    return lines


class ArrayView:
    """One scope at one moment (`wellhead.ports.View`); immutable, for any number of threads.

    Args:
        version: the index version that it shows.
        rows: the rows.
        fetch: the passages of these ids, in this order, read and checked.
    """

    def __init__(self, version: int, rows: ScopeRows, fetch: Callable[[Sequence[str]], list[Passage]]) -> None:
        self.version = version
        self._rows = rows
        self._fetch = fetch

    live = None

    def __len__(self) -> int:
        return len(self._rows.ids)

    @property
    def space(self) -> int:
        return len(self._rows.ids)

    @property
    def stems(self) -> ArrayField:
        return self._rows.stems

    @property
    def words(self) -> ArrayField:
        return self._rows.words

    @property
    def dims(self) -> int:
        return int(self._rows.vectors.shape[1])

    @lazy
    def vectors(self) -> Sequence[VectorPart]:
        floats = self._rows.vectors
        return (VectorPart(0, floats, np.asarray(floats.any(axis=1), dtype=np.float32), None),)

    @lazy
    def with_vectors(self) -> int:
        return int(self._rows.vectors.any(axis=1).sum())

    def documents(self, rows: NDArray[np.intp]) -> Sequence[int]:
        """Equal numbers for rows of one document."""
        numbers: list[int] = self._rows.documents[rows].tolist()
        return numbers

    @lazy
    def document_count(self) -> int:
        return self.count_documents(np.arange(len(self), dtype=np.int32))

    def count_documents(self, rows: NDArray[np.int32]) -> int:
        """How many documents these rows belong to."""
        return len(np.unique(self._rows.documents[rows]))

    def contents(self, rows: NDArray[np.intp]) -> Sequence[bytes]:
        """Equal bytes for rows of equal text."""
        return [b"%d" % number for number in self._rows.contents[rows].tolist()]

    def same_texts(self, rows: NDArray[np.intp]) -> Sequence[Sequence[int]]:
        """For each of these rows the rows of its text, itself included."""
        contents = self._rows.contents
        return [np.flatnonzero(contents == content).tolist() for content in contents[rows]]

    def by_id(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """The place of each of these rows among them, in the order of their passage ids: rows are in it already."""
        places = np.empty(len(rows), dtype=np.int32)
        places[np.argsort(rows, kind="stable")] = np.arange(len(rows), dtype=np.int32)
        return places

    @lazy
    def languages(self) -> Mapping[str, int]:
        return dict(sorted(Counter(self._rows.languages).items()))

    def language(self, row: int) -> str:
        """The language of a row, "" for none."""
        return self._rows.languages[row]

    def column(self, key: str) -> Column | None:
        """The metadata under `key`, or None when no row has it."""
        return self._columns.get(key)

    def keys(self) -> Sequence[str]:
        """The metadata keys in use, ascending."""
        return sorted(self._columns)

    @lazy
    def _columns(self) -> dict[str, Column]:
        keys = dict.fromkeys(key for metadata in self._rows.metadata for key in metadata)
        return {key: self._column(key) for key in keys}

    def _column(self, key: str) -> Column:
        """One code a document first, then spread over the documents' rows."""
        numbers: dict[Hashable, int] = {}
        values: list[MetadataValue] = []
        of_document = np.full(len(self._rows.document_ids), -1, dtype=np.int32)
        for place, metadata in enumerate(self._rows.metadata):
            if key not in metadata:
                continue
            value = metadata[key]
            number = numbers.setdefault(_typed(value), len(values))
            if number == len(values):
                values.append(value)
            of_document[place] = number
        return Column(of_document[self._rows.documents], values)

    def row(self, passage_id: str) -> int | None:
        """The row of a passage by its full id."""
        ids = self._rows.ids
        place = bisect_left(ids, passage_id)
        return place if place < len(ids) and ids[place] == passage_id else None

    def starting(self, prefix: str) -> Sequence[int]:
        """The rows whose passage id begins with `prefix`."""
        ids = self._rows.ids
        return range(bisect_left(ids, prefix), bisect_left(ids, prefix + "\U0010ffff"))

    def rows_of(self, document_id: str) -> Sequence[int]:
        """The rows of a document, in the order of their ordinals; empty when it is not in the scope."""
        return self._rows_by_document.get(document_id, [])

    @lazy
    def _rows_by_document(self) -> dict[str, list[int]]:
        ids = self._rows.document_ids
        grouped: dict[str, list[int]] = {document_id: [] for document_id in ids}
        for row in np.lexsort((self._rows.ordinals, self._rows.documents)).tolist():
            grouped[ids[self._rows.documents[row]]].append(row)
        return grouped

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """The passages themselves, in the order asked for, checked against their checksums.

        Raises:
            CorruptStore: stored bytes are not those that were written.
            StaleView: one of them was deleted since the view was taken.
        """
        return self._fetch([self._rows.ids[row] for row in rows])


def _typed(value: MetadataValue) -> Hashable:
    """In Python True == 1 == 1.0; as metadata they are three values."""
    if isinstance(value, tuple):
        return tuple((type(item), item) for item in value)
    return (type(value), value)
