"""The rows of the whole index at one moment: segments, and what is newer than the last of them.

A generation is made from the one before inside one snapshot of the tables: files that are new are opened, rows that
are new are read, and rows that were deleted since are masked.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.build import merge_parts
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.load import Fault, load_sound
from wellhead.backends.stores.embedded.part import Part
from wellhead.backends.stores.embedded.rows import damaged, shown
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import SegmentDamaged, file_of, read_segment
from wellhead.backends.stores.embedded.view import Lookup, PartsView, Slab
from wellhead.errors import CorruptStore

__all__ = ["Generation", "Held", "advance", "gone_between", "read_segments"]

log = logging.getLogger("wellhead")

_COUNTERS = ("version", "layout", "epoch", "passage")


class Held(NamedTuple):
    """A part in use. `live` bool[n], None where all rows are; `segment` is None for rows that are in no segment.

    `damaged`: the file of the segment could not be used, and the rows were read from the tables. `faults`: the rows of
    the tables that could not be read.
    """

    part: Part
    live: NDArray[np.bool_] | None
    segment: StoredSegment | None = None
    damaged: bool = False
    faults: tuple[Fault, ...] = ()


class Generation(NamedTuple):
    """The index at `version`; `layout` grows with every change of the segments, `epoch` whenever all began anew.

    `upto`: the highest number of a passage that was given.
    """

    version: int
    layout: int
    epoch: int
    upto: int
    held: tuple[Held, ...]

    @property
    def broken(self) -> frozenset[bytes]:
        """The names of the segments whose files could not be used."""
        return frozenset(held.segment.name for held in self.held if held.damaged and held.segment is not None)

    def fault(self, scope: str) -> CorruptStore | None:
        """What is wrong with the first row that could not be read and says that it is of this scope."""
        faults = (fault for held in self.held for fault in held.faults)
        return next((fault.error for fault in faults if fault.scope == scope), None)

    def view(self, scope: str, lookup: Lookup) -> PartsView:
        """The rows of one scope."""
        slabs: list[Slab] = []
        base = 0
        for held in self.held:
            first, last = held.part.span(scope)
            if first < last:
                slabs.append(Slab(held.part, first, last, base, _cut(held.live, first, last)))
                base += last - first
        return PartsView(self.version, scope, slabs, lookup)


def _cut(live: NDArray[np.bool_] | None, first: int, last: int) -> NDArray[np.bool_] | None:
    own = None if live is None else live[first:last]
    return None if own is None or own.all() else own


def advance(
    connection: sqlite3.Connection, before: Generation | None, folder: Path, where: str, *, patient: bool
) -> Generation:
    """The generation of this snapshot. Rows of a segment whose file cannot be used are read from the tables.

    Args:
        before: the one to go on from. patient: let a fresh snapshot be tried first where a file cannot be used.

    Raises:
        SegmentDamaged: where `patient`, instead of reading from the tables.
        CorruptStore: a row that has to be read is damaged.
    """
    if before is not None and _is_now(connection, before):
        return before
    version, layout, epoch, upto = (read_counter(connection, name, where) for name in _COUNTERS)
    if before is not None and before.epoch != epoch:
        before = None
    segments = read_segments(connection, where)
    held = [_segment(connection, row, before, folder, where, patient=patient) for row in segments]
    covered = segments[-1].last if segments else 0
    return Generation(version, layout, epoch, upto, (*held, *_tail(connection, before, covered, upto, where)))


def _is_now(connection: sqlite3.Connection, before: Generation) -> bool:
    """Whether nothing was written since; asked by every search, so the rows are only compared."""
    counted: dict[bytes, int] = dict(connection.execute("SELECT name, value FROM counters").fetchall())
    now = tuple(counted.get(name.encode(), 0) for name in _COUNTERS)
    return now == (before.version, before.layout, before.epoch, before.upto)


def read_segments(connection: sqlite3.Connection, where: str) -> list[StoredSegment]:
    """The segments, in the order of their numbers."""
    rows = [StoredSegment(*row) for row in connection.execute("SELECT * FROM segments ORDER BY first")]
    for row in rows:
        if checksum("segments", *row[:-1]) != row.checksum:
            damaged("segments", f"the entry of segment {shown(row.name)}", where)
    return rows


def _segment(
    connection: sqlite3.Connection,
    row: StoredSegment,
    before: Generation | None,
    folder: Path,
    where: str,
    *,
    patient: bool,
) -> Held:
    for held in before.held if before is not None else ():
        if held.segment == row:
            assert before is not None
            return held._replace(live=_masked(held, gone_between(connection, before.version, row, where)))
    try:
        held = Held(read_segment(file_of(folder, row.name.decode()), row.digest), None, row)
    except SegmentDamaged as error:
        if patient:
            raise
        log.warning("a segment of %s cannot be used, its rows are read from the tables: %s", where, error)
        part, faults = load_sound(connection, row.first, row.last, where)
        return Held(part, None, row, damaged=True, faults=faults)
    return held._replace(live=_masked(held, gone_between(connection, row.version, row, where)))


def gone_between(connection: sqlite3.Connection, version: int, segment: StoredSegment, where: str) -> NDArray[np.int64]:
    """The numbers in the range of a segment that were deleted after `version`."""
    sql = "SELECT passage, version, checksum FROM gone WHERE passage BETWEEN ? AND ? AND version > ?"
    return _gone(connection.execute(sql, (segment.first, segment.last, version)).fetchall(), where)


def _gone(rows: Sequence[tuple[int, int, bytes]], where: str) -> NDArray[np.int64]:
    for number, version, stored in rows:
        if checksum("gone", number, version) != stored:
            damaged("gone", f"the entry of passage {number}, which was deleted,", where)
    return np.array([row[0] for row in rows], dtype=np.int64)


def _masked(held: Held, gone: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    rows = held.part.rows_of(gone)
    if not len(rows):
        return held.live
    live = np.ones(len(held.part), dtype=np.bool_) if held.live is None else held.live.copy()
    live[rows] = False
    return live


def _tail(connection: sqlite3.Connection, before: Generation | None, covered: int, upto: int, where: str) -> list[Held]:
    """The parts of the rows above `covered`: those from before without what was deleted, and what is new."""
    tail = [held for held in before.held if held.segment is None] if before is not None else []
    known = before.upto if before is not None else covered
    # Rows that have come into a segment meanwhile: the parts are few and small, so all that is left is read anew.
    if any(held.part.numbers.min(initial=upto) <= covered for held in tail) or known < covered:
        tail, known = [], covered
    if before is not None and tail:
        sql = "SELECT passage, version, checksum FROM gone WHERE version > ? AND passage > ?"
        gone = _gone(connection.execute(sql, (before.version, covered)).fetchall(), where)
        tail = [held._replace(live=_masked(held, gone)) for held in tail]
    if upto > known:
        new, faults = load_sound(connection, known + 1, upto, where)
        # Of two neighbours the older is the larger, so that there are few, and each row is merged few times.
        while tail and len(tail[-1].part) <= len(new):
            older = tail.pop()
            new, faults = merge_parts([older.part, new], [older.live, None]), (*older.faults, *faults)
        tail.append(Held(new, None, faults=faults))
    return [held for held in tail if len(held.part) or held.faults]
