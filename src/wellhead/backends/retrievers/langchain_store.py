"""A LangChain vector store under the guard, with what its numbers mean declared, and probed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, Unpack, cast

from wellhead.backends.retrievers.langchain import mapping_of
from wellhead.backends.retrievers.scores import Convention, check_convention, check_cosines, check_order, score_of
from wellhead.errors import ConfigError
from wellhead.records import Hits
from wellhead.search.guard import Guarded, GuardOptions

__all__ = ["LangChainStoreRetriever", "NativeFilters"]

NativeFilters: TypeAlias = Callable[[Mapping[str, object]], object]
_PROBE = "What is this about?"
_PROBED = 10


class LangChainStoreRetriever(Guarded):
    """A vector store with LangChain's `similarity_search_with_score`, its scores turned so that higher is better.

    Before the first search the store is probed: the text of one of its own documents must find that document before all
    others. Every answer after that is still held against the declared direction and range.
    """

    def __init__(
        self,
        store: Any,
        *,
        score: Convention,
        native_filters: NativeFilters | None = None,
        filter_argument: str = "filter",
        **options: Unpack[GuardOptions],
    ) -> None:
        """Wrap a store; nothing is asked of it yet.

        Args:
            score: what it returns beside each document. There is no default, since no two makes agree.
            native_filters: our filters (the scope among them) in the store's own spelling; without it the store
                searches everything, and what the filters do not admit is dropped from its answer.
            filter_argument: under which name the store takes them.
            options: name, scope_key, timeout, on_degrade, sinks and capture_content, as for `Guarded`.

        Raises:
            ConfigError: no such store, an unknown convention.
        """
        check_convention(score)
        if not callable(getattr(store, "similarity_search_with_score", None)):
            raise ConfigError(
                f"{type(store).__name__} is no vector store that tells its scores",
                why="it has no `similarity_search_with_score`",
                fix="pass store.as_retriever() to LangChainRetriever, which needs no scores",
            )
        self._store = _Store(store, score, native_filters, filter_argument)
        super().__init__(
            self._store,
            **options,
        )

    def probe(self) -> bool:
        """Check the declared convention now, as a program does before it takes traffic; False for an empty store.

        Raises:
            ConfigError: a document's own text does not find it before all others, or the scores are of another kind.
        """
        return self._store.probe()


class _Store:
    def __init__(self, store: Any, convention: Convention, native: NativeFilters | None, argument: str) -> None:
        self._store = store
        self._convention = convention
        self._native = native
        self._argument = argument
        self._probed = False
        self._lock = threading.RLock()
        self.kind = type(store).__name__

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        if not self._probed:
            self.probe()
        given = {self._argument: self._native(filters)} if filters and self._native else {}
        return cast(
            "Hits", [mapping_of(document, cast("float", score)) for document, score in self._asked(query, k, given)]
        )

    def _asked(self, query: str, k: int, given: Mapping[str, object]) -> list[tuple[Any, object]]:
        found = self._store.similarity_search_with_score(query, k=k, **given)
        pairs = [(document, told) for document, told in found]
        check_order(self._convention, [told for _, told in pairs])
        return [(document, score_of(self._convention, told)) for document, told in pairs]

    def probe(self) -> bool:
        with self._lock:
            if self._probed:
                return True
            some = self._asked(_PROBE, 1, {})
            if not some:
                return False
            text = some[0][0].page_content
            found = self._asked(text, _PROBED, {})
            if not found or found[0][0].page_content != text:
                raise ConfigError(
                    f"the scores of {self.kind} could not be verified",
                    why="the text of one of its documents does not find that document first",
                    fix="look at how its documents and queries are embedded: with the same model, each in its role?",
                )
            self._compare(text, found)
            self._probed = True
            return True

    def _compare(self, text: str, found: list[tuple[Any, object]]) -> None:
        """Where the store shows its embedder, the numbers themselves are compared."""
        embedder: Any = getattr(self._store, "embeddings", None)
        if not hasattr(embedder, "embed_query") or not hasattr(embedder, "embed_documents"):
            return
        vectors = embedder.embed_documents([document.page_content for document, _ in found])
        check_cosines(self._convention, [score for _, score in found], embedder.embed_query(text), vectors)
