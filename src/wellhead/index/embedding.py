"""`EmbeddingRetriever`: a few documents in memory, found by their meaning alone."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from wellhead.backends.retrievers.embedding import embedder_of
from wellhead.errors import BackendError, UsageError
from wellhead.events import Sink
from wellhead.index import Index
from wellhead.records import Document, Hits
from wellhead.search.guard import Guarded
from wellhead.search.scope import scope_value

if TYPE_CHECKING:
    from wellhead.ingest.chunk import Chunker

__all__ = ["EmbeddingRetriever"]

MOST_DOCUMENTS = 50_000


class EmbeddingRetriever(Guarded):
    """Documents in memory, ranked by cosine, under the guard: for tests, demos and up to 50,000 documents.

    Making one calls nothing: documents are chunked and embedded when the first search comes, once, however many come at
    the same time. Where that fails nothing is kept, and the next search tries again.
    """

    def __init__(
        self,
        embedder: object = None,
        documents: Iterable[Document] = (),
        *,
        chunker: str | Chunker | None = None,
        threshold: float | None = None,
        scope_key: str | None = None,
        name: str = "",
        timeout: float | None = None,
        sinks: Sequence[Sink] = (),
        capture_content: bool = False,
    ) -> None:
        """Hold documents for searching.

        Args:
            embedder: None for the one that is shipped; a name; an embedder; an object with `embed_query` alone; or a
                function from a text to a vector.
            chunker: as for `Index.open`.
            threshold: the least cosine of a hit, -1 to 1; None leaves it to the embedder's profile.
            scope_key: the metadata key that keeps tenants apart: every document needs a text under it then, and every
                search names one.
            name, timeout, sinks, capture_content: as for `Guarded`.

        Raises:
            ConfigError: no embedder. UsageError: no documents, or too many. ScopeError: one without its scope.
        """
        held = _Held(embedder, chunker, threshold, scope_key)
        held.add(documents)
        super().__init__(
            held, name=name, scope_key=scope_key, timeout=timeout, sinks=sinks, capture_content=capture_content
        )
        self._held = held

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents, or replace those of the same id (and scope). All of them or, after an error, none is kept for
        the next build.

        Raises:
            UsageError: something that is no document, or more than 50,000 in all. ScopeError: one without its scope.
            BackendError: the embedder failed.
        """
        self._held.add(documents)


class _Held:
    """The documents and, from the first search on, the index of them."""

    kind = "EmbeddingRetriever"

    def __init__(
        self, embedder: object, chunker: str | Chunker | None, threshold: float | None, scope_key: str | None
    ) -> None:
        self.scope_key = scope_key
        self._embedder = embedder if embedder is None or isinstance(embedder, str) else embedder_of(embedder)
        self._chunker: Any = chunker
        self._threshold = threshold
        self._documents: dict[tuple[object, str], Document] = {}
        self._index: Index | None = None
        # Re-entrant: an embedder may itself search.
        self._lock = threading.RLock()

    def add(self, documents: Iterable[Document]) -> None:
        new = {self._key(document): document for document in documents}
        with self._lock:
            together = {**self._documents, **new}
            if len(together) > MOST_DOCUMENTS:
                raise UsageError(
                    f"{len(together)} documents are too many to hold in memory",
                    why=f"{MOST_DOCUMENTS} are the most",
                    fix="put them into a folder: Index.open(path)",
                )
            if self._index is not None and new:
                _fill(self._index, new.values())
            self._documents = together

    def _key(self, document: object) -> tuple[object, str]:
        if not isinstance(document, Document):
            raise UsageError(
                "only documents can be added", why=f"got {type(document).__name__}", fix="Document(id=...)"
            )
        if self.scope_key is None:
            return None, document.id
        scope = scope_value(self.scope_key, document.metadata.get(self.scope_key), where=repr(document.id))
        return scope, document.id

    def index(self) -> Index:
        """The index of all documents, built when it is first asked for."""
        with self._lock:
            if self._index is None:
                made = Index.open(
                    ":memory:",
                    embedder=cast("Any", self._embedder),
                    chunker=self._chunker,
                    scope_key=self.scope_key,
                    on_degrade="fail",
                )
                try:
                    _fill(made, self._documents.values())
                except BaseException:
                    made.close()
                    raise
                self._index = made
            return self._index

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        return _search(self.index(), self._threshold, query, k, filters)

    def scoped(self, **scope: str) -> _Scoped:
        return _Scoped(self, scope, self._threshold)


class _Scoped:
    """One scope of them; nothing is built until it is searched."""

    def __init__(self, held: _Held, scope: Mapping[str, str], threshold: float | None) -> None:
        self._held = held
        self._scope = scope
        self._threshold = threshold

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        return _search(self._held.index().scoped(**self._scope), self._threshold, query, k, filters)


def _search(index: Index, threshold: float | None, query: str, k: int, filters: Mapping[str, object] | None) -> Hits:
    return index.search(query, k=k, filters=filters, mode="dense", threshold=threshold)


def _fill(index: Index, documents: Iterable[Document]) -> None:
    """Raises BackendError where one of them could not be embedded whole, UsageError where one was refused."""
    for handle, own in _by_scope(index, documents):
        report = handle.add(own)
        for kind, refusals in ((UsageError, report.refused), (BackendError, report.failed)):
            if refusals:
                raise kind(
                    f"{len(refusals)} of the documents cannot be searched",
                    where=repr(refusals[0].id),
                    why=refusals[0].reason,
                )


def _by_scope(index: Index, documents: Iterable[Document]) -> Iterator[tuple[Index, list[Document]]]:
    """Each scope's documents and its own handle: written through an unbound one, an id would move between scopes."""
    key = index.scope_key
    if key is None:
        yield index, list(documents)
        return
    apart: dict[str, list[Document]] = {}
    for document in documents:
        apart.setdefault(scope_value(key, document.metadata.get(key), where=repr(document.id)), []).append(document)
    for value, own in apart.items():
        yield index.scoped(**{key: value}), own
