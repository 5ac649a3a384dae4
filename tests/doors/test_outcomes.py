"""Each way that a search can end, through each door: no two look alike, and a scope alone is never "filtered out"."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import pytest
from mcp import Client

from endings import ABSENT, FOUND, SECRET, filled, half_down, outage, slow
from wellhead import (
    Document,
    FunctionRetriever,
    Guarded,
    Hits,
    Index,
    Tool,
    WellheadError,
    search_tool,
)
from wellhead.doors.langchain import WellheadRetriever, langchain_tool
from wellhead.doors.mcp import server_of
from wellhead.testing.fakes import HashEmbedder


class Way(NamedTuple):
    """One way to end: what is searched, for what, and the outcome of a tool."""

    make: Callable[[], Any]
    outcome: str
    query: str = FOUND
    timeout: float | None = None


class Narrowed:
    """An index behind a filter that leaves nothing of it."""

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        return filled().search(query, k=k, filters={"area": "nowhere", **(filters or {})})


def scoped() -> Index:
    index = Index.open(":memory:", scope_key="tenant", embedder=HashEmbedder(), languages=["en"])
    index.scoped(tenant="acme").add([Document(id="refunds", text="A refund is paid within 45 days.")])
    return index


WAYS = {
    "hits": Way(filled, "hits"),
    "no match": Way(filled, "no_match", ABSENT),
    "empty index": Way(lambda: Index.open(":memory:"), "empty_index"),
    "filtered out": Way(Narrowed, "filtered_out"),
    "a leg down": Way(half_down, "hits"),
    "a leg down, no match": Way(half_down, "no_match", "zzgrblfx"),
    "both down": Way(outage, "unavailable"),
    "time-out": Way(slow, "timeout", timeout=0.05),
    "bad query": Way(filled, "bad_query", " \n"),
    "no scope": Way(scoped, "no_scope"),
}

# What is random in an answer, and would make any two of them differ.
RANDOM = re.compile(r"\b[0-9a-f]{32}\b")


def failure(error: WellheadError) -> str:
    return f"{type(error).__name__}: {error}"


def in_python(way: Way) -> str:
    """What a program sees: the outcome and its reason, or the error."""
    try:
        hits = Guarded(way.make()).search(way.query, timeout=way.timeout)
    except WellheadError as error:
        return failure(error)
    return f"{hits.outcome} {hits.why_empty} {[part.leg for part in hits.degraded]} {[hit.text for hit in hits]}"


def tool_of(way: Way) -> Tool:
    return search_tool(way.make(), timeout=way.timeout)


def as_tool_text(way: Way) -> str:
    return tool_of(way).run({"query": way.query}).text


def as_tool_json(way: Way) -> str:
    return json.dumps(tool_of(way).run({"query": way.query}).data)


def over_mcp(name: str, pick: Callable[[Any], str]) -> Callable[[Way], str]:
    async def ask(way: Way) -> str:
        async with Client(server_of(way.make(), timeout=way.timeout)) as client:
            return pick(await client.call_tool(name, {"query": way.query}))

    def door(way: Way) -> str:
        try:
            return asyncio.run(ask(way))
        except WellheadError as error:  # it is not even served
            return failure(error)

    return door


def in_langchain(way: Way) -> str:
    """What a chain sees of a retriever: its list as it prints, or the error."""
    try:
        return repr(WellheadRetriever(retriever=Guarded(way.make(), timeout=way.timeout)).invoke(way.query))
    except WellheadError as error:
        return failure(error)


def message(way: Way) -> Any:
    call = {"name": "search_docs", "args": {"query": way.query}, "id": "1", "type": "tool_call"}
    return langchain_tool(tool_of(way)).invoke(call)


DOORS: dict[str, Callable[[Way], str]] = {
    "Python": in_python,
    "tool, text": as_tool_text,
    "tool, JSON": as_tool_json,
    "MCP, text": over_mcp("search_docs", lambda result: result.content[0].text),
    "MCP, structure": over_mcp("search_docs", lambda result: json.dumps(result.structured_content)),
    "LangChain, retriever": in_langchain,
    "LangChain, content": lambda way: str(message(way).content),
    "LangChain, artifact": lambda way: json.dumps(message(way).artifact),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_two_ways_to_end_look_alike_through_a_door(door: str) -> None:
    told = {name: RANDOM.sub("", DOORS[door](way)) for name, way in WAYS.items()}
    assert all(told.values())
    for one, other in combinations(told, 2):
        assert told[one] != told[other], f"{one} and {other}"
    assert SECRET not in "".join(told.values())


@pytest.mark.parametrize("name", WAYS)
def test_every_door_for_models_tells_the_same_outcome(name: str) -> None:
    way = WAYS[name]
    outcomes = {
        "tool": tool_of(way).run({"query": way.query}).outcome,
        "LangChain": message(way).artifact["outcome"],
    }
    if name != "no scope":  # MCP refuses to serve at all
        outcomes["MCP"] = json.loads(DOORS["MCP, structure"](way))["outcome"]
    assert set(outcomes.values()) == {way.outcome}


@pytest.mark.parametrize("name", WAYS)
def test_only_a_failure_is_marked_as_one(name: str) -> None:
    way = WAYS[name]
    ran = way.outcome in {"hits", "no_match", "filtered_out", "empty_index"}
    assert (message(way).status == "success") == ran
    if name != "no scope":
        assert over_mcp("search_docs", lambda result: str(result.is_error))(way) == str(not ran)
    for door in ("tool, JSON", "LangChain, artifact"):
        # A list beside a failure would be read as an empty one.
        assert ("documents" in json.loads(DOORS[door](way))) == ran


def test_the_two_searches_of_the_mcp_server_agree() -> None:
    """`search` needs documents to fetch, so it is there over indexes alone."""
    pick: Callable[[Any], str] = lambda result: json.dumps(result.structured_content)  # noqa: E731
    told = {}
    for name, way in WAYS.items():
        if isinstance(way.make(), Index) and name != "no scope":
            told[name] = over_mcp("search", pick)(way)
            assert json.loads(told[name])["outcome"] == way.outcome
    assert set(told) == {"hits", "no match", "empty index", "a leg down", "a leg down, no match", "bad query"}
    for one, other in combinations(told, 2):
        assert told[one] != told[other], f"{one} and {other}"


# --- scope alone ---------------------------------------------------------------------------------------------------


def everything() -> FunctionRetriever:
    """A backend that heeds no filter and holds another scope's passages alone."""
    page = {"text": "A refund is paid within 45 days.", "metadata": {"tenant": "acme"}}
    return FunctionRetriever(lambda query, k, filters: [page], scope_key="tenant")


def without_scopes() -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add([Document(id="refunds", text="A refund is paid within 45 days.", metadata={"tenant": "acme"})])
    return index


OTHERS: dict[str, Callable[[], Any]] = {
    "an index with scopes": lambda: scoped().scoped(tenant="globex"),
    "a guard over one": lambda: Guarded(scoped()).scoped(tenant="globex"),
    "an index without scopes": lambda: without_scopes().scoped(tenant="globex"),
    "a guard over one that filters": lambda: Guarded(without_scopes(), scope_key="tenant", scope="globex"),
    "a backend that heeds nothing": lambda: everything().scoped(tenant="globex"),
}


async def _ask(retriever: Any) -> str:
    async with Client(server_of(retriever)) as client:
        result: Any = await client.call_tool("search_docs", {"query": "refund"})
        return str(result.structured_content["outcome"])


def outcomes_of(retriever: Any) -> Mapping[str, str]:
    ask: Callable[[Any], Awaitable[str]] = _ask
    found: Any = WellheadRetriever(retriever=retriever).invoke("refund")
    call = {"name": "search_docs", "args": {"query": "refund"}, "id": "1", "type": "tool_call"}
    return {
        "Python": retriever.search("refund").outcome,
        "tool": search_tool(retriever).run({"query": "refund"}).outcome,
        "MCP": asyncio.run(ask(retriever)),  # type: ignore[arg-type]
        "LangChain": found.outcome,
        "LangChain's tool": langchain_tool(search_tool(retriever)).invoke(call).artifact["outcome"],
    }


@pytest.mark.promise("D38", "D43")
@pytest.mark.parametrize("kind", OTHERS)
def test_a_scope_alone_is_never_told_as_filtered_out(kind: str) -> None:
    told = outcomes_of(OTHERS[kind]())
    assert set(told.values()) <= {"no_match", "empty_index"}, told
    assert len(set(told.values())) == 1, told
