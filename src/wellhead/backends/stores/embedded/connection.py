"""Connections to one SQLite file: opening, transactions, threads, forks, and its errors in our words.

One connection reads and one writes, each behind a lock: readers wait for one another's short reads, never for a commit.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

from wellhead.backends.stores.embedded.advice import REBUILD
from wellhead.backends.stores.embedded.failpoint import reached
from wellhead.backends.stores.embedded.migrate import migrate, refuse_older
from wellhead.backends.stores.embedded.place import FILE_NAME, Place, Stamp, discard, put_in_place
from wellhead.backends.stores.embedded.schema import check_schema, create_schema, is_empty
from wellhead.errors import CorruptStore, StaleView, StorageFull, StoreError, UsageError, WellheadError, WriterBusy

__all__ = ["FILE_NAME", "Database", "os_errors", "translated"]

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
# A constraint that fails after our own checks passed, or a table that is missing, means damaged pages.
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """SQLite's errors in our words, the original chained."""
    try:
        yield
    except sqlite3.Error as error:
        raise _in_our_words(error, where) from error
    except UnicodeDecodeError as error:  # a name or a message of SQLite's own that is no text any more
        raise CorruptStore("the index is damaged", where=where, why=str(error), fix=REBUILD) from error


@contextmanager
def os_errors(where: str) -> Iterator[None]:
    """The system's errors about files, in our words, the original chained."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WellheadError):
            raise
        raise _system_error(error, where) from error


def _in_our_words(error: sqlite3.Error, where: str) -> WellheadError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _BUSY:
        fix = "wait until the other run has ended, then try again"
        return WriterBusy("another process is writing to this index", where=where, why=str(error), fix=fix)
    if code == sqlite3.SQLITE_FULL:
        return _full(where, str(error))
    if code in _CORRUPT:
        return CorruptStore("the index is damaged", where=where, why=str(error), fix=REBUILD)
    fix = "check that the folder exists, may be read and written, and lies on a healthy disk with space left"
    return StoreError("the index cannot be read or written", where=where, why=str(error), fix=fix)


def _system_error(error: OSError, where: str) -> StoreError:
    why = error.strerror or type(error).__name__
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(where, why)
    fix = "check that the folder may be written, and lies on a healthy disk"
    return StoreError("the index cannot be written", where=where, why=why, fix=fix)


def _full(where: str, why: str) -> StorageFull:
    fix = "free some space and run it again; what was written before is safe"
    return StorageFull("no space left for the index", where=where, why=why, fix=fix)


# Ids are hashes, so many writes in a row touch the same pages of SQLite's indexes: the log grows to 16 MB before it is
# folded into the file, so that each page is written there once for many of them.
_SETTINGS = (
    "synchronous = FULL",
    "foreign_keys = ON",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "wal_autocheckpoint = 4000",
)


class Database:
    """The SQLite file of one index folder.

    Before every transaction it is made sure that the file still is the one that was opened. Where its folder may
    not be written to, SQLite cannot keep its locks: the file is then read as one that does not change, and opened
    again as soon as it, or its log, has changed.

    Args:
        folder: made when missing, unless `read_only`.
        read_only: True also when the folder or the file may not be written to.
        timeout_s: how long a writer waits for another one.

    Raises:
        StoreError: no index there and none may be made, or the file cannot be opened.
        CorruptStore: the file is damaged, empty or another program's.
        StaleIndex: a newer format.
    """

    def __init__(self, folder: Path, *, read_only: bool, timeout_s: float) -> None:
        self.place = Place(folder)
        self.where = self.place.where
        self._timeout_s = timeout_s
        self.read_only = read_only or not self.place.writable()
        # Whoever may not write the file must leave no log beside it: it would lock the owner out.
        self._unlocked = self.read_only and not self.place.writable()
        self._read_lock = threading.RLock()
        self._write_lock = threading.RLock()
        self._asides = threading.Condition()
        self._aside = 0
        self._connections: dict[str, sqlite3.Connection] = {}
        self._stamp: Stamp = ()
        self._opened = 0
        self._closed = False
        # Without this an index that nobody closed would leave its log beside the file until the next open.
        weakref.finalize(self, _close_all, self._connections)
        with translated(self.where):
            self._prepare()
        _open.add(self)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One snapshot: everything read inside belongs to one version.

        Raises:
            StoreError: the index was removed or replaced.
            StaleView: it was written to meanwhile, and is open in a way that knows no snapshots.
        """
        with self._read_lock, translated(self.where):
            connection = self._connection("reader")
            with self._untorn():
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    _roll_back(connection)

    def marker(self) -> object:
        """What equals itself as long as nobody, in whatever process, has written: asked for by every search.

        Raises:
            StoreError: the index was removed or replaced.
        """
        with self._read_lock, translated(self.where):
            connection = self._connection("reader")
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            # It means something on one connection only.
            return self._opened, version

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed to the disk at the end, undone when the body raises.

        Raises:
            StoreError: the index is open read-only, or was removed or replaced.
            WriterBusy: another process wrote for longer than the timeout.
        """
        self.refuse_read_only()
        with self._write_lock, translated(self.where):
            connection = self._connection("writer")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                self.place.check()
                reached("append.before_commit")
                connection.execute("COMMIT")
                reached("append.after_commit")
            except BaseException:
                _roll_back(connection)
                raise

    @contextmanager
    def aside(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own, one snapshot, for long reads that must not hold up others."""
        self.refuse_closed()
        self.place.check()
        with self._beside(), translated(self.where), self._untorn(), closing(self._connect("ro")) as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Counted: a fork while a thread is inside SQLite would leave its locks taken in the child, for ever."""
        with self._asides:
            self._aside += 1
        try:
            yield
        finally:
            with self._asides:
                self._aside -= 1
                self._asides.notify_all()

    @contextmanager
    def _untorn(self) -> Iterator[None]:
        """Without locks, a write during a read would mix two versions: refuse what was read then."""
        before = self.place.stamp() if self._is_immutable() else None
        try:
            yield
        except (sqlite3.Error, CorruptStore):
            self._refuse_torn(before)
            raise
        self._refuse_torn(before)

    def _refuse_torn(self, before: Stamp | None) -> None:
        if before is not None and self.place.stamp() != before:
            raise StaleView(
                "the index was written to while it was read",
                where=self.where,
                why="its folder may not be written to from here, so nothing can hold up the writer",
                fix="search again",
            )

    def os_errors(self) -> AbstractContextManager[None]:
        """The system's errors about files beside the tables, in our words, the original chained."""
        return os_errors(self.where)

    def close(self) -> None:
        """Close the connections, folding the log into the file; a second call does nothing."""
        with self._write_lock, self._read_lock, translated(self.where):
            self._closed = True
            _close_all(self._connections)

    def hold(self) -> None:
        """Wait until no thread is inside a transaction, and let none begin."""
        self._asides.acquire()
        self._asides.wait_for(lambda: not self._aside)
        self._write_lock.acquire()
        self._read_lock.acquire()

    def release(self, *, in_child: bool) -> None:
        """Let transactions begin again; a forked child opens connections of its own, for SQLite's survive no fork."""
        if in_child:
            _close_all(self._connections)
        self._read_lock.release()
        self._write_lock.release()
        self._asides.release()

    def _prepare(self) -> None:
        with _os_errors(self.where):
            there = self.place.path.exists()
        if not there:
            self._refuse_missing()
            self._create()
        self.place.remember()
        connection = self._connection("reader" if self.read_only else "writer")
        if is_empty(connection):
            self._refuse_empty()
        if self.read_only:
            refuse_older(connection, self.where)
        else:
            migrate(connection, self.where)
        check_schema(connection, self.where)
        if not self.read_only:
            connection.execute("PRAGMA journal_mode = WAL")  # a file that was copied or repaired may have lost it

    def _create(self) -> None:
        """Make the file under another name first: it never lies there half made, whoever is stopped or also at it."""
        made = self.place.path.with_name(f"{FILE_NAME}.{uuid.uuid4().hex}.new")
        with _os_errors(self.where):
            made.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._connect("rwc", made)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN")
                create_schema(connection)
                connection.execute("COMMIT")
            with _os_errors(self.where):
                put_in_place(made, self.place.path)
        finally:
            discard(made)

    def _connection(self, use: str) -> sqlite3.Connection:
        self.refuse_closed()
        self.place.check()
        if self._unlocked and (stamp := self.place.stamp()) != self._stamp:
            _close_all(self._connections)
            self._stamp = stamp
        if use not in self._connections:
            self._connections[use] = self._connect("ro" if self.read_only else "rw")
            self._opened += 1
        return self._connections[use]

    def _is_immutable(self) -> bool:
        """What is in the log can be read only by the locks that its writer keeps; without a log none are needed."""
        return self._unlocked and not self.place.has_log()

    def _connect(self, mode: str, path: Path | None = None) -> sqlite3.Connection:
        uri = f"{(path or self.place.path).as_uri()}?mode={mode}"
        if self._is_immutable():
            uri += "&immutable=1"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._timeout_s, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = bytes  # damaged text must reach the checksum, not fail to decode
        try:
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    def refuse_closed(self) -> None:
        """Raise UsageError where the index is closed."""
        if self._closed:
            raise UsageError("the store is closed", where=self.where, fix="open the index again")

    def refuse_read_only(self) -> None:
        """Raise StoreError where the index is closed, or may not be written to."""
        self.refuse_closed()
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
                why=f"{FILE_NAME} is missing, and none may be made",
                fix="name the folder of an index, or make one with `wellhead index`",
            )

    def _refuse_empty(self) -> None:
        raise CorruptStore(
            "the index is damaged",
            where=self.where,
            why=f"{FILE_NAME} holds nothing, not even the tables of an empty index: it was cut off",
            fix=REBUILD,
        )


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
