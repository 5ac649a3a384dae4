"""Makes anew what is wrong, as far as that can be.

What is derived is made from the tables, beside whoever uses the index. Where the tables themselves are damaged, every
document that is still whole goes through an ingest of its own into a new file, with the vectors that are still sound;
the new file then takes the place of the old one, which is kept. Stopped anywhere, the index is the old or the new one.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from wellhead.backends.stores.embedded.advice import advice
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.compact import delete_unused_vectors
from wellhead.backends.stores.embedded.connection import FILE_NAME, Database, os_errors, translated
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.failpoint import reached
from wellhead.backends.stores.embedded.generation import read_segments
from wellhead.backends.stores.embedded.keeper import Job, Keeper, carry_out
from wellhead.backends.stores.embedded.load import read_settings
from wellhead.backends.stores.embedded.place import Place
from wellhead.backends.stores.embedded.salvage import HOPELESS, Salvage
from wellhead.backends.stores.embedded.segment import FOLDER, SUFFIX, file_of, sync_folder
from wellhead.backends.stores.embedded.storage import WORKSHOP, leftovers
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.embedded.verify import DERIVED, verify_database
from wellhead.backends.stores.embedded.verify_segments import place_of
from wellhead.backends.stores.embedded.write import start_over
from wellhead.errors import CorruptStore, StoreError, WriterBusy
from wellhead.ports import Refill
from wellhead.records import Finding, RepairReport, SyncReport

__all__ = ["repair"]


def repair(folder: Path, refill: Refill, *, needed: Collection[str] = (), timeout_s: float = 10.0) -> RepairReport:
    """Verify the index in a folder, and mend what is found.

    Args:
        refill: gives a new store the settings and documents of the damaged one.
        needed: names of settings without which an index that was ever written to is damaged.
        timeout_s: how long others may keep the index from being written, or, where its tables are damaged, open.

    Raises:
        CorruptStore: nothing can be saved, or the folder holds something else than an index.
        WriterBusy: others have the index open, and its tables have to be replaced.
        StaleIndex: a newer format. StorageFull, StoreError: the disk failed. Whatever `refill` raises.
    """
    started = time.perf_counter()
    _check(Place(folder))
    findings = _findings(folder, needed, timeout_s)
    if not findings:
        report = RepairReport()
    elif all(finding.kind in DERIVED for finding in findings):
        report = _remake(folder, findings, timeout_s)
    else:
        report = _rebuild(folder, refill, timeout_s)
    seconds = time.perf_counter() - started
    return msgspec.structs.replace(report, findings=tuple(findings), seconds=seconds)


def _check(place: Place) -> None:
    if not place.path.is_file():
        raise StoreError(
            "there is no index here",
            where=place.where,
            why=f"{FILE_NAME} is missing",
            fix="name the folder of an index; where the file is lost, restore a backup, or index the documents again",
        )
    if not place.writable():
        raise StoreError(
            "an index that may not be written to cannot be repaired",
            where=place.where,
            why="the folder, or a file in it, is read-only from here",
            fix="repair it where it may be written to, or repair a copy of the folder",
        )


def _findings(folder: Path, needed: Collection[str], timeout_s: float) -> list[Finding]:
    try:
        with closing(Database(folder, read_only=False, timeout_s=timeout_s)) as database:
            return verify_database(database)[3] or list(_lost_settings(database, needed))
    except CorruptStore as error:  # it does not even open
        return [Finding(kind="unreadable", where=error.where, why=f"{error.what}: {error.why}", fix=error.fix)]


def _lost_settings(database: Database, needed: Collection[str]) -> Iterator[Finding]:
    with database.read() as connection:
        lost = sorted(set(needed) - read_settings(connection, database.where).keys())
        if lost and read_counter(connection, "version", database.where):
            place, why = f"{database.where}, table settings", f"settings are gone: {', '.join(lost)}"
            yield Finding(kind="setting", where=place, why=why, fix=advice("settings"))


def _remake(folder: Path, findings: Sequence[Finding], timeout_s: float) -> RepairReport:
    """Make what is derived anew, from tables that are sound."""
    with closing(Database(folder, read_only=False, timeout_s=timeout_s)) as database:
        kinds = {finding.kind for finding in findings}
        if "orphan_vector" in kinds:
            with database.write() as connection:
                delete_unused_vectors(connection)
        if kinds <= {"segment", "orphan_vector"}:
            return RepairReport(segments=_remake_segments(database, {finding.where for finding in findings}))
        with database.write() as connection:
            start_over(connection, database.where)
        with closing(Keeper(database)) as keeper:
            keeper.settle()
        with database.read() as connection:
            return RepairReport(segments=len(read_segments(connection, database.where)))


def _remake_segments(database: Database, wrong: set[str]) -> int:
    with database.read() as connection:
        listed = read_segments(connection, database.where)
    bad = [row for row in listed if place_of(database.where, row) in wrong]
    for row in bad:
        with database.os_errors():  # what has no file is read from the tables
            file_of(database.place.folder, row.name.decode()).unlink(missing_ok=True)
        carry_out(database, Job((row,), row.first, row.last))
    return len(bad)


def _rebuild(folder: Path, refill: Refill, timeout_s: float) -> RepairReport:
    """Make a new file of every document that is whole, and put it in the place of the damaged one."""
    place = Place(folder)
    workshop = place.folder / f"{WORKSHOP}{uuid.uuid4().hex}"
    with os_errors(place.where), _alone(place, timeout_s) as connection:
        salvage = Salvage(connection, place.where)
        for unfinished in leftovers(place.folder):
            shutil.rmtree(unfinished)
        try:
            done = _make(workshop, salvage, refill, timeout_s)
            reached("repair.made")
            kept_as = _swap(connection, place, workshop)
            reached("repair.swapped")
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
    return RepairReport(
        documents=done.read,
        passages=done.passages,
        embedded=done.embedded,
        lost=(*salvage.lost, *done.refused),
        unnamed=salvage.unnamed,
        uncounted=salvage.uncounted,
        failed=done.failed,
        kept_as=kept_as,
    )


@contextmanager
def _alone(place: Place, timeout_s: float) -> Iterator[sqlite3.Connection]:
    """A connection to the damaged file while nobody else has it open, and nobody can open it.

    Readers too: SQLite's log bears the name of the file, and two files must not share one.
    """
    uri = f"{place.path.as_uri()}?mode=rw"
    with (
        translated(place.where),
        closing(sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None)) as it,
    ):
        it.text_factory = bytes
        try:
            for statement in _ALONE:
                it.execute(statement)
        except sqlite3.DatabaseError as error:
            raise _shut_out(error, place) from error
        yield it


# In this mode the lock outlives the transaction; and a schema with a fault in it is read as far as it goes.
_ALONE = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA writable_schema = ON",
    "PRAGMA cell_size_check = ON",
    "BEGIN EXCLUSIVE",
    "ROLLBACK",
)


def _shut_out(error: sqlite3.DatabaseError, place: Place) -> StoreError:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return WriterBusy(
            "the index is open elsewhere, and its tables have to be replaced",
            where=place.where,
            why="another program, or another handle of this one, has it open",
            fix="close all others, then run `wellhead repair` again",
        )
    why = f"its first page is damaged: {error}"
    return CorruptStore("nothing of the index can be read any more", where=place.where, why=why, fix=HOPELESS)


def _make(workshop: Path, salvage: Salvage, refill: Refill, timeout_s: float) -> SyncReport:
    """A new index in the workshop, whole and verified."""
    with (
        closing(Database(workshop, read_only=False, timeout_s=timeout_s)) as database,
        database.write() as connection,
    ):
        _begin_above(connection, salvage)
    with closing(EmbeddedStore(workshop, timeout_s=timeout_s)) as store:
        done = refill(salvage.settings(), salvage.documents(), store)
        store.settle()
    with closing(Database(workshop, read_only=False, timeout_s=timeout_s)) as database:
        with database.write() as connection:
            delete_unused_vectors(connection)
        _refuse_wrong(verify_database(database)[3])
    return done


def _begin_above(connection: sqlite3.Connection, salvage: Salvage) -> None:
    """Start from the counters and vectors of the damaged file: no number is given twice, no text embedded twice."""
    counters = ((name, value, checksum("counters", name, value)) for name, value in salvage.counters().items())
    connection.executemany("INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", counters)
    connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", salvage.vectors())


def _refuse_wrong(findings: Sequence[Finding]) -> None:
    if findings:
        first = findings[0]
        raise CorruptStore(
            "the new file is damaged too, so the old one was left in its place",
            where=first.where,
            why=f"{first.kind}: {first.why}",
            fix="check the disk and the memory of this machine, and repair a copy of the folder elsewhere",
        )


def _swap(connection: sqlite3.Connection, place: Place, workshop: Path) -> str:
    """Put the new files in the place of the old ones; the name under which the damaged one is kept."""
    made = workshop / FILE_NAME
    old = sorted((place.folder / FOLDER).glob(f"*{SUFFIX}"))
    _move(workshop / FOLDER, place.folder / FOLDER)
    kept = _free_name(place)
    _keep(place.path, kept)
    try:
        reached("repair.kept")
        shutil.copymode(place.path, made)
        _end_log(connection, place)
        reached("repair.unlogged")
        os.replace(made, place.path)  # noqa: PTH105 (in one step, over what is there)
    except BaseException:
        kept.unlink(missing_ok=True)
        raise
    sync_folder(place.folder)
    for path in old:
        path.unlink(missing_ok=True)
    return kept.name


def _keep(path: Path, kept: Path) -> None:
    try:
        os.link(path, kept)
    except OSError:  # a file system without hard links
        shutil.copy2(path, kept)


def _end_log(connection: sqlite3.Connection, place: Place) -> None:
    """Fold SQLite's log into the damaged file, which stays locked: the new one would take it for its own."""
    (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if mode != b"delete":
        why = f"SQLite stays in mode {mode.decode()}"
        raise StoreError("the log of the damaged file cannot be ended", where=place.where, why=why, fix=HOPELESS)


def _move(source: Path, target: Path) -> None:
    """Segments go first: what no list names is harmless."""
    files = sorted(source.glob("*"))
    if files:
        target.mkdir(exist_ok=True)
        for path in files:
            path.rename(target / path.name)
        sync_folder(target)


def _free_name(place: Place) -> Path:
    names = (place.path.with_name(f"{FILE_NAME}.damaged-{number}") for number in range(1, 10_000))
    return next(path for path in names if not path.exists())
