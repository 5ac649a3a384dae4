"""A copy of an index as it is at one moment, while others go on writing.

SQLite writes the tables of one snapshot into a new file. The segments which that file lists are copied beside it; they
never change, and only one that was merged away in between is missing then. It gets its name last: a backup that was
stopped cannot be taken for an index. To restore it is to copy the folder.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import xxhash

from wellhead.backends.stores.embedded.connection import FILE_NAME, Database, translated
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.generation import read_segments
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import FOLDER, file_of, sync_folder
from wellhead.backends.stores.embedded.write import start_over
from wellhead.errors import UsageError
from wellhead.records import BackupReport

__all__ = ["backup"]

_BLOCK = 1 << 20


def backup(database: Database, dest: Path) -> BackupReport:
    """Copy the index into the folder `dest`, which is made. The index may be open read-only, and be written to.

    Raises:
        UsageError: `dest` is there and not empty, or lies within the index.
        StorageFull, StoreError: it cannot be written. CorruptStore: the tables cannot be read.
        StaleView: the index cannot be locked from here, and was written to meanwhile.
    """
    started = time.perf_counter()
    named, dest = str(dest), dest.absolute()
    _check(database, dest)
    with database.os_errors():
        dest.mkdir(parents=True, exist_ok=True)
    made = dest / f"{FILE_NAME}.{uuid.uuid4().hex}.new"
    with ExitStack() as stack, _cleaned_up(dest, made):
        held = _hold_segments(database, stack)
        _copy_tables(database, made)
        segments = _copy_segments(database, made, dest, held)
        counts = _finish(database, made)
        with database.os_errors():
            _sync(made)
            made.rename(dest / FILE_NAME)
            sync_folder(dest)
    version, documents, passages = counts
    return BackupReport(
        path=named,
        index_version=version,
        documents=documents,
        passages=passages,
        segments=segments,
        bytes=sum(path.stat().st_size for path in dest.rglob("*") if path.is_file()),
        seconds=time.perf_counter() - started,
    )


def _check(database: Database, dest: Path) -> None:
    full, own = dest.resolve(), database.place.folder.resolve()
    if full == own or own in full.parents:
        raise UsageError(
            "a backup cannot lie within the index that it is of",
            where=str(dest),
            why="it would be lost with it",
            fix="name another folder",
        )
    with database.os_errors():
        if dest.exists() and (not dest.is_dir() or any(dest.iterdir())):
            raise UsageError(
                "the folder for the backup is not empty",
                where=str(dest),
                why="a backup never writes over anything",
                fix="name a new folder, or an empty one",
            )


@contextmanager
def _cleaned_up(dest: Path, made: Path) -> Iterator[None]:
    """Leave nothing behind where it fails: the folder was empty."""
    try:
        yield
    except BaseException:
        for path in dest.glob(f"{made.name}*"):
            path.unlink(missing_ok=True)
        shutil.rmtree(dest / FOLDER, ignore_errors=True)
        raise


def _hold_segments(database: Database, stack: ExitStack) -> dict[bytes, BinaryIO]:
    """The files of the segments as they are listed now: open, so that they can be copied when they are deleted."""
    with database.read() as connection:
        listed = read_segments(connection, database.where)
    held: dict[bytes, BinaryIO] = {}
    for row in listed:
        with suppress(OSError):
            held[row.name] = stack.enter_context(file_of(database.place.folder, row.name.decode()).open("rb"))
    return held


def _copy_tables(database: Database, made: Path) -> None:
    with database.aside() as connection:
        connection.execute("COMMIT")  # SQLite takes a snapshot of its own for this
        connection.execute("VACUUM INTO ?", (str(made),))


def _copy_segments(database: Database, made: Path, dest: Path, held: Mapping[bytes, BinaryIO]) -> int:
    """Copy the files that the copied tables list; how many. Where one is gone or damaged, none: they are made anew."""
    with closing(_open(made)) as connection, translated(str(dest)):
        listed = read_segments(connection, str(dest))
    if not listed:
        return 0
    with database.os_errors():
        (dest / FOLDER).mkdir()
        complete = all(_copy(database, row, dest, held) for row in listed)
        if complete:
            sync_folder(dest / FOLDER)
            return len(listed)
        shutil.rmtree(dest / FOLDER)
    with closing(_open(made)) as connection, translated(str(dest)):
        connection.execute("BEGIN")
        start_over(connection, str(dest))
        connection.execute("COMMIT")
    return 0


def _copy(database: Database, row: StoredSegment, dest: Path, held: Mapping[bytes, BinaryIO]) -> bool:
    """Copy a file; whether it is there and as it was written."""
    name = row.name.decode()
    digest = xxhash.xxh3_128()
    with ExitStack() as stack:
        source = held.get(row.name)
        if source is None:
            try:
                source = stack.enter_context(file_of(database.place.folder, name).open("rb"))
            except FileNotFoundError:
                return False
        target = stack.enter_context(file_of(dest, name).open("xb"))
        while block := source.read(_BLOCK):
            digest.update(block)
            target.write(block)
        target.flush()
        os.fsync(target.fileno())
    return digest.digest() == row.digest


def _finish(database: Database, made: Path) -> tuple[int, int, int]:
    """Let the copy be as every index file is; its version, documents and passages."""
    with closing(_open(made)) as connection, translated(database.where):
        connection.execute("PRAGMA journal_mode = WAL")
        version = read_counter(connection, "version", database.where)
        documents, passages = (
            int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 (names of ours)
            for table in ("documents", "passages")
        )
    return version, documents, passages


def _open(made: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(made, isolation_level=None)
    connection.text_factory = bytes
    return connection


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
