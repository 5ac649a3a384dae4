"""A LangChain retriever, or a LangChain vector store, under the guard.

Nothing of LangChain is imported: whoever has such an object has the library, and what is used of it is looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, Unpack, cast

from wellhead.errors import ConfigError, UsageError
from wellhead.records import Hits
from wellhead.search.guard import Guarded, GuardOptions

__all__ = ["LangChainRetriever", "SearchArguments", "mapping_of"]

SearchArguments: TypeAlias = Callable[[int, Mapping[str, object]], Mapping[str, object]]


class LangChainRetriever(Guarded):
    """Anything with LangChain's `invoke(query)` that gives documents.

    Its own k and filters hold unless `search_kwargs` passes ours on; what it returns is checked again either way, so a
    retriever that knows nothing of the filters gives fewer hits and no wrong ones. Its scores are not told: None.
    """

    def __init__(
        self,
        retriever: Any,
        *,
        search_kwargs: SearchArguments | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        """Wrap a retriever.

        Args:
            search_kwargs: what else `invoke` is given, as a function of k and filters:
                `lambda k, filters: {"k": k, "filter": filters}`. A keyword that the retriever does not know is dropped
                by LangChain without a word, so look at what it takes.
            options: name, scope_key, timeout, on_degrade, sinks and capture_content, as for `Guarded`.

        Raises:
            ConfigError: it has no `invoke`.
        """
        if not callable(getattr(retriever, "invoke", None)):
            raise ConfigError(
                f"{type(retriever).__name__} is no LangChain retriever",
                why="it has no `invoke`",
                fix="pass store.as_retriever(), or the store itself to LangChainStoreRetriever",
            )
        super().__init__(
            _Invoked(retriever, search_kwargs or _nothing),
            **options,
        )


def _nothing(k: int, filters: Mapping[str, object]) -> Mapping[str, object]:  # noqa: ARG001 (of the shape)
    return {}


class _Invoked:
    def __init__(self, retriever: Any, arguments: SearchArguments) -> None:
        self._retriever = retriever
        self._arguments = arguments
        self.kind = type(retriever).__name__
        # Its `ainvoke` is a coroutine of its own only where this is written anew; otherwise it is `invoke` in a thread,
        # which the guard has too.
        own = getattr(type(retriever), "_aget_relevant_documents", None)
        base = next((kind for kind in type(retriever).__mro__ if kind.__name__ == "BaseRetriever"), None)
        self.native_async = own is not None and own is not getattr(base, "_aget_relevant_documents", None)

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        found = self._retriever.invoke(query, **self._arguments(k, filters or {}))
        return cast("Hits", map(mapping_of, _listed(found)))

    async def asearch(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        found = await self._retriever.ainvoke(query, **self._arguments(k, filters or {}))
        return cast("Hits", map(mapping_of, _listed(found)))


def _listed(found: object) -> Iterable[object]:
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise UsageError(
            "the LangChain object returned what is no list of documents",
            why=f"got {type(found).__name__}",
            fix="pass a retriever, not a chain or a model",
        )
    return found


def mapping_of(document: Any, score: float | None = None) -> Mapping[str, object]:
    """A LangChain document as the guard reads it.

    Raises:
        UsageError: it is none.
    """
    text, metadata = getattr(document, "page_content", None), getattr(document, "metadata", None)
    if not isinstance(text, str) or not isinstance(metadata, Mapping):
        raise UsageError(
            "the LangChain object returned what is no document",
            why=f"got {type(document).__name__}",
            fix="pass a retriever whose results have page_content and metadata",
        )
    return {
        "text": text,
        "id": getattr(document, "id", None) or None,
        "score": score,
        "uri": metadata.get("source") or metadata.get("uri"),
        "title": metadata.get("title"),
        "document_id": metadata.get("doc_id"),
        "metadata": metadata,
    }
