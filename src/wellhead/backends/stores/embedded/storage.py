"""How an index lies on the disk: its segments, what waits for them, and sizes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.place import Place
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import FOLDER, SUFFIX, file_of
from wellhead.records import Storage

__all__ = ["WORKSHOP", "leftovers", "read_storage", "unlisted_files"]

# A folder in the index's own, in which `repair` makes the new file. While it works, nobody else has the index open.
WORKSHOP = "wellhead.repair-"


def read_storage(
    connection: sqlite3.Connection, place: Place, *, broken: Iterable[bytes] = (), failure: str = ""
) -> Storage:
    """What this snapshot of the tables and the folder tell; rows are counted, and none is read.

    Args:
        broken: names of segments whose files could not be used. failure: of whoever keeps them in shape.
    """
    listed = [StoredSegment(*row) for row in connection.execute("SELECT * FROM segments ORDER BY first")]
    sound = [row for row in listed if checksum("segments", *row[:-1]) == row.checksum]
    names = {_name(row): row in sound and file_of(place.folder, _name(row)).is_file() for row in listed}
    unusable = {name for name, usable in names.items() if not usable} | {name.decode() for name in broken}
    dead = sum(_count(connection, _DEAD, row.first, row.last, row.version) for row in sound)
    covered = max((row.last for row in sound), default=0)
    return Storage(
        segments=len(listed),
        segment_rows=sum(row.rows for row in sound) - dead,
        newest_rows=_count(connection, _NEWEST, covered),
        dead_rows=dead,
        unusable=tuple(sorted(unusable & names.keys())),
        unlisted=tuple(path.name for path in unlisted_files(place.folder, listed)),
        tables_bytes=_size(place.path),
        log_bytes=_size(place.log),
        segments_bytes=sum(map(_size, (place.folder / FOLDER).glob("*"))),
        failure=failure,
    )


_DEAD = "SELECT count(*) FROM gone WHERE passage BETWEEN ? AND ? AND version > ?"
_NEWEST = "SELECT count(*) FROM passages WHERE passage > ?"


def _count(connection: sqlite3.Connection, sql: str, *values: int) -> int:
    return int(connection.execute(sql, values).fetchone()[0])


def unlisted_files(folder: Path, listed: Iterable[StoredSegment]) -> list[Path]:
    """The files of segments that no row names, by name."""
    names = {_name(row) + SUFFIX for row in listed}
    return sorted(path for path in (folder / FOLDER).glob(f"*{SUFFIX}") if path.name not in names)


def leftovers(folder: Path) -> list[Path]:
    """The folders of repairs that were stopped: for whoever holds the writer's lock, no repair is at work."""
    return sorted(folder.glob(f"{WORKSHOP}*"))


def _name(row: StoredSegment) -> str:
    """The name of a segment, whatever damage made of it."""
    name: object = row.name
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # deleted meanwhile
        return 0
