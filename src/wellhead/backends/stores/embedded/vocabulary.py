"""The terms that nothing uses any more: found beside reads and writes, deleted in one short transaction.

A term's number is never given again, so nobody who still holds an older state of the index can take it for another.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.connection import Database
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.generation import read_segments
from wellhead.backends.stores.embedded.numbers import delete_terms
from wellhead.backends.stores.embedded.segment import SegmentDamaged, file_of, read_segment

__all__ = ["forget_unused", "terms_above"]

# So many rows of passages are looked at together.
_ROWS = 10_000
# A share of unused terms from which on it is worth to delete them.
_UNUSED_SHARE = 0.1


class _Unused(NamedTuple):
    """Terms that nothing used when `upto` was the highest number of a passage."""

    terms: NDArray[np.int64]
    upto: int


def forget_unused(database: Database) -> int:
    """Delete the terms that no passage uses, where they are many; how many were deleted.

    Raises:
        StoreError: the disk failed. Nothing is deleted then.
    """
    with database.aside() as connection:
        unused = _find(connection, database)
    if unused is None:
        return 0
    with database.write() as connection:
        gone: list[int] = np.setdiff1d(unused.terms, terms_above(connection, unused.upto)).tolist()
        delete_terms(connection, gone, database.where)
    return len(gone)


def _find(connection: sqlite3.Connection, database: Database) -> _Unused | None:
    """Terms in no segment (also not in a dead row of one) and in no newer passage; None where they are few."""
    known = np.fromiter((term for (term,) in connection.execute("SELECT term FROM terms")), dtype=np.int64)
    segments = read_segments(connection, database.where)
    covered = segments[-1].last if segments else 0
    used: NDArray[np.int64] = terms_above(connection, covered)
    for one in segments:
        try:
            part = read_segment(file_of(database.place.folder, one.name.decode()), one.digest)
        except SegmentDamaged:  # it is made anew first
            return None
        used = np.union1d(used, part.arrays["word.terms"])
    unused = np.setdiff1d(known, used)
    if len(unused) < _UNUSED_SHARE * len(known):
        return None
    return _Unused(unused, read_counter(connection, "passage", database.where))


def terms_above(connection: sqlite3.Connection, number: int) -> NDArray[np.int64]:
    """The terms of the passages with a higher number, ascending."""
    cursor = connection.execute("SELECT stems, words FROM passages WHERE passage > ?", (number,))
    used = np.zeros(0, dtype=np.int64)
    while rows := cursor.fetchmany(_ROWS):
        used = np.union1d(used, _terms(rows))
    return used


def _terms(rows: Iterable[tuple[bytes, bytes]]) -> NDArray[np.int32]:
    packed = np.frombuffer(b"".join(blob for pair in rows for blob in pair), dtype="<i4")
    terms: NDArray[np.int32] = packed[::2]
    return terms
