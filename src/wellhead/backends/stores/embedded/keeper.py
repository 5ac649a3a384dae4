"""Keeps the segments in shape: what is new goes into a file, small files become one, dead rows go.

The work is done beside reads and writes, from one snapshot of the tables; only to enter the new file in the list takes
the writer's lock, for a moment. Whoever was faster wins: a file whose sources are not in the list any more is dropped.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.build import merge_parts
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.connection import Database
from wellhead.backends.stores.embedded.counters import count, read_counter
from wellhead.backends.stores.embedded.failpoint import reached
from wellhead.backends.stores.embedded.generation import gone_between, read_segments
from wellhead.backends.stores.embedded.load import load_part
from wellhead.backends.stores.embedded.part import Part
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import SegmentDamaged, file_of, read_segment, write_segment
from wellhead.backends.stores.embedded.vocabulary import forget_unused
from wellhead.errors import StoreError, WellheadError

__all__ = ["FLUSH_ROWS", "Job", "Keeper", "carry_out", "plan", "waiting_rows"]

log = logging.getLogger("wellhead")

# So many new rows are worth a file while rows come in: half of what a file of 2,000 costs is its vocabulary. Once they
# do not, fewer are, since every process reads from the tables what is in no file.
FLUSH_ROWS = 6_000
_IDLE_ROWS = 2_000
# A share of dead rows from which on a file is written anew.
DEAD_SHARE = 0.1
# Neighbours are merged until each is so many times larger than all newer ones together: while rows come in (there may
# be three of a size then, and a row is written again half as often as with 1), and after.
_BUSY_RATIO, _IDLE_RATIO = 1 / 3, 8
_IDLE_AFTER_S = 1.0
# With so many times FLUSH_ROWS waiting, writers wait too.
_BEHIND = 6
# At the end fewer new rows are worth a file, since every process after this one would read them from the tables; and
# for every row that was written no more than so many are written again, and never so many that somebody must wait long.
_LAST_ROWS = 100
_AGAIN, _AGAIN_MOST = 2, 100_000


class Job(NamedTuple):
    """Make one segment of these, and of the passages numbered `first` to `last` where they are in none."""

    sources: tuple[StoredSegment, ...]
    first: int
    last: int

    @property
    def rows(self) -> int:
        """At most so many rows are written."""
        return sum(one.rows for one in self.sources) if self.sources else self.last - self.first + 1


def plan(
    connection: sqlite3.Connection,
    where: str,
    ratio: float = _BUSY_RATIO,
    broken: frozenset[bytes] = frozenset(),
    flush: int | None = None,
) -> Job | None:
    """What is to do next, or None.

    Args:
        broken: names of segments whose files cannot be used.
        flush: so many new rows are worth a file; None for FLUSH_ROWS.
    """
    segments = read_segments(connection, where)
    for one in segments:
        if one.name in broken:
            return Job((one,), one.first, one.last)
    covered = segments[-1].last if segments else 0
    waiting = read_counter(connection, "passage", where) - covered
    if waiting >= (FLUSH_ROWS if flush is None else flush):
        return Job((), covered + 1, covered + waiting)
    return _merge(segments, ratio) or _clearing(connection, segments)


def waiting_rows(connection: sqlite3.Connection, where: str) -> tuple[int, bool]:
    """How many numbers of passages stand in no segment, and whether there are segments."""
    (covered,) = connection.execute("SELECT max(last) FROM segments").fetchone()
    return read_counter(connection, "passage", where) - (covered or 0), covered is not None


def _merge(segments: Sequence[StoredSegment], ratio: float) -> Job | None:
    """The first segment that is not much larger than all newer ones together, and these."""
    for place in range(len(segments) - 1):
        if segments[place].rows <= ratio * sum(newer.rows for newer in segments[place + 1 :]):
            return Job(tuple(segments[place:]), segments[place].first, segments[-1].last)
    return None


def _clearing(connection: sqlite3.Connection, segments: Sequence[StoredSegment]) -> Job | None:
    """The first segment of which so many rows are dead that it is worth to be written anew."""
    sql = "SELECT count(*) FROM gone WHERE passage BETWEEN ? AND ? AND version > ?"
    for one in segments:
        (dead,) = connection.execute(sql, (one.first, one.last, one.version)).fetchone()
        if dead and dead >= DEAD_SHARE * one.rows:
            return Job((one,), one.first, one.last)
    return None


def carry_out(database: Database, job: Job) -> bool:
    """Do a job; False where somebody else was faster.

    Raises:
        StorageFull: the disk is full. StoreError: it failed otherwise. Nothing has changed then.
        CorruptStore: a row that has to be read is damaged.
    """
    with database.aside() as connection:
        version = read_counter(connection, "version", database.where)
        part = _part(connection, database, job)
    name = uuid.uuid4().hex
    path = file_of(database.place.folder, name)
    with database.os_errors():
        digest = write_segment(path, part)
    row = StoredSegment(name.encode(), job.first, job.last, len(part), version, digest, b"")
    try:
        reached("swap.before")
        done = _enter(database, job, row)
        reached("swap.after")
    except BaseException:
        # The commit may have come through: then the file is in use.
        _discard_unless_listed(database, row)
        raise
    gone = job.sources if done else (row,)
    for old in gone:
        with suppress(OSError):  # another program may hold it open; `compact` sweeps up
            file_of(database.place.folder, old.name.decode()).unlink(missing_ok=True)
    return done


def _part(connection: sqlite3.Connection, database: Database, job: Job) -> Part:
    if not job.sources:
        return load_part(connection, job.first, job.last, database.where)
    parts = [_source(connection, database, row) for row in job.sources]
    return merge_parts([part for part, _ in parts], [live for _, live in parts])


def _source(
    connection: sqlite3.Connection, database: Database, row: StoredSegment
) -> tuple[Part, NDArray[np.bool_] | None]:
    """The part of a segment, and which of its rows are live. What its file lost is read from the tables."""
    try:
        part = read_segment(file_of(database.place.folder, row.name.decode()), row.digest)
    except SegmentDamaged:
        return load_part(connection, row.first, row.last, database.where), None
    live = np.ones(len(part), dtype=np.bool_)
    live[part.rows_of(gone_between(connection, row.version, row, database.where))] = False
    return part, live


def _enter(database: Database, job: Job, row: StoredSegment) -> bool:
    """Put a segment in the place of its sources, unless one of them is not in the list any more."""
    with database.write() as connection:
        listed = read_segments(connection, database.where)
        between = tuple(one for one in listed if one.first <= job.last and one.last >= job.first)
        if between != job.sources or not file_of(database.place.folder, row.name.decode()).exists():
            return False
        for one in job.sources:
            connection.execute("DELETE FROM segments WHERE name = ?", (one.name.decode(),))
        values = (row.name.decode(), *row[1:-1])
        connection.execute(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, checksum("segments", *values))
        )
        connection.execute(
            "DELETE FROM gone WHERE passage BETWEEN ? AND ? AND version <= ?", (job.first, job.last, row.version)
        )
        count(connection, "layout", database.where)
        reached("swap.middle")
    return True


def _discard_unless_listed(database: Database, row: StoredSegment) -> None:
    with suppress(WellheadError, OSError):
        with database.aside() as connection:
            listed = {one.name for one in read_segments(connection, database.where)}
        if row.name not in listed:
            file_of(database.place.folder, row.name.decode()).unlink(missing_ok=True)


def _idle_rows() -> int:
    return min(_IDLE_ROWS, FLUSH_ROWS)


class Keeper:
    """One thread that does what is to do, as long as there is something; no thread while there is nothing.

    Args:
        database: may be written to.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.failure: WellheadError | None = None
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._asked = False
        self._busy = False
        self._stopped = False
        self._waiting = 0
        self._written = 0
        self._broken: frozenset[bytes] = frozenset()

    def mend(self, broken: frozenset[bytes]) -> None:
        """Make the segments of these names anew: their files cannot be used."""
        with self._own():
            self._broken |= broken
            self._ask()

    def told(self, waiting: int, *, segments: bool) -> None:
        """Something was written. `waiting`: how many numbers stand in no segment; `segments`: whether there are any.

        Returns at once, unless the thread cannot keep up.
        """
        with self._own():
            self._waiting = waiting
            if waiting < _idle_rows() and not segments:
                return
            self._ask()
            self._changed.wait_for(lambda: self._waiting < _BEHIND * FLUSH_ROWS or not (self._asked or self._busy))

    def settle(self) -> None:
        """Wait until nothing is left to do.

        Raises:
            StoreError: what stopped the thread.
        """
        with self._own():
            self._ask()
            self._changed.wait_for(lambda: not (self._asked or self._busy))
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        """Let the thread end after the job that it is at."""
        with self._own():
            self._stopped = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Let the thread end, and leave what was written in few files: that costs no more than writing it did."""
        self.stop()
        left = min(_AGAIN * (self._written + self._waiting), _AGAIN_MOST)
        flush = min(_LAST_ROWS, FLUSH_ROWS)
        with self._failure_told():
            while left > 0 and (job := self._next(_IDLE_RATIO, flush)) is not None and job.rows <= left:
                left -= job.rows
                carry_out(self._database, job)
        self._written = self._waiting = 0

    def _own(self) -> threading.Condition:
        if self._process != os.getpid():  # a fork has no thread, and maybe a lock that nobody will release
            self._begin()
        return self._changed

    def _ask(self) -> None:
        self._asked = True
        self._changed.notify_all()
        if self._thread is None and not self._stopped:
            self._thread = threading.Thread(target=self._run, name="wellhead-keeper", daemon=True)
            self._thread.start()
        elif self._stopped:
            self._asked = False

    def _run(self) -> None:
        while True:
            with self._changed:
                asked = self._changed.wait_for(lambda: self._asked or self._stopped, _IDLE_AFTER_S)
                if self._stopped:
                    self._ended()
                    return
                self._asked, self._busy = False, True
            self._work(asked=asked)
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                if not asked and not self._asked:
                    self._ended()
                    return

    def _ended(self) -> None:
        self._thread, self._asked, self._busy = None, False, False
        self._changed.notify_all()

    def _work(self, *, asked: bool) -> None:
        """Do one job after the other, until there is none. `asked`: rows are coming in."""
        ratio, flush = (_BUSY_RATIO, FLUSH_ROWS) if asked else (_IDLE_RATIO, _idle_rows())
        with self._failure_told():
            while not self._stopped and (job := self._next(ratio, flush)) is not None:
                self._written += 0 if job.sources else job.rows
                if carry_out(self._database, job) and self._has_dropped(job):
                    forget_unused(self._database)
            self.failure = None

    @contextmanager
    def _failure_told(self) -> Iterator[None]:
        try:
            yield
        except WellheadError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 (whoever waits for this thread must be told, whatever happened)
            self._failed(
                StoreError(
                    "the segments could not be kept in shape",
                    where=self._database.where,
                    why=f"{type(error).__name__}: {error}",
                    fix="run `wellhead verify`; searches go on, only slower",
                )
            )

    def _failed(self, error: WellheadError) -> None:
        """The tables hold everything, so searches go on; it is tried again after the next write."""
        self.failure = error
        log.warning("the segments of %s could not be kept in shape: %s", self._database.where, error)

    def _has_dropped(self, job: Job) -> bool:
        """Whether a job left out so many dead rows that their words may be of no use any more."""
        before = sum(one.rows for one in job.sources)
        with self._database.aside() as connection:
            sql = "SELECT coalesce(sum(rows), 0) FROM segments WHERE first >= ? AND last <= ?"
            (after,) = connection.execute(sql, (job.first, job.last)).fetchone()
        return bool(before - after >= DEAD_SHARE * before > 0)

    def _next(self, ratio: float, flush: int) -> Job | None:
        with self._database.aside() as connection:
            waiting = waiting_rows(connection, self._database.where)[0]
            job = plan(connection, self._database.where, ratio, self._broken, flush)
        with self._changed:
            self._waiting = waiting
            self._changed.notify_all()
        return job
