"""The embedded store: documents, passages, terms and vectors in one SQLite file inside the index folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.backup import backup
from wellhead.backends.stores.embedded.compact import compact
from wellhead.backends.stores.embedded.connection import Database
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.generation import Generation, advance
from wellhead.backends.stores.embedded.keeper import Keeper, waiting_rows
from wellhead.backends.stores.embedded.load import (
    TableLookup,
    check_count,
    read_document,
    read_listing,
    read_settings,
)
from wellhead.backends.stores.embedded.numbers import TermNumbers
from wellhead.backends.stores.embedded.segment import SegmentDamaged
from wellhead.backends.stores.embedded.states import read_states, read_summaries, write_sources
from wellhead.backends.stores.embedded.storage import read_storage
from wellhead.backends.stores.embedded.vectors import known_keys
from wellhead.backends.stores.embedded.verify import verify_database
from wellhead.backends.stores.embedded.view import PartsView
from wellhead.backends.stores.embedded.write import delete_documents, put_documents, write_settings
from wellhead.backends.stores.rules import check_documents, is_text, refuse_other_settings, refuse_pickle
from wellhead.errors import CorruptStore, StoreError
from wellhead.ports import DocumentState, DocumentSummary, Refill
from wellhead.records import BackupReport, CompactReport, Document, DocumentRow, Finding, RepairReport, Storage

__all__ = ["EmbeddedStore"]

_T = TypeVar("_T")

# Scopes whose view is kept; another one costs little.
_VIEWS = 256


class _Shown(NamedTuple):
    """The views of the last generation by scope, and what told then whether anybody had written."""

    marker: object
    views: Mapping[str, PartsView]


class EmbeddedStore:
    """A store in a folder (`wellhead.ports.Store`): one writer at a time, any number of readers, threads, processes.

    A write is on the disk when the call returns, and seen by every process at its next call. After a crash the
    store opens with everything that was acknowledged and nothing of what was not.

    A store whose file was deleted, moved or replaced refuses every further use with a StoreError: open it again.

    Args:
        folder: holds `wellhead.sqlite`; made when missing, unless `read_only`.
        read_only: never write. A folder or file without write permission is opened so by itself. SQLite can keep
            no locks in such a folder, so before each call the times, sizes and inodes of the file and of SQLite's
            log are compared, and the file is opened again when somebody else wrote: his writes are seen at the next
            call. A call during which he wrote raises StaleView, which a search answers by trying again.
        timeout_s: how long a write waits for another process's.

    Raises:
        StoreError: no index to read, or the folder cannot be made.
        CorruptStore: a damaged file, or a database of another program, which is left as it is.
        StaleIndex: written by a newer Wellhead.
    """

    def __init__(self, folder: Path | str, *, read_only: bool = False, timeout_s: float = 10.0) -> None:
        self._open(Path(folder), read_only=read_only, timeout_s=timeout_s)

    def _open(self, folder: Path, *, read_only: bool, timeout_s: float) -> None:
        self._database = Database(folder, read_only=read_only, timeout_s=timeout_s)
        self._timeout_s = timeout_s
        self._lookup = TableLookup(self._database)
        self._generation: Generation | None = None
        self._shown = _Shown(None, {})
        self._numbers = TermNumbers()
        self._keeper = None if self._database.read_only else Keeper(self._database)

    def __reduce__(self) -> NoReturn:
        refuse_pickle(self)

    @property
    def where(self) -> str:
        """The folder."""
        return self._database.where

    @property
    def folder(self) -> Path:
        """The folder, as it was given."""
        return self._database.place.folder

    @property
    def read_only(self) -> bool:
        """True when asked for, and when the folder may not be written to."""
        return self._database.read_only

    def version(self) -> int:
        """Grows with every write; 0 for a store never written to."""
        with self._database.read() as connection:
            return read_counter(connection, "version", self.where)

    def settings(self) -> dict[str, str]:
        """What `set_settings` was given last; empty for a new store."""
        with self._database.read() as connection:
            return read_settings(connection, self.where)

    def set_settings(self, settings: Mapping[str, str], *, expected: Mapping[str, str] | None = None) -> None:
        """Replace all settings; where `expected` is given, only while they are still those.

        Raises:
            ConfigError: another process has set others meanwhile; nothing is written.
        """
        with self._database.write() as connection:
            stored = read_settings(connection, self.where)
            if stored != dict(settings):
                refuse_other_settings(stored, expected, self.where)
                write_settings(connection, settings, self.where)

    def put(self, documents: Sequence[DocumentRow], vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Write documents whole (replacing those of the same scope and id) and new vectors (float32[d] by key).

        What was damaged of them is written anew.

        Raises:
            UsageError: rows that contradict one another; nothing is written then.
            StoreError: the disk's fault (StorageFull, WriterBusy, CorruptStore, read-only); nothing is written then.
        """
        check_documents(documents)
        self._write(lambda connection: put_documents(connection, documents, vectors, self._numbers, self.where))

    def delete(self, scope: str, ids: Sequence[str]) -> int:
        """Delete documents, damaged ones too; how many there were. Vectors that nothing uses any more go too."""
        known = list(filter(is_text, ids))
        return self._write(lambda connection: delete_documents(connection, scope, known, self.where))

    def set_sources(self, scope: str, states: Mapping[str, DocumentState]) -> None:
        """Remember the `source` of documents that still are as these states say; the version stays as it is."""
        self._write(lambda connection: write_sources(connection, scope, states))

    def _write(self, change: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            done, waiting, segments = self._changed(change)
        except CorruptStore:
            # Where an index of SQLite's does not fit its table, it can be made anew; nothing was written yet.
            done, waiting, segments = self._changed(change, reindex=True)
        if self._keeper is not None:
            self._keeper.told(waiting, segments=segments)
        return done

    def _changed(self, change: Callable[[sqlite3.Connection], _T], *, reindex: bool = False) -> tuple[_T, int, bool]:
        """What a change gives, in one transaction; how many numbers are in no segment, and whether there are any."""
        try:
            with self._database.write() as connection:
                if reindex:
                    connection.execute("REINDEX")
                return change(connection), *waiting_rows(connection, self.where)
        except BaseException:
            self._numbers.forget()  # some of them may have been given in vain
            raise

    def settle(self) -> None:
        """Wait until the segments are in shape: everything but the newest rows in a file, few dead rows.

        Raises:
            StoreError: the disk failed; searches go on with what there is.
        """
        if self._keeper is not None:
            self._keeper.settle()

    def get(self, scope: str, document_id: str) -> Document | None:
        """The document as it was put, or None."""
        if not is_text(document_id):
            return None
        with self._database.read() as connection:
            return read_document(connection, scope, document_id, self.where)

    def documents(self, scope: str) -> Iterator[Document]:
        """All documents of the scope, by id, read one by one: one deleted meanwhile is left out."""
        with self._database.read() as connection:
            listing = read_listing(connection, scope, self.where)
        for document_id in listing:
            document = self.get(scope, document_id)
            if document is not None:
                yield document

    def states(self, scope: str, ids: Sequence[str] | None = None) -> dict[str, DocumentState]:
        """Those of `ids` that are there, or every document of the scope, by id.

        Row, text, passages and vectors are checked: a document of which anything is damaged or gone counts as
        incomplete. Terms, which documents share, are left to `view` and `verify`.

        Raises:
            CorruptStore: all were asked for, and documents are gone.
        """
        known = None if ids is None else list(filter(is_text, ids))
        with self._database.read() as connection:
            return read_states(connection, scope, known, self.where)

    def summaries(self, scope: str) -> list[DocumentSummary]:
        """Every document of the scope without its text, by id.

        Only the document's row is checked, and that its passages have vectors.

        Raises:
            CorruptStore: documents are gone.
        """
        with self._database.read() as connection:
            return read_summaries(connection, scope, self.where)

    def scopes_of(self, document_id: str) -> list[str]:
        """The scopes that hold a document of this id, ascending."""
        if not is_text(document_id):
            return []
        with self._database.read() as connection:
            rows = connection.execute("SELECT scope FROM documents WHERE id = ? ORDER BY scope", (document_id,))
            return [scope.decode() for (scope,) in rows]

    def known_vectors(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of `keys` that have a stored vector."""
        with self._database.read() as connection:
            return known_keys(connection, keys)

    def counts(self) -> tuple[int, int]:
        """Distinct vectors, and bytes on disk."""
        with self._database.read() as connection:
            (vectors,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        return vectors, self._database.place.size()

    def view(self, scope: str) -> PartsView:
        """The scope as it stands now, other processes' writes included; cached until the next write.

        Raises:
            CorruptStore: a row that has to be read is damaged, or rows are missing.
        """
        shown = self._shown
        view = shown.views.get(scope)
        if view is not None and self._database.marker() == shown.marker and self._is_untouched():
            return view
        for patient in (True, True, False):
            try:
                return self._view(scope, patient=patient)
            except SegmentDamaged:  # mostly: a file that a newer one took the place of meanwhile
                continue
        raise AssertionError  # the last time the rows are read from the tables

    def _check_whole(self, connection: sqlite3.Connection, generation: Generation, scope: str, there: int) -> None:
        """Raise CorruptStore where rows of this scope are missing: what is wrong with one of them, if that is known."""
        try:
            check_count(connection, scope, there, self.where)
        except CorruptStore as missing:
            raise generation.fault(scope) or missing from None

    def _is_untouched(self) -> bool:
        """Whether the files that are mapped are those that were opened. If not, all is opened again, and checked."""
        generation = self._generation
        if generation is None or all(held.part.is_untouched() for held in generation.held):
            return True
        self._generation, self._shown = None, _Shown(None, {})
        return False

    def _view(self, scope: str, *, patient: bool) -> PartsView:
        self._is_untouched()
        with self._database.read() as connection:
            before, views, marker = self._generation, self._shown.views, self._database.marker()
            generation = advance(connection, before, self.folder, self.where, patient=patient)
            if generation is not before:
                self._generation, views = generation, {}
                if self._keeper is not None and (broken := generation.broken):
                    self._keeper.mend(broken)
            view = views.get(scope)
            if view is None:
                view = generation.view(scope, self._lookup)
                self._check_whole(connection, generation, scope, len(view))
                views = {**views, scope: view} if len(views) < _VIEWS else {scope: view}
            self._shown = _Shown(marker, views)
            return view

    def verify(self) -> tuple[int, int, int, list[Finding]]:
        """Check everything, on a connection of its own so that nobody waits (see `verify`)."""
        return verify_database(self._database)

    def storage(self) -> Storage:
        """How the whole index lies on the disk."""
        with self._database.read() as connection:
            broken = self._generation.broken if self._generation is not None else ()
            failure = self._keeper.failure if self._keeper is not None else None
            said = "" if failure is None else f"{failure.what}: {failure.why}"
            return read_storage(connection, self._database.place, broken=broken, failure=said)

    def compact(self) -> CompactReport:
        """Take what was deleted from the disk for good (see `compact.compact`)."""
        with self._without_keeper():
            return compact(self._database)

    def backup(self, dest: Path) -> BackupReport:
        """Copy the index as it is now into a new folder (see `backup.backup`)."""
        return backup(self._database, dest)

    def repair(self, refill: Refill) -> RepairReport:
        """Make anew what is wrong, as far as that can be (see `repair.repair`). The store is closed meanwhile.

        Raises:
            StoreError: the index is open read-only.
        """
        from wellhead.backends.stores.embedded.repair import repair  # late: it makes a store

        if self.read_only:
            raise StoreError(
                "an index that is open read-only cannot be repaired",
                where=self.where,
                why="it was opened so, or its folder may not be written to",
                fix="open it without read_only, in a folder that may be written to",
            )
        with self._database.read():  # refuses when the store is closed
            folder, timeout_s = self.folder, self._timeout_s
        self.close()
        try:
            return repair(folder, refill, timeout_s=timeout_s)
        finally:
            self._open(folder, read_only=False, timeout_s=timeout_s)

    @contextmanager
    def _without_keeper(self) -> Iterator[None]:
        """Let the keeper finish what it is at, and begin again after."""
        if self._keeper is not None:
            self._keeper.stop()
        try:
            yield
        finally:
            self._keeper = None if self._database.read_only else Keeper(self._database)

    def close(self) -> None:
        """Close the files, folding SQLite's log into its file; a second call does nothing."""
        try:
            if self._keeper is not None:
                self._keeper.close()
        finally:
            self._generation, self._shown = None, _Shown(None, {})
            self._database.close()
