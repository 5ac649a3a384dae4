"""The reference store: plain dicts in memory. Gone with the process; what `embedded` must agree with."""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.arrays import ArrayView, ScopeRows, codes, line_up
from wellhead.backends.stores.postings import ArrayField, Postings, pack_terms
from wellhead.backends.stores.rules import (
    check_documents,
    check_keys,
    check_owners,
    check_vectors,
    refuse_other_settings,
    refuse_pickle,
    used_keys,
)
from wellhead.errors import StaleView, UsageError
from wellhead.ports import DocumentState, DocumentSummary, Refill
from wellhead.records import (
    CompactReport,
    Document,
    DocumentRow,
    Finding,
    Passage,
    PassageRow,
    RepairReport,
    Storage,
)

__all__ = ["MemoryStore"]


class MemoryStore:
    """A store in memory (`wellhead.ports.Store`), for tests, demos and small corpora; safe for threads."""

    where = "memory"
    folder = None
    read_only = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _stores.add(self)
        self._closed = False
        self._version = 0
        self._settings: dict[str, str] = {}
        self._scopes: dict[str, dict[str, DocumentRow]] = {}
        self._owners: dict[str, tuple[str, str]] = {}
        self._vectors: dict[bytes, NDArray[np.float32]] = {}
        self._users: Counter[bytes] = Counter()
        self._views: dict[str, ArrayView] = {}

    def __reduce__(self) -> NoReturn:
        refuse_pickle(self)

    def hold(self) -> None:
        """Wait until no thread is inside the store, and let none in."""
        self._lock.acquire()

    def release(self) -> None:
        """Let threads in again."""
        self._lock.release()

    def version(self) -> int:
        """Grows with every write; 0 for a store never written to."""
        with self._opened():
            return self._version

    def settings(self) -> dict[str, str]:
        """What `set_settings` was given last; empty for a new store."""
        with self._opened():
            return dict(self._settings)

    def set_settings(self, settings: Mapping[str, str], *, expected: Mapping[str, str] | None = None) -> None:
        """Replace all settings; where `expected` is given, only while they are still those.

        Raises:
            ConfigError: others were set meanwhile.
        """
        with self._opened():
            if self._settings != dict(settings):
                refuse_other_settings(self._settings, expected, self.where)
                self._settings = dict(settings)
                self._written()

    def put(self, documents: Sequence[DocumentRow], vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        """Write documents whole (replacing those of the same scope and id) and new vectors (float32[d] by key).

        Raises:
            UsageError: rows that contradict one another; nothing is written then.
        """
        if not documents:
            return
        with self._opened():
            check_documents(documents)
            check_vectors(vectors, next((vector.size for vector in self._vectors.values()), None))
            check_keys(documents, vectors, self.known_vectors)
            check_owners(documents, self._owners.get)
            gone = {key for document in documents for key in self._drop(document.scope, document.document.id)}
            for key, vector in vectors.items():
                self._vectors.setdefault(key, np.array(vector))
            for document in documents:
                self._keep(document)
            self._prune(gone | vectors.keys())
            self._written()

    def delete(self, scope: str, ids: Sequence[str]) -> int:
        """Delete documents; how many there were. Vectors that nothing uses any more go too."""
        with self._opened():
            there = [document_id for document_id in dict.fromkeys(ids) if document_id in self._scopes.get(scope, {})]
            self._prune({key for document_id in there for key in self._drop(scope, document_id)})
            if there:
                self._written()
            return len(there)

    def set_sources(self, scope: str, states: Mapping[str, DocumentState]) -> None:
        """Remember the `source` of documents that still are as these states say; the version stays as it is."""
        with self._opened():
            held = self._scopes.get(scope, {})
            for name, state in states.items():
                row = held.get(name)
                if row is not None and (row.digest, row.origin) == (state.digest, state.origin):
                    held[name] = msgspec.structs.replace(row, source=state.source)

    def _keep(self, document: DocumentRow) -> None:
        self._scopes.setdefault(document.scope, {})[document.document.id] = document
        for row in document.passages:
            self._owners[row.passage.id] = (document.scope, document.document.id)
            self._users[row.vector_key] += 1

    def _drop(self, scope: str, document_id: str) -> set[bytes]:
        document = self._scopes.get(scope, {}).pop(document_id, None)
        if document is None:
            return set()
        for row in document.passages:
            del self._owners[row.passage.id]
            self._users[row.vector_key] -= 1
        return set(used_keys([document]))

    def _prune(self, keys: set[bytes]) -> None:
        for key in keys:
            if not self._users[key]:
                self._vectors.pop(key, None)
                del self._users[key]

    def _written(self) -> None:
        self._version += 1
        self._views.clear()

    def get(self, scope: str, document_id: str) -> Document | None:
        """The document as it was put, or None."""
        with self._opened():
            row = self._scopes.get(scope, {}).get(document_id)
            return row.document if row else None

    def documents(self, scope: str) -> Iterator[Document]:
        """All documents of the scope, by id, as they stood when the first was asked for."""
        for row in self._sorted(scope):
            yield row.document

    def states(self, scope: str, ids: Sequence[str] | None = None) -> dict[str, DocumentState]:
        """Those of `ids` that are there, or every document of the scope, by id; a lost vector makes one incomplete."""
        if ids is None:
            rows = self._sorted(scope)
        else:
            with self._opened():
                held = self._scopes.get(scope, {})
                rows = [held[name] for name in sorted(set(ids)) if name in held]
        return {
            row.document.id: DocumentState(row.digest, row.origin, self._is_incomplete(row), row.source) for row in rows
        }

    def summaries(self, scope: str) -> list[DocumentSummary]:
        """Every document of the scope without its text, by id."""
        return [
            DocumentSummary(
                id=row.document.id,
                title=row.document.title,
                uri=row.document.uri,
                metadata=row.document.metadata,
                origin=row.origin,
                passages=len(row.passages),
                incomplete=self._is_incomplete(row),
            )
            for row in self._sorted(scope)
        ]

    def _is_incomplete(self, document: DocumentRow) -> bool:
        return document.incomplete or bool(self._missing(document))

    def _missing(self, document: DocumentRow) -> list[PassageRow]:
        return [row for row in document.passages if row.vector_key and row.vector_key not in self._vectors]

    def scopes_of(self, document_id: str) -> list[str]:
        """The scopes that hold a document of this id, ascending."""
        with self._opened():
            return sorted(scope for scope, documents in self._scopes.items() if document_id in documents)

    def known_vectors(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of `keys` that have a stored vector."""
        with self._opened():
            return {key for key in keys if key in self._vectors}

    def counts(self) -> tuple[int, int]:
        """Distinct vectors, and 0 bytes on disk."""
        with self._opened():
            return len(self._vectors), 0

    def view(self, scope: str) -> ArrayView:
        """The scope as it stands now; cached until the next write."""
        with self._opened():
            if scope not in self._views:
                rows = _scope_rows(self._sorted(scope), self._vectors)
                self._views[scope] = ArrayView(self._version, rows, lambda ids: self._passages(scope, ids))
            return self._views[scope]

    def _passages(self, scope: str, ids: Sequence[str]) -> list[Passage]:
        with self._opened():
            return [self._passage(scope, passage_id) for passage_id in ids]

    def _passage(self, scope: str, passage_id: str) -> Passage:
        owner = self._owners.get(passage_id)
        if owner is None or owner[0] != scope:
            raise StaleView(
                f"passage {passage_id[:12]} was deleted meanwhile",
                where=self.where,
                why="the index was written to after this view of it was taken",
                fix="search again",
            )
        rows = self._scopes[scope][owner[1]].passages
        return next(row.passage for row in rows if row.passage.id == passage_id)

    def verify(self) -> tuple[int, int, int, list[Finding]]:
        """Check every reference: documents, passages, vectors checked, and what is wrong."""
        with self._opened():
            rows = [row for scope in sorted(self._scopes) for row in self._sorted(scope)]
            findings = [
                Finding(
                    kind="missing_vector",
                    where=f"document {row.document.id!r}",
                    why=f"the dense leg cannot see {len(missing)} of its passages: their vectors are gone",
                    fix="index the document again",
                )
                for row in rows
                if (missing := self._missing(row))
            ]
            return len(rows), len(self._owners), len(self._vectors), findings

    def repair(self, refill: Refill) -> RepairReport:  # noqa: ARG002 (the port's)
        """Nothing to do: no disk can damage what is here."""
        with self._opened():
            return RepairReport()

    def compact(self) -> CompactReport:
        """Nothing to do: what was deleted is gone."""
        with self._opened():
            return CompactReport()

    def backup(self, dest: Path) -> NoReturn:
        """There is no file to copy.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "an index in memory cannot be backed up",
            where=str(dest),
            why="it lies in no folder, and is gone with the process",
            fix="keep it in a folder: Index.open(FOLDER)",
        )

    def storage(self) -> Storage:
        """Nothing lies on a disk."""
        with self._opened():
            return Storage()

    def close(self) -> None:
        """Forget everything; a second call does nothing."""
        with self._lock:
            self._closed = True
            self._scopes, self._owners, self._vectors, self._views = {}, {}, {}, {}

    def _sorted(self, scope: str) -> list[DocumentRow]:
        with self._opened():
            return [row for _, row in sorted(self._scopes.get(scope, {}).items())]

    def _opened(self) -> AbstractContextManager[object]:
        if self._closed:
            raise UsageError("the store is closed", where=self.where, fix="open the index again")
        return self._lock


def _scope_rows(documents: Sequence[DocumentRow], vectors: Mapping[bytes, NDArray[np.float32]]) -> ScopeRows:
    filled = [document for document in documents if document.passages]
    placed = [(row, place) for place, document in enumerate(filled) for row in document.passages]
    placed.sort(key=lambda pair: pair[0].passage.id)
    rows = [row for row, _ in placed]
    terms = dict.fromkeys(chain.from_iterable(chain(row.terms.stems, row.terms.words) for row in rows))
    vocabulary = {term: number for number, term in enumerate(terms)}
    places = np.array([place for _, place in placed], dtype=np.int32)
    return ScopeRows(
        ids=[row.passage.id for row in rows],
        document_ids=[document.document.id for document in filled],
        metadata=[document.document.metadata for document in filled],
        documents=places,
        ordinals=np.array([row.passage.ordinal for row in rows], dtype=np.int32),
        contents=codes(row.passage.text for row in rows)[0],
        languages=[row.passage.language or "" for row in rows],
        stems=ArrayField(Postings([pack_terms(row.terms.stems, vocabulary) for row in rows]), vocabulary, places),
        words=ArrayField(Postings([pack_terms(row.terms.words, vocabulary) for row in rows]), vocabulary, places),
        vectors=line_up([row.vector_key for row in rows], vectors),
    )


_stores: weakref.WeakSet[MemoryStore] = weakref.WeakSet()
_held: list[MemoryStore] = []


def _before_fork() -> None:
    """No thread is inside a store while a process forks: its lock would be taken in the child for ever."""
    for store in list(_stores):
        store.hold()
        _held.append(store)


def _after_fork() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
