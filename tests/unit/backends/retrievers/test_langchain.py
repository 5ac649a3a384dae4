"""LangChain's retrievers and stores: what they are given, how they are read, and what is asked of their numbers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from wellhead.backends.retrievers.langchain import LangChainRetriever
from wellhead.backends.retrievers.langchain_store import LangChainStoreRetriever
from wellhead.errors import BackendError, ConfigError, UsageError


class Foreign:
    """A document as LangChain has them."""

    def __init__(self, text: str, document_id: str | None = None, **metadata: Any) -> None:
        self.page_content = text
        self.id = document_id
        self.metadata = metadata


class Invoked:
    def __init__(self, *found: Any) -> None:
        self.found = found
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    def invoke(self, query: str, **arguments: Any) -> list[Any]:
        self.calls.append((query, arguments))
        return list(self.found)


@pytest.mark.promise("G26")
def test_a_retriever_is_given_the_query_alone_or_what_search_kwargs_says() -> None:
    plain, told = Invoked(Foreign("one")), Invoked(Foreign("one", tenant="acme"))
    LangChainRetriever(plain).search("refund", k=3, filters={})
    LangChainRetriever(told, search_kwargs=lambda k, f: {"k": k, "filter": f}, scope_key="tenant").scoped(
        tenant="acme"
    ).search("refund", k=3)
    assert plain.calls == [("refund", {})]
    assert told.calls == [("refund", {"k": 3, "filter": {"tenant": "acme"}})]


@pytest.mark.promise("G26", "G29")
def test_its_documents_are_read_and_checked_again() -> None:
    backend = Invoked(
        Foreign("one", "id-1", source="faq.md", title="FAQ", tenant="acme", nothing=None),
        Foreign("two", tenant="globex"),
        Foreign("three", tenant="acme"),
    )
    retriever = LangChainRetriever(backend, scope_key="tenant")
    hits = retriever.search("refund", k=1, filters={"tenant": "acme"})
    assert [(hit.id, hit.text, hit.uri, hit.title, hit.score) for hit in hits] == [
        ("id-1", "one", "faq.md", "FAQ", None)
    ]
    assert hits.dropped == 2
    assert len(retriever.search("refund", filters={"tenant": "acme"})[1].id) == 64


@pytest.mark.parametrize("found", [["text"], [7], [{"page_content": "x"}]])
def test_what_is_no_document_of_langchain_is_an_error(found: list[Any]) -> None:
    with pytest.raises(UsageError, match="what is no document"):
        LangChainRetriever(Invoked(*found)).search("refund")


def test_a_chain_is_no_retriever() -> None:
    class Chain:
        def invoke(self, query: str) -> str:
            return "an answer"

    with pytest.raises(UsageError, match="no list of documents"):
        LangChainRetriever(Chain()).search("refund")
    with pytest.raises(ConfigError, match="no LangChain retriever"):
        LangChainRetriever(object())
    with pytest.raises(ConfigError, match="no `similarity_search_with_score`"):
        LangChainStoreRetriever(object(), score="cosine")
    with pytest.raises(ConfigError, match="unknown score convention"):
        LangChainStoreRetriever(Store(), score="dot")  # type: ignore[arg-type]


def test_real_retrievers_are_awaited_only_where_they_are_async_themselves() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    threads: list[str] = []

    class Blocking(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            threads.append(threading.current_thread().name)
            return [Document(page_content=query)]

    class Async(Blocking):
        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            threads.append("loop" if threading.current_thread() is threading.main_thread() else "aside")
            return [Document(page_content=query)]

    for kind in (Blocking, Async):
        hits = asyncio.run(LangChainRetriever(kind()).asearch("refund"))
        assert [hit.text for hit in hits] == ["refund"]
    assert threads == ["wellhead-search", "loop"]
    assert len(LangChainRetriever(Async()).search("refund")) == 1


class Store:
    """A vector store over fixed numbers; a query that is one of its texts has the number `own`."""

    def __init__(self, numbers: Mapping[str, Any] | None = None, own: Any = 0.0) -> None:
        self.numbers = dict(numbers or {"a": 0.5, "b": 1.9})
        self.own = own
        self.calls: list[tuple[str, int, object]] = []

    def similarity_search_with_score(self, query: str, k: int = 4, filter: object = None) -> list[tuple[Foreign, Any]]:  # noqa: A002
        self.calls.append((query, k, filter))
        own = [(query, self.own)] if query in self.numbers else []
        others = [(text, number) for text, number in self.numbers.items() if text != query]
        return [(Foreign(text, text), number) for text, number in [*own, *others]][:k]


@pytest.mark.promise("D28")
def test_distances_become_scores_where_higher_is_better() -> None:
    hits = LangChainStoreRetriever(Store(), score="cosine_distance").search("refund")
    assert [(hit.text, hit.score) for hit in hits] == [("a", 0.5), ("b", pytest.approx(-0.9))]
    plain = LangChainStoreRetriever(Store(), score="distance").search("a")
    assert [hit.score for hit in plain] == [0.0, -1.9]


@pytest.mark.promise("D47")
@pytest.mark.parametrize("convention", ["similarity", "cosine"])
def test_a_wrong_direction_is_found_before_the_first_answer(convention: Any) -> None:
    retriever = LangChainStoreRetriever(Store({"a": 0.2, "b": 0.7}), score=convention)
    with pytest.raises(ConfigError, match="the first of its list would be the worst"):
        retriever.search("refund")
    with pytest.raises(ConfigError):
        retriever.probe()


@pytest.mark.promise("D47")
def test_a_document_that_does_not_find_itself_is_found_out() -> None:
    class Mixed(Store):
        """Two models in one collection: everything is far from everything, in a steady order."""

        def similarity_search_with_score(self, query: str, k: int = 4, filter: object = None) -> Any:  # noqa: A002
            texts = ["a", "b"] if query.startswith("What") else ["b", "a"]
            return [(Foreign(text, text), 0.5) for text in texts][:k]

    with pytest.raises(ConfigError, match="could not be verified"):
        LangChainStoreRetriever(Mixed(), score="cosine").search("refund")


def test_a_store_is_probed_once_and_an_empty_one_later() -> None:
    store = Store({"a": 0.5})
    store.numbers.clear()
    retriever = LangChainStoreRetriever(store, score="distance")
    assert retriever.probe() is False
    assert retriever.search("refund").outcome == "no_match"
    store.numbers["a"] = 0.5
    assert retriever.probe() is True
    before = len(store.calls)
    retriever.search("refund")
    retriever.search("refund")
    assert len(store.calls) == before + 2


def test_filters_are_spelled_as_the_store_wants_them() -> None:
    store = Store()
    spelled = LangChainStoreRetriever(store, score="distance", native_filters=lambda f: {"$spelled": dict(f)})
    assert not len(spelled.search("refund", k=7, filters={"tenant": "acme"}))
    assert store.calls[-1] == ("refund", 7, {"$spelled": {"tenant": "acme"}})
    LangChainStoreRetriever(store, score="distance").search("refund", filters={"tenant": "acme"})
    assert store.calls[-1] == ("refund", 10, None)

    class Elsewhere(Store):
        def similarity_search_with_score(self, query: str, k: int = 4, pre_filter: object = None) -> Any:
            return super().similarity_search_with_score(query, k, pre_filter)

    other = Elsewhere()
    named = LangChainStoreRetriever(other, score="distance", native_filters=dict, filter_argument="pre_filter")
    named.search("refund", filters={"tenant": "acme"})
    assert other.calls[-1] == ("refund", 10, {"tenant": "acme"})


def test_a_score_that_is_no_number_is_dropped() -> None:
    store = Store({"a": 0.5, "b": float("nan")})
    hits = LangChainStoreRetriever(store, score="distance").search("refund")
    assert ([hit.text for hit in hits], hits.dropped) == (["a"], 1)


def test_a_store_that_fails_is_an_outage() -> None:
    class Down(Store):
        def similarity_search_with_score(self, query: str, k: int = 4, filter: object = None) -> Any:  # noqa: A002
            raise ConnectionError("refused: password hunter2")

    with pytest.raises(BackendError) as caught:
        LangChainStoreRetriever(Down(), score="cosine").search("refund")
    assert "hunter2" not in str(caught.value)


@pytest.mark.promise("D47")
def test_the_numbers_of_a_real_store_are_compared_with_its_vectors() -> None:
    pytest.importorskip("langchain_core")
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    class L2(InMemoryVectorStore):
        def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            found = super().similarity_search_with_score(query, k, **kwargs)
            return [(document, max(0.0, 2 - 2 * cosine) ** 0.5) for document, cosine in found]

    store = L2(DeterministicFakeEmbedding(size=32))
    store.add_texts([f"text {n}" for n in range(9)])
    assert LangChainStoreRetriever(store, score="l2").probe()
    with pytest.raises(ConfigError, match="the vectors' own"):
        LangChainStoreRetriever(store, score="cosine_distance").probe()
