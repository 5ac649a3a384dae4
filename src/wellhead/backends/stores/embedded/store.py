"""The embedded store: documents, passages, terms and vectors in one SQLite file inside the index folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

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
    read_states,
    read_version,
)
from wellhead.backends.stores.embedded.verify import verify_store
from wellhead.backends.stores.embedded.write import delete_documents, known_keys, put_documents, write_settings
from wellhead.backends.stores.rules import check_documents, refuse_pickle
from wellhead.ports import DocumentState
from wellhead.records import Document, DocumentRow, Finding

__all__ = ["EmbeddedStore"]


class EmbeddedStore:
    """A store in a folder (`wellhead.ports.Store`): one writer at a time, any number of readers, threads, processes.

    A write is on the disk when the call returns, and seen by every process at its next call. After a crash the
    store opens with everything that was acknowledged and nothing of what was not.

    Args:
        folder: holds `wellhead.sqlite`; made when missing, unless `read_only`.
        read_only: never write. A folder or file without write permission is opened so by itself; where no write
            is possible at all (a read-only image), it must not be changed from elsewhere meanwhile.
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

    def set_settings(self, settings: Mapping[str, str]) -> None:
        """Replace all settings."""
        with self._database.write() as connection:
            if read_settings(connection, self.where) != dict(settings):
                write_settings(connection, settings)

    def put(self, documents: Sequence[DocumentRow], vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Write documents whole (replacing those of the same scope and id) and new vectors (float32[d] by key).

        Raises:
            UsageError: rows that contradict one another; nothing is written then.
            StoreError: the disk's fault (StorageFull, WriterBusy, CorruptStore, read-only); nothing is written then.
        """
        with self._database.write() as connection:
            if documents:
                check_documents(documents)
                put_documents(connection, documents, vectors)

    def delete(self, scope: str, ids: Sequence[str]) -> int:
        """Delete documents; how many there were. Vectors that nothing uses any more go too."""
        with self._database.write() as connection:
            return delete_documents(connection, scope, ids)

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

    def states(self, scope: str) -> dict[str, DocumentState]:
        """Every document of the scope, by id; one that lost a vector counts as incomplete."""
        with self._database.read() as connection:
            return read_states(connection, scope, self.where)

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
        return vectors, self._database.size()

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
