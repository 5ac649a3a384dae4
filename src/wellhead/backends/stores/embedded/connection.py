"""Connections to one SQLite file: opening, transactions, threads, forks, and its errors in our words.

One connection reads and one writes, each behind a lock: readers wait for one another's short reads, never for a commit.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wellhead.backends.stores.embedded.schema import check_schema, create_schema, is_empty
from wellhead.errors import CorruptStore, StorageFull, StoreError, UsageError, WellheadError, WriterBusy

__all__ = ["FILE_NAME", "Database", "translated"]

FILE_NAME = "wellhead.sqlite"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
# A constraint that fails after our own checks passed, or a table that is missing, means damaged pages.
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH)
_REBUILD = "run `wellhead verify`, or index the documents again into an empty folder"


@contextmanager
def translated(where: str) -> Iterator[None]:
    """SQLite's errors in our words, the original chained."""
    try:
        yield
    except sqlite3.Error as error:
        raise _in_our_words(error, where) from error
    except UnicodeDecodeError as error:  # a name or a message of SQLite's own that is no text any more
        raise CorruptStore("the index is damaged", where=where, why=str(error), fix=_REBUILD) from error


def _in_our_words(error: sqlite3.Error, where: str) -> WellheadError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _BUSY:
        fix = "wait until the other run has ended, then try again"
        return WriterBusy("another process is writing to this index", where=where, why=str(error), fix=fix)
    if code == sqlite3.SQLITE_FULL:
        fix = "free some space and run it again; what was written before is safe"
        return StorageFull("no space left for the index", where=where, why=str(error), fix=fix)
    if code in _CORRUPT:
        return CorruptStore("the index is damaged", where=where, why=str(error), fix=_REBUILD)
    fix = "check that the folder exists, may be read and written, and lies on a healthy disk with space left"
    return StoreError("the index cannot be read or written", where=where, why=str(error), fix=fix)


class Database:
    """The SQLite file of one index folder.

    Args:
        folder: made when missing, unless `read_only`.
        read_only: True also when the folder or the file may not be written to.
        timeout_s: how long a writer waits for another one.

    Raises:
        StoreError: no index there and none may be made, or the file cannot be opened.
        CorruptStore: the file is damaged or another program's.
        StaleIndex: a newer format.
    """

    def __init__(self, folder: Path, *, read_only: bool, timeout_s: float) -> None:
        self.path = folder / FILE_NAME
        self.where = str(folder)
        self._timeout_s = timeout_s
        self.read_only = read_only or not _writable(self.path)
        self._read_lock = threading.RLock()
        self._write_lock = threading.RLock()
        self._connections: dict[str, sqlite3.Connection] = {}
        self._closed = False
        # Without this an index that nobody closed would leave its log beside the file until the next open.
        weakref.finalize(self, _close_all, self._connections)
        with translated(self.where):
            self._prepare()
        _open.add(self)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One snapshot: everything read inside belongs to one version."""
        with self._read_lock, translated(self.where):
            connection = self._connection("reader")
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                _roll_back(connection)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed to the disk at the end, undone when the body raises.

        Raises:
            StoreError: the index is open read-only.
            WriterBusy: another process wrote for longer than the timeout.
        """
        self._refuse_read_only()
        with self._write_lock, translated(self.where):
            connection = self._connection("writer")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    @contextmanager
    def aside(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own, one snapshot, for long reads that must not hold up others."""
        self._refuse_closed()
        with translated(self.where):
            connection = self._connect("ro")
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.close()

    def size(self) -> int:
        """Bytes on disk, with SQLite's log."""
        return sum(file.stat().st_size for file in (self.path, _log_of(self.path)) if file.exists())

    def close(self) -> None:
        """Close the connections, folding the log into the file; a second call does nothing."""
        with self._write_lock, self._read_lock, translated(self.where):
            self._closed = True
            _close_all(self._connections)

    def hold(self) -> None:
        """Wait until no thread is inside a transaction, and let none begin."""
        self._write_lock.acquire()
        self._read_lock.acquire()

    def release(self, *, in_child: bool) -> None:
        """Let transactions begin again; a forked child opens connections of its own, for SQLite's survive no fork."""
        if in_child:
            _close_all(self._connections)
        self._read_lock.release()
        self._write_lock.release()

    def _prepare(self) -> None:
        if not self.path.exists():
            self._refuse_missing()
            with _os_errors(self.where):
                self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = self._connection("reader" if self.read_only else "writer")
        if is_empty(connection):
            self._refuse_missing()
            self._create(connection)
        check_schema(connection, self.where)

    def _create(self, connection: sqlite3.Connection) -> None:
        # Switching to the log needs the file alone and does not wait by itself when two processes create one index.
        _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone(), self._timeout_s)
        with self.write():
            if is_empty(connection):
                create_schema(connection)

    def _connection(self, use: str) -> sqlite3.Connection:
        self._refuse_closed()
        if use not in self._connections:
            self._connections[use] = self._connect("ro" if self.read_only else "rwc")
        return self._connections[use]

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        if self.read_only and _cannot_lock(self.path):
            uri += "&immutable=1"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = bytes  # damaged text must reach the checksum, not fail to decode
        try:
            for setting in ("synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF", "cell_size_check = ON"):
                connection.execute(f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _refuse_closed(self) -> None:
        if self._closed:
            raise UsageError("the store is closed", where=self.where, fix="open the index again")

    def _refuse_read_only(self) -> None:
        self._refuse_closed()
        if self.read_only:
            raise StoreError(
                "the index is open read-only",
                where=self.where,
                why="it was opened so, or its folder may not be written to",
                fix="open it without read_only, in a folder that may be written to",
            )

    def _refuse_missing(self) -> None:
        if self.read_only:
            raise StoreError(
                "there is no index here",
                where=self.where,
                why=f"{FILE_NAME} is missing or empty, and none may be made",
                fix="name the folder of an index, or make one with `wellhead index`",
            )


def _writable(path: Path) -> bool:
    """Whether the file, and SQLite's log beside it, may be written (where there is none yet: probably)."""
    if path.exists():
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return not path.parent.exists() or os.access(path.parent, os.W_OK)


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _cannot_lock(path: Path) -> bool:
    """In a folder that nobody may write to, SQLite cannot keep its locks; without a log it needs none."""
    log = _log_of(path)
    return not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)


def _patiently(action: Callable[[], object], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@contextmanager
def _os_errors(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        fix = "choose a folder that may be written to"
        raise StoreError("the folder of the index cannot be made", where=where, why=str(error), fix=fix) from error


def _roll_back(connection: sqlite3.Connection) -> None:
    # On a full or failing disk SQLite has rolled back by itself, and says so with an error of its own.
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _close_all(connections: dict[str, sqlite3.Connection]) -> None:
    while connections:
        connections.popitem()[1].close()


_open: weakref.WeakSet[Database] = weakref.WeakSet()
_forking = threading.RLock()
_held: list[Database] = []


def _before_fork() -> None:
    _forking.acquire()
    _held.extend(_open)
    for database in _held:
        database.hold()


def _after_fork(*, in_child: bool) -> None:
    while _held:
        _held.pop().release(in_child=in_child)
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )
