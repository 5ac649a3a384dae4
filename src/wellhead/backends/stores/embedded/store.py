"""The embedded store: documents, passages, terms and vectors in one SQLite file inside the index folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.arrays import ArrayView
from wellhead.backends.stores.embedded.connection import Database
from wellhead.backends.stores.embedded.load import (
    load_scope,
    read_document,
    read_listing,
    read_passages,
    read_settings,
    read_version,
)
from wellhead.backends.stores.embedded.states import read_states, read_summaries
from wellhead.backends.stores.embedded.vectors import known_keys
from wellhead.backends.stores.embedded.verify import verify_store
from wellhead.backends.stores.embedded.write import delete_documents, put_documents, write_settings
from wellhead.backends.stores.rules import check_documents, refuse_other_settings, refuse_pickle
from wellhead.errors import CorruptStore
from wellhead.ports import DocumentState, DocumentSummary
from wellhead.records import Document, DocumentRow, Finding

__all__ = ["EmbeddedStore"]

_T = TypeVar("_T")


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
        self._database = Database(Path(folder), read_only=read_only, timeout_s=timeout_s)
        self._views: dict[str, ArrayView] = {}

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
            return read_version(connection)

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
                write_settings(connection, settings)

    def put(self, documents: Sequence[DocumentRow], vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Write documents whole (replacing those of the same scope and id) and new vectors (float32[d] by key).

        What was damaged of them is written anew.

        Raises:
            UsageError: rows that contradict one another; nothing is written then.
            StoreError: the disk's fault (StorageFull, WriterBusy, CorruptStore, read-only); nothing is written then.
        """
        check_documents(documents)
        self._write(lambda connection: put_documents(connection, documents, vectors))

    def delete(self, scope: str, ids: Sequence[str]) -> int:
        """Delete documents, damaged ones too; how many there were. Vectors that nothing uses any more go too."""
        return self._write(lambda connection: delete_documents(connection, scope, ids))

    def _write(self, change: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            with self._database.write() as connection:
                return change(connection)
        except CorruptStore:
            # Where an index of SQLite's does not fit its table, it can be made anew; nothing was written yet.
            with self._database.write() as connection:
                connection.execute("REINDEX")
                return change(connection)

    def get(self, scope: str, document_id: str) -> Document | None:
        """The document as it was put, or None."""
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
        with self._database.read() as connection:
            return read_states(connection, scope, ids, self.where)

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

    def view(self, scope: str) -> ArrayView:
        """The scope as it stands now, other processes' writes included; cached until the next write."""
        with self._database.read() as connection:
            version = read_version(connection)
            cached = self._views.get(scope)
            if cached is not None and cached.version == version:
                return cached
            fetch = partial(read_passages, self._database, scope)
            view = ArrayView(version, load_scope(connection, scope, self.where), fetch)
            self._views = {name: kept for name, kept in self._views.items() if kept.version == version} | {scope: view}
            return view

    def verify(self) -> tuple[int, int, int, list[Finding]]:
        """Check every checksum and reference, on a connection of its own so that nobody waits."""
        with self._database.aside() as connection:
            return verify_store(connection, self.where)

    def close(self) -> None:
        """Close the file, folding SQLite's log into it; a second call does nothing."""
        self._views = {}
        self._database.close()
