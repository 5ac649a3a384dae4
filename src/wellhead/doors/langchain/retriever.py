"""`WellheadRetriever`: anything that Wellhead can search, as LangChain's retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from wellhead.doors.langchain.documents import Documents, retrieved, warn
from wellhead.errors import ConfigError
from wellhead.index import Index
from wellhead.search.guard import Guarded
from wellhead.search.request import Options

__all__ = ["WellheadRetriever"]

_OPTIONS = frozenset(Options.__annotations__) - {"k", "filters"}


class WellheadRetriever(BaseRetriever):
    """An index, a scoped handle, a guard or a retriever of your own, as LangChain's retriever.

    What it returns is a list with `hits` and an `outcome`, for none of the ways to find nothing is like another. A
    failed search raises (BackendError, ScopeError, ...) and is never an empty list.

    Args:
        retriever: what is searched; guarded if it is neither an index nor guarded.
        k: passages, 1 to 100; also of a call: `invoke(query, k=3)`.
        filters: as in `wellhead.search.filters`; those of a call hold beside them.
        options: of `Index.search` (`mode`, `cut`, `per_document`, ...), where it is an index.
    """

    retriever: Any
    k: int = 10
    filters: dict[str, Any] | None = None
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    _guarded: Any = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Raises ConfigError for options without an index, or for what is no retriever."""
        super().model_post_init(context)
        if self.options and not isinstance(self.retriever, Index):
            raise ConfigError("only an index takes options", why=f"got a {type(self.retriever).__name__}")
        unknown = sorted(self.options.keys() - _OPTIONS)
        if unknown:
            raise ConfigError(f"no options {unknown}", fix=f"known: {', '.join(sorted(_OPTIONS))}; k and filters aside")
        if isinstance(self.retriever, Index):
            return
        self._guarded = Guarded(self.retriever)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 (LangChain's signature)
        k: int | None = None,
        filters: Mapping[str, object] | None = None,
    ) -> list[Document]:
        asked = self._asked(k, filters)
        searched = self._guarded or self.retriever
        return self._told(searched.search(query, **asked))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
        k: int | None = None,
        filters: Mapping[str, object] | None = None,
    ) -> list[Document]:
        asked = self._asked(k, filters)
        searched = self._guarded or self.retriever
        return self._told(await searched.asearch(query, **asked))

    def _asked(self, k: int | None, filters: Mapping[str, object] | None) -> dict[str, Any]:
        own = self.filters
        # The call's filters are another's word: they narrow, and never replace.
        together = {**own, "$and": [*own.get("$and", ()), filters]} if own and filters else filters or own
        return {**self.options, "k": self.k if k is None else k, "filters": together}

    def _told(self, hits: Any) -> Documents:
        return retrieved(warn(hits))
