"""Takes what was deleted from the disk for good.

A deleted passage leaves traces: its row in a segment, its words in the vocabulary, free pages in SQLite's file, old
pages in its log. First all segments become one of live rows, beside readers and writers. Then unused terms and vectors
are deleted, the file is written anew without free pages, and the log is emptied: writers wait, readers go on.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.connection import FILE_NAME, Database
from wellhead.backends.stores.embedded.counters import count, read_counter
from wellhead.backends.stores.embedded.failpoint import reached
from wellhead.backends.stores.embedded.generation import read_segments
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.numbers import delete_terms
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import SegmentDamaged, file_of, read_segment
from wellhead.backends.stores.embedded.storage import leftovers, read_storage, unlisted_files
from wellhead.backends.stores.embedded.vocabulary import terms_above
from wellhead.errors import WriterBusy
from wellhead.records import CompactReport, Storage

__all__ = ["compact", "delete_unused_vectors"]

_TRIES = 20
_OUR_NAMES = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm")


def compact(database: Database) -> CompactReport:
    """Take what was deleted before this call from every file of the index. Stopped anywhere, nothing is lost.

    Raises:
        WriterBusy: others write without a pause, or somebody reads an older state for longer than the timeout, so that
            the log cannot be emptied; what was done until then stays done.
        StorageFull: for a moment the tables need their own size again, twice. StoreError: the disk failed otherwise.
    """
    started = time.perf_counter()
    database.refuse_read_only()
    before = _storage(database)
    _make_one_segment(database)
    with database.write() as connection:
        terms = _delete_unused_terms(connection, database)
        vectors = delete_unused_vectors(connection)
        if terms:
            count(connection, "epoch", database.where)  # numbers of terms are given again: nobody may keep old ones
        reached("compact.terms")
    with _outside(database) as connection:
        connection.execute("VACUUM")
        reached("compact.vacuumed")
        _empty_log(connection, database)
        reached("compact.checkpointed")
    files = _sweep(database)
    reached("compact.swept")
    return CompactReport(
        rows=before.dead_rows,
        terms=terms,
        vectors=vectors,
        files=files,
        before=before.bytes,
        after=_storage(database).bytes,
        left=_left(database),
        seconds=time.perf_counter() - started,
    )


def _storage(database: Database) -> Storage:
    with database.read() as connection:
        return read_storage(connection, database.place)


class _Goal(NamedTuple):
    """One segment of all passages up to a number, without those that were deleted up to a version."""

    version: int
    upto: int

    def job(self, connection: sqlite3.Connection, where: str) -> Job | None:
        """What is to do next, or None."""
        segments = read_segments(connection, where)
        covered = segments[-1].last if segments else 0
        if covered < self.upto:
            return Job((), covered + 1, read_counter(connection, "passage", where))
        old = tuple(one for one in segments if one.first <= self.upto)
        sql = "SELECT EXISTS (SELECT 1 FROM gone WHERE version <= ?)"
        if len(old) > 1 or (old and connection.execute(sql, (self.version,)).fetchone()[0]):
            return Job(old, old[0].first, old[-1].last)
        return None


def _make_one_segment(database: Database) -> None:
    goal: _Goal | None = None
    for _ in range(_TRIES):
        with database.aside() as connection:
            if goal is None:
                goal = _Goal(*(read_counter(connection, name, database.where) for name in ("version", "passage")))
            job = goal.job(connection, database.where)
        if job is None:
            return
        carry_out(database, job)
    raise WriterBusy(
        "the segments could not be made one",
        where=database.where,
        why="other processes changed them each time",
        fix="run `wellhead compact` again when less is written; nothing is lost",
    )


def _delete_unused_terms(connection: sqlite3.Connection, database: Database) -> int:
    """Delete the terms that no passage uses, and no row of a segment, live or dead; how many there were."""
    used = terms_above(connection, 0)
    for one in read_segments(connection, database.where):
        used = np.union1d(used, _terms_of(database, one))
    known = np.fromiter((term for (term,) in connection.execute("SELECT term FROM terms")), dtype=np.int64)
    unused: list[int] = np.setdiff1d(known, used).tolist()
    delete_terms(connection, unused, database.where)
    return len(unused)


def _terms_of(database: Database, segment: StoredSegment) -> NDArray[np.int32]:
    """The terms in the file of a segment; of one that cannot be used, none: it is made anew from the tables."""
    with suppress(SegmentDamaged):
        part = read_segment(file_of(database.place.folder, segment.name.decode()), segment.digest)
        terms: NDArray[np.int32] = part.arrays["word.terms"]
        return terms
    return np.zeros(0, dtype=np.int32)


def delete_unused_vectors(connection: sqlite3.Connection) -> int:
    """Delete the vectors that no passage uses; how many there were."""
    sql = "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM passages WHERE vector_key = key)"
    return connection.execute(sql).rowcount


@contextmanager
def _outside(database: Database) -> Iterator[sqlite3.Connection]:
    """The writer's connection, its lock held, but in no transaction: SQLite does some things only there."""
    with database.write() as connection:
        connection.execute("COMMIT")
        yield connection
        connection.execute("BEGIN")  # which `write` then ends


def _empty_log(connection: sqlite3.Connection, database: Database) -> None:
    """Fold the log into the file and cut it to nothing. SQLite waits for readers of an older state, for the timeout."""
    (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise WriterBusy(
            "the index is compacted, but its log could not be emptied: it may still hold deleted text",
            where=str(database.place.log),
            why="somebody reads an older state of the index (a backup or a verification, or a long search)",
            fix="run `wellhead compact` again when that has ended; nothing is lost",
        )


def _sweep(database: Database) -> int:
    """Delete the files of segments that are in no list (nobody can enter one meanwhile), and half a repair."""
    with database.write() as connection, database.os_errors():
        unlisted = unlisted_files(database.place.folder, read_segments(connection, database.where))
        for path in unlisted:
            path.unlink(missing_ok=True)
        unfinished = leftovers(database.place.folder)
        for path in unfinished:
            shutil.rmtree(path)
    return len(unlisted) + len(unfinished)


def _left(database: Database) -> tuple[str, ...]:
    """Other files that begin with the name of ours: a damaged one that `repair` kept, somebody's copy."""
    there = database.place.folder.glob(f"{FILE_NAME}*")
    return tuple(sorted(path.name for path in there if path.name not in _OUR_NAMES))
