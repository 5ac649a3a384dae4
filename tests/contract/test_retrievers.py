"""Every retriever, ours and foreign, keeps to the same contract: `retrievers.function`, `retrievers.langchain`,
`retrievers.langchain_store`, `retrievers.llamaindex`, the index itself, and documents in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from wellhead.backends.retrievers.function import FunctionRetriever
from wellhead.backends.retrievers.langchain import LangChainRetriever
from wellhead.backends.retrievers.langchain_store import LangChainStoreRetriever
from wellhead.backends.retrievers.llamaindex import LlamaIndexRetriever
from wellhead.index import Index
from wellhead.index.embedding import EmbeddingRetriever
from wellhead.records import Document
from wellhead.search.filters import matches, parse
from wellhead.search.guard import Guarded
from wellhead.testing.fakes import HashEmbedder
from wellhead.testing.retrievers import RetrieverContract


def holding(documents: Sequence[Document], query: str, k: int, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a small search service finds: documents that hold the query's word, filters first."""
    condition = parse(filters)
    found = [
        {"id": document.id, "text": document.text, "score": 1.0, "source": document.id, "metadata": document.metadata}
        for document in documents
        if matches(condition, document.metadata) and query.casefold() in document.text.casefold()
    ]
    return found[:k]


class TestFunction(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        return FunctionRetriever(lambda query, k, filters: holding(documents, query, k, filters), scope_key="tenant")


class TestAsyncFunction(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        async def search(query: str, k: int, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
            return holding(documents, query, k, filters)

        return FunctionRetriever(search, scope_key="tenant")


class TestFunctionThatIgnoresFilters(RetrieverContract):
    filters_first = False

    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        return FunctionRetriever(lambda query, k, filters: holding(documents, query, 100, {}), scope_key="tenant")


class TestIndex(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"], scope_key="tenant")
        index.add(documents)
        return Guarded(index, scope_key="tenant")


class TestIndexWithoutScopes(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
        index.add(documents)
        return Guarded(index, scope_key="tenant")


class TestEmbedding(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        return EmbeddingRetriever(HashEmbedder(), documents, scope_key="tenant")


def langchain_store(documents: Sequence[Document]) -> Any:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document as Foreign
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))
    store.add_documents(
        [Foreign(page_content=item.text, metadata=dict(item.metadata), id=item.id) for item in documents]
    )
    return store


class TestLangChain(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        def own(k: int, filters: Mapping[str, object]) -> Mapping[str, object]:
            condition = parse(filters)
            return {"k": k, "filter": lambda item: matches(condition, item.metadata)}

        retriever = langchain_store(documents).as_retriever()
        return LangChainRetriever(retriever, search_kwargs=own, scope_key="tenant")


class TestLangChainStore(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        def native(filters: Mapping[str, object]) -> object:
            condition = parse(filters)
            return lambda item: matches(condition, item.metadata)

        store = langchain_store(documents)
        return LangChainStoreRetriever(store, score="cosine", native_filters=native, scope_key="tenant")


class TestLlamaIndex(RetrieverContract):
    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        pytest.importorskip("llama_index.core")
        from llama_index.core import MockEmbedding, VectorStoreIndex
        from llama_index.core.schema import TextNode

        nodes = [TextNode(id_=item.id, text=item.text, metadata=dict(item.metadata)) for item in documents]
        return LlamaIndexRetriever(VectorStoreIndex(nodes, embed_model=MockEmbedding(8)), scope_key="tenant")
