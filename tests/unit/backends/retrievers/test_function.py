"""A function as a retriever: what it is given, what it may return, and how it fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from wellhead.backends.retrievers.function import FunctionRetriever
from wellhead.errors import BackendError, BackendTimeout, ConfigError, UsageError
from wellhead.events import EventLog
from wellhead.records import Hits, Passage
from wellhead.search.guard import Guarded


def returning(told: Any) -> FunctionRetriever:
    return FunctionRetriever(lambda query, k, filters: told)


@pytest.mark.promise("G22")
def test_it_is_called_with_query_k_and_filters() -> None:
    calls: list[tuple[Any, ...]] = []

    def find(query: str, k: int, filters: Mapping[str, Any]) -> list[str]:
        calls.append((query, k, dict(filters)))
        return ["one"]

    async def afind(query: str, k: int, filters: Mapping[str, Any]) -> list[str]:
        return find(query, k, filters)

    for fn in (find, afind):
        retriever = FunctionRetriever(fn)
        assert retriever.name == fn.__name__
        assert len(retriever.search("refund", k=3)) == 1
        assert len(asyncio.run(retriever.asearch("refund", k=4, filters={"a": 1}))) == 0
    assert calls == [("refund", 3, {}), ("refund", 4, {"a": 1})] * 2


@pytest.mark.promise("G22")
def test_a_blocking_function_has_a_thread_and_a_deadline() -> None:
    def slow(query: str, k: int, filters: object) -> list[str]:
        time.sleep(0.5)
        return []

    with pytest.raises(BackendTimeout):
        FunctionRetriever(slow, timeout=0.05).search("refund")
    log = EventLog()
    FunctionRetriever(lambda query, k, filters: ["text"], name="web", sinks=[log], capture_content=True).search(
        "refund"
    )
    assert {key: log.events[0].data[key] for key in ("retriever", "backend", "query", "texts")} == {
        "retriever": "web",
        "backend": "FunctionRetriever",
        "query": "refund",
        "texts": ["text"],
    }


@pytest.mark.promise("G23", "G40")
def test_it_may_return_passages_texts_mappings_or_hits() -> None:
    passage = Passage(id="p", document_id="d", ordinal=0, text="one", start=0, end=3)
    mapping = {
        "text": "two",
        "id": "m",
        "score": 0.5,
        "source": {"uri": "https://x", "title": "X"},
        "metadata": {"n": 1, "none": None, "deep": {"a": 1}, "list": ["a"]},
    }
    hits = returning([passage, mapping, {"text": "three", "source": "faq.md"}, "four"]).search("refund")
    assert [(hit.text, hit.score, hit.verdict) for hit in hits] == [
        ("one", None, "unjudged"),
        ("two", 0.5, "unjudged"),
        ("three", None, "unjudged"),
        ("four", None, "unjudged"),
    ]
    assert (hits[1].id, hits[1].uri, hits[1].title, hits[1].metadata) == (
        "m",
        "https://x",
        "X",
        {"n": 1, "list": ("a",)},
    )
    assert hits[2].citation == "faq.md"
    told = Hits(outcome="no_match", why_empty="nothing near")
    assert returning(told).search("refund") == told


@pytest.mark.promise("G7")
def test_what_has_no_id_gets_a_stable_one_of_source_and_text() -> None:
    def ids(*told: Any) -> list[str]:
        return [hit.id for hit in returning(list(told)).search("refund")]

    first = ids("one", {"text": "one", "source": "a"}, {"text": "one", "source": "b"}, {"text": "two", "source": "a"})
    assert len(set(first)) == 4
    assert ids("one") == first[:1] == ids({"text": "one", "id": None})
    # No two pairs run into the same bytes.
    assert ids({"text": "bc", "source": "a"}) != ids({"text": "c", "source": "ab"})
    assert len(ids("one", "one")) == 1


@pytest.mark.parametrize(
    "told", [None, 7, "text", b"bytes", {"text": "one"}, [7], [None], [("one", 0.5)], [{"body": "x"}], [{"text": 7}]]
)
@pytest.mark.promise("G31")
def test_what_is_no_document_is_an_error_of_the_wiring(told: Any) -> None:
    with pytest.raises(UsageError, match=r"what is no document|something in it"):
        returning(told).search("refund")


@pytest.mark.parametrize(
    "broken", [{"id": ""}, {"id": 1.5}, {"id": "\ud800"}, {"score": "0.5"}, {"score": float("inf")}]
)
def test_one_broken_piece_is_dropped_and_the_others_stay(broken: dict[str, Any]) -> None:
    hits = returning([{"text": "bad", **broken}, {"text": " "}, {"text": "good"}]).search("refund")
    assert ([hit.text for hit in hits], hits.dropped) == (["good"], 2)


@pytest.mark.parametrize("fn", [None, 7, "search", lambda query: [], lambda query, *, k, filters: []])
@pytest.mark.promise("G33")
def test_what_cannot_be_called_is_refused_when_it_is_wired(fn: Any) -> None:
    with pytest.raises(ConfigError):
        FunctionRetriever(fn)


def test_an_outage_is_an_error_and_never_an_empty_list() -> None:
    def fail(query: str, k: int, filters: object) -> list[str]:
        raise ConnectionResetError

    with pytest.raises(BackendError) as caught:
        FunctionRetriever(fail).search("refund")
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert "outage" in caught.value.fix


def test_it_is_a_guard_itself_and_guarded_once() -> None:
    log = EventLog()
    retriever = returning([{"text": "one", "metadata": {"tenant": "acme"}}, {"text": "two"}])
    hits = Guarded(retriever, scope_key="tenant", scope="acme", sinks=[log]).search("refund")
    assert [hit.text for hit in hits] == ["one"]
    assert len(log.events) == 1
