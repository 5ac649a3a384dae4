"""LlamaIndex: an index asked with our k and filters, a retriever with its own; and what is checked afterwards."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from wellhead.backends.retrievers.llamaindex import LlamaIndexRetriever
from wellhead.errors import ConfigError, MissingExtra, UsageError


class Scored:
    """What LlamaIndex returns: a passage with a score around it."""

    def __init__(self, text: str, score: float | None = 0.5, passage_id: str = "", **metadata: Any) -> None:
        self.score = score
        self.node = self
        self.node_id = passage_id
        self.metadata = metadata
        self._text = text

    def get_content(self) -> str:
        return self._text


class Own:
    def __init__(self, *found: Any) -> None:
        self.found = found

    def retrieve(self, query: str) -> list[Any]:
        return list(self.found)


class AnIndex:
    def __init__(self, *found: Any) -> None:
        self.found = found
        self.calls: list[Mapping[str, Any]] = []

    def as_retriever(self, **arguments: Any) -> Own:
        self.calls.append(arguments)
        return Own(*self.found)


@pytest.mark.promise("G24")
def test_an_index_is_asked_with_k_and_filters_in_its_own_spelling() -> None:
    index = AnIndex(Scored("one", passage_id="n1", tenant="acme", file_path="faq.md"), Scored("two", tenant="globex"))
    retriever = LlamaIndexRetriever(
        index, native_filters=lambda filters: ["spelled", dict(filters)], scope_key="tenant"
    )
    hits = retriever.search("refund", k=7, filters={"tenant": "acme"})
    assert index.calls == [{"similarity_top_k": 7, "filters": ["spelled", {"tenant": "acme"}]}]
    assert [(hit.id, hit.text, hit.score, hit.uri) for hit in hits] == [("n1", "one", 0.5, "faq.md")]
    assert hits.dropped == 1
    LlamaIndexRetriever(index, native_filters=dict).search("refund")
    assert index.calls[-1]["filters"] is None


@pytest.mark.promise("G25")
def test_a_retriever_has_its_own_k_and_filters_and_is_checked_again() -> None:
    hits = LlamaIndexRetriever(Own(*(Scored(f"text {n}", n=n) for n in range(9)))).search(
        "refund", k=3, filters={"n": {"$gte": 5}}
    )
    assert [hit.text for hit in hits] == ["text 5", "text 6", "text 7"]
    assert hits.dropped == 6
    with pytest.raises(ConfigError, match="filters of its own"):
        LlamaIndexRetriever(Own(), native_filters=dict)
    with pytest.raises(ConfigError, match="neither an index nor a retriever"):
        LlamaIndexRetriever(object())


@pytest.mark.parametrize("found", [["text"], [7], [{"text": "x"}]])
def test_what_is_no_document_of_llamaindex_is_an_error(found: list[Any]) -> None:
    with pytest.raises(UsageError, match="no document"):
        LlamaIndexRetriever(Own(*found)).search("refund")


@pytest.mark.promise("G27", "G34")
def test_without_the_library_an_index_needs_filters_in_its_own_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *rest: Any) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtra) as caught:
        LlamaIndexRetriever(AnIndex())
    assert "pip install 'wellhead[llamaindex]'" in caught.value.fix
    assert isinstance(caught.value.__cause__, ImportError)
    assert not len(LlamaIndexRetriever(AnIndex(), native_filters=dict).search("refund"))
    assert not len(LlamaIndexRetriever(Own()).search("refund"))


@pytest.mark.promise("G24")
@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"a": "x"}, [("a", "==", "x")]),
        ({"a": "x", "n": {"$gte": 2, "$lt": 5}}, [("a", "==", "x"), [("n", ">=", 2), ("n", "<", 5)]]),
        ({"a": {"$in": ["x", "y"]}}, [("a", "in", ["x", "y"])]),
        ({"$or": [{"a": "x"}, {"n": 1}]}, ["or", ("a", "==", "x"), ("n", "==", 1)]),
        # What cannot be said there is left out, and never narrows: the guard checks it afterwards.
        ({"open": True, "a": "x"}, [("a", "==", "x")]),
        ({"open": True}, None),
        ({"$or": [{"open": True}, {"a": "x"}]}, None),
        ({"$not": {"a": "x"}}, None),
        ({"a": {"$in": ["x", 1]}}, None),
        ({"a": {"$in": []}}, None),
    ],
)
def test_our_filters_are_said_in_its_words(filters: dict[str, Any], said: Any) -> None:
    pytest.importorskip("llama_index.core")
    index = AnIndex()
    LlamaIndexRetriever(index).search("refund", filters=filters)
    made = index.calls[0]["filters"]
    assert (None if made is None else plain(made)) == said


def plain(made: Any) -> Any:
    if hasattr(made, "filters"):
        parts = [plain(part) for part in made.filters]
        return parts if made.condition is None or made.condition.value == "and" else [made.condition.value, *parts]
    return made.key, made.operator.value, made.value


def test_real_retrievers_are_awaited_only_where_they_are_async_themselves() -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    threads: list[bool] = []

    class Blocking(BaseRetriever):  # type: ignore[misc]
        def _retrieve(self, query_bundle: QueryBundle) -> list[Any]:
            threads.append(threading.current_thread() is threading.main_thread())
            return [NodeWithScore(node=TextNode(text=query_bundle.query_str, id_="n"), score=0.5)]

    class Async(Blocking):
        async def _aretrieve(self, query_bundle: QueryBundle) -> list[Any]:
            return self._retrieve(query_bundle)

    for kind in (Blocking, Async):
        hits = asyncio.run(LlamaIndexRetriever(kind()).asearch("refund"))
        assert [(hit.id, hit.text, hit.score) for hit in hits] == [("n", "refund", 0.5)]
    # LlamaIndex's own `aretrieve` of the first would have blocked the loop.
    assert threads == [False, True]


def test_nothing_of_the_library_is_loaded_before_it_is_needed() -> None:
    module = sys.modules["wellhead.backends.retrievers.llamaindex"]
    assert not any(name.startswith("llama_index") for name in vars(module))
