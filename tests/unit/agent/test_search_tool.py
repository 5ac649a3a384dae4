"""The tool as a model meets it: what it may say, what it is told, and that no two endings look alike."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections import UserDict, UserList
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endings import ABSENT, ENDINGS, FOUND, SECRET, Scripted, filled, half_down, outage, slow
from wellhead import ConfigError, Document, EventLog, Hits, Index, ScopeError, UsageError
from wellhead.agent.context import Context
from wellhead.agent.executor import Executor
from wellhead.agent.messages import ToolCall
from wellhead.agent.narrowing import check_filters
from wellhead.agent.registry import Registry
from wellhead.agent.search import DEFAULT_DESCRIPTION, search_tool
from wellhead.agent.tool import Tool, ToolResult
from wellhead.records import Hit, Passage
from wellhead.search.guard import Guarded
from wellhead.testing.fakes import HashEmbedder

by_ending = pytest.mark.parametrize("name", ENDINGS)


def direct(tool: Tool, arguments: Any) -> ToolResult:
    return tool.run(arguments)


def awaited(tool: Tool, arguments: Any) -> ToolResult:
    return asyncio.run(tool.arun(arguments))


def executed(tool: Tool, arguments: Any) -> ToolResult:
    return Executor(Registry(tool)).run(ToolCall(name=tool.name, arguments=arguments))


def executed_async(tool: Tool, arguments: Any) -> ToolResult:
    return asyncio.run(Executor(Registry(tool)).arun(ToolCall(name=tool.name, arguments=arguments)))


WAYS = [direct, awaited, executed, executed_async]


def plain(text: str) -> str:
    return re.sub(r"[0-9a-f]{32}", "BOUNDARY", text)


def passage(text: str, **fields: Any) -> Passage:
    given = {"id": "p" * 8, "document_id": "d", "ordinal": 0, "text": text, "start": 0, "end": len(text)}
    return Passage(**(given | fields))


# --- the endings ---------------------------------------------------------------------------------------------------


@by_ending
@pytest.mark.parametrize("way", WAYS)
def test_every_ending_is_typed_whichever_way_the_tool_is_called(
    name: str, way: Callable[[Tool, Any], ToolResult]
) -> None:
    ending = ENDINGS[name]
    result = way(ending.make(), ending.arguments)
    assert result.outcome == result.data["outcome"] == ending.outcome
    assert result.ok == (ending.outcome in {"hits", "no_match", "filtered_out", "empty_index"})
    assert str(result.data["note"]) in result.text
    assert SECRET not in result.text
    assert SECRET not in json.dumps(result.data)


def test_no_two_endings_look_alike() -> None:
    told = {name: ending.make().run(ending.arguments) for name, ending in ENDINGS.items()}
    for (one, first), (other, second) in combinations(told.items(), 2):
        assert plain(first.text) != plain(second.text), (one, other)
        assert json.dumps(first.data) != json.dumps(second.data), (one, other)
        if first.outcome != second.outcome:
            assert first.text.split()[:2] != second.text.split()[:2], (one, other)
            assert first.text.partition(":")[0] != second.text.partition(":")[0], (one, other)


@by_ending
def test_only_a_search_that_ran_has_documents_and_an_outage_has_no_empty_list(name: str) -> None:
    ending = ENDINGS[name]
    data = ending.make().run(ending.arguments).data
    assert ("documents" in data) == (ending.outcome in {"hits", "no_match", "filtered_out", "empty_index"})
    assert bool(data.get("documents")) == (ending.outcome == "hits")


@by_ending
def test_nothing_but_passages_lets_the_model_answer_from_memory(name: str) -> None:
    ending = ENDINGS[name]
    text = ending.make().run(ending.arguments).text
    if ending.outcome in {"no_match", "filtered_out", "empty_index"}:
        assert "Do not answer from memory as if the documents said it." in text
    elif ending.outcome in {"unavailable", "timeout", "no_scope", "misconfigured", "failed"}:
        assert "is unknown" in text
        assert "NOTHING FOUND" not in text


def test_a_degraded_answer_says_which_half_is_missing_and_how_to_mend_it() -> None:
    result = search_tool(half_down()).run({"query": FOUND})
    assert result.data["degraded"] == ["dense"]
    assert "DEGRADED: the dense half of the search did not run" in result.text
    assert "search again when the embedder works" in result.text
    nothing = search_tool(half_down()).run({"query": "zzgrblfx"})
    assert "Whether the documents answer the question is not certain" in nothing.text


@pytest.mark.promise("A33")
def test_the_host_gets_the_error_with_its_cause_and_the_model_does_not() -> None:
    result = search_tool(outage()).run({"query": FOUND})
    assert isinstance(result.error, ConnectionError)
    assert isinstance(result.error.__cause__, OSError)
    assert SECRET in str(result.error.__cause__)
    assert SECRET not in result.text


def test_what_is_no_document_is_a_wrongly_wired_tool_and_no_empty_answer() -> None:
    wrong: Any = Scripted(lambda: [object()])  # type: ignore[arg-type, return-value]
    result = search_tool(wrong).run({"query": FOUND})
    assert result.outcome == "misconfigured"
    assert isinstance(result.error, UsageError)


# --- what the model sees -------------------------------------------------------------------------------------------


@pytest.mark.promise("G12", "D39")
def test_the_model_sees_the_query_alone_and_cannot_set_anything_else() -> None:
    retriever = Scripted(Hits)
    tool = search_tool(retriever, k=7, filters={"tenant": "acme"})
    assert list(tool.parameters["properties"]) == ["query"]  # type: ignore[call-overload]
    for extra in ({"k": 100}, {"filters": {}}, {"tenant": "globex"}, {"ctx": {"user_id": "globex"}}):
        assert tool.run({"query": "x", **extra}).outcome == "bad_arguments"
    assert retriever.asked == []
    tool.run({"query": "x"})
    assert retriever.asked == [("x", 7, {"tenant": "acme"})]


@pytest.mark.promise("G15")
def test_a_document_has_id_text_score_source_and_metadata_on_request_alone() -> None:
    index = filled()
    (first, *_) = search_tool(index).run({"query": FOUND}).data["documents"]  # type: ignore[misc]
    hit = index.search(FOUND)[0]
    assert first == {"id": hit.id, "text": hit.text, "score": hit.score, "source": "keys"}
    (first, *_) = search_tool(index, include_metadata=True).run({"query": FOUND}).data["documents"]  # type: ignore[misc]
    assert first["metadata"] == {"area": "guides", "team": "a"}


def test_a_score_may_be_missing() -> None:
    unscored = Scripted(lambda: Hits(hits=(Hit(rank=1, score=None, passage=passage("Turn it.")),)))
    result = search_tool(unscored).run({"query": FOUND})
    assert result.data["documents"] == [{"id": "p" * 8, "text": "Turn it.", "score": None, "source": "d"}]


@pytest.mark.promise("A30")
def test_every_passage_reaches_the_model_inside_a_fresh_boundary_with_its_source() -> None:
    tool = search_tool(filled())
    texts = [tool.run({"query": FOUND}).text for _ in range(2)]
    marks = [re.findall(r"^BEGIN UNTRUSTED ([0-9a-f]{32}) passage \d", text, re.MULTILINE) for text in texts]
    assert marks[0] and len(set(marks[0])) == 1  # noqa: PT018 (one fact)
    assert set(marks[0]) != set(marks[1])
    assert "\nsource: keys\n\nRotate a key once a year.\nEND UNTRUSTED " in texts[0]


@pytest.mark.promise("G16")
def test_the_default_description_asks_for_answers_from_the_passages_and_their_sources() -> None:
    assert search_tool(filled()).description == DEFAULT_DESCRIPTION
    assert "Answer only from those passages" in DEFAULT_DESCRIPTION
    assert "cite the source" in DEFAULT_DESCRIPTION


@pytest.mark.promise("G11")
def test_the_options_are_those_of_a_tool_of_kind_retrieval() -> None:
    tool = search_tool(filled(), name="look", description="Look.", tags=["docs"], cache_ttl=300, cache_scope="global")
    assert (tool.name, tool.description, tool.kind, tool.tags) == ("look", "Look.", "retrieval", ("docs",))
    assert (tool.cache_ttl, tool.cache_scope) == (300, "global")
    plain_tool = search_tool(filled())
    assert (plain_tool.name, plain_tool.cache_ttl, plain_tool.cache_scope) == ("search_docs", None, "run")


@pytest.mark.promise("G4", "G11")
@pytest.mark.parametrize("make", [filled, lambda: Guarded(filled()), lambda: Scripted(lambda: filled().search(FOUND))])
def test_any_retriever_becomes_a_tool(make: Callable[[], Any]) -> None:
    result = search_tool(make(), k=2).run({"query": FOUND})
    assert result.outcome == "hits"
    assert "Rotate a key once a year." in result.text


@pytest.mark.promise("G11", "G18")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "search docs"}, "cannot be the name"),
        ({"name": "9lives"}, "cannot be the name"),
        ({"description": " "}, "description"),
        ({"k": 0}, "k must be"),
        ({"k": 101}, "k must be"),
        ({"k": True}, "k must be"),
        ({"max_chars": 0}, "max_chars must be"),
        ({"max_tokens": "many"}, "max_tokens must be"),
        ({"cache_ttl": 0}, "cache_ttl must be"),
        ({"cache_scope": "user"}, "cache_scope"),
        ({"timeout": -1}, "timeout must be"),
        ({"tags": "docs"}, "tags takes a list"),
        ({"filters": ["area"]}, "filters takes a mapping"),
        ({"filters": {"area": {"$near": 1}}}, "are no filter"),
        ({"filters": lambda ctx: {"tenant": ctx.user_id}, "cache_scope": "global"}, "cache for everybody"),
    ],
)
def test_options_that_mean_nothing_are_refused_when_the_tool_is_made(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        search_tool(filled(), **options)


# --- filters and scope ---------------------------------------------------------------------------------------------


def two_tenants() -> Index:
    index = Index.open(":memory:", scope_key="tenant", languages=["en"])
    index.scoped(tenant="acme").add([Document(id="refunds", text="Acme pays a refund within 45 days.")])
    index.scoped(tenant="globex").add([Document(id="refunds", text="Globex pays a refund within 14 days.")])
    return index


@pytest.mark.promise("G13", "D38", "D39")
def test_a_filters_function_binds_the_scope_of_each_call() -> None:
    tool = search_tool(two_tenants(), filters=lambda ctx: {"tenant": ctx.user_id})
    for user, own, other in (("acme", "45", "14"), ("globex", "14", "45")):
        text = tool.run({"query": "refund days"}, Context(user_id=user)).text
        assert f"within {own} days" in text
        assert f"within {other} days" not in text


@pytest.mark.promise("D38", "D42")
def test_a_scope_without_documents_is_empty_and_hints_at_nobody_elses() -> None:
    tool = search_tool(two_tenants(), filters=lambda ctx: {"tenant": ctx.user_id})
    result = tool.run({"query": "refund days"}, Context(user_id="initech"))
    assert result.outcome == "empty_index"
    assert "2" not in result.text
    assert result.text == search_tool(Index.open(":memory:")).run({"query": "refund days"}).text


@pytest.mark.promise("G14")
@pytest.mark.parametrize(
    "filters",
    [
        {"tenant": ""},
        {"tenant": " \t"},
        {"tenant": None},
        {"area": "guides", "tenant": ""},
        {"tenant": {"$eq": ""}},
        {"tenant": {"$in": ["acme", ""]}},
        {"$or": [{"tenant": "acme"}, {"tenant": ""}]},
        {"tenant": {"$in": UserList([""])}},
        {"tenant": np.array("")},
        {"$and": []},
        {"$and": [{}]},
        {"$or": []},
        {"$or": [{}]},
        {"$or": [{"tenant": "acme"}, {}]},
        {"$or": UserList([{"tenant": "acme"}, UserDict()])},
        {"$not": {"$or": []}},
        {"$not": {}},
        {"tenant": {}},
        {"tenant": {"$in": []}},
        {"tenant": {"$in": frozenset()}},
        {"tenant": {"$not": {"$in": []}}},
        {"area": "guides", "$and": [{"$or": [{"$not": {"tenant": {"$in": []}}}]}]},
        {},
        None,
    ],
)
def test_a_blank_or_missing_filter_of_a_function_ends_before_the_backend(filters: Any) -> None:
    retriever = Scripted(Hits)
    log = EventLog()
    result = search_tool(retriever, filters=lambda ctx: filters).run({"query": "x"}, sinks=[log])
    assert result.outcome == "no_scope"
    assert isinstance(result.error, ScopeError)
    assert retriever.asked == []
    assert [event.data["error_kind"] for event in log.of_type("retrieval.failed")] == ["ScopeError"]
    if filters:
        with pytest.raises((ScopeError, ConfigError)):
            search_tool(retriever, filters=filters)


FULL = st.recursive(
    st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", 1, {"$in": ["x"]}]), min_size=1, max_size=2),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"$and": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"$or": parts}),
        inner.map(lambda part: {"$not": part}),
    ),
    max_leaves=4,
)
HOLES: list[Any] = [{}, {"$and": []}, {"$or": []}, {"a": {"$in": []}}, {"a": {}}, {"a": ""}, {"a": None}]


@pytest.mark.promise("G14")
@given(FULL, st.sampled_from(HOLES), st.data())
def test_a_hole_anywhere_in_a_filter_is_found_and_a_whole_filter_passes(full: Any, hole: Any, data: Any) -> None:
    check_filters(full)
    wrap = data.draw(
        st.sampled_from(
            [
                lambda: {"$or": [full, hole]},
                lambda: {"$and": [hole, full]},
                lambda: {"$not": hole},
                lambda: {**full, "$or": [{"$not": {"$and": [hole]}}]},
            ]
        )
    )
    with pytest.raises(ScopeError):
        check_filters(wrap())


def test_a_blank_value_in_fixed_filters_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(ScopeError):
        search_tool(filled(), filters={"tenant": " "})


@pytest.mark.parametrize("made", [["tenant"], "acme", {"tenant": {"$near": 1}}, {"tenant": object()}])
def test_a_function_that_gives_no_filter_is_the_operators_fault(made: Any) -> None:
    assert search_tool(Scripted(Hits), filters=lambda ctx: made).run({"query": "x"}).outcome == "misconfigured"


def test_an_unscoped_tool_over_a_scoped_index_is_not_permitted_to_search() -> None:
    assert search_tool(two_tenants()).run({"query": "refund"}).outcome == "no_scope"


# --- limits --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("G41")
def test_a_query_has_8000_characters_at_most_and_is_data() -> None:
    retriever = Scripted(lambda: Hits(outcome="no_match"))
    tool = search_tool(retriever)
    assert tool.run({"query": "x" * 8_000}).outcome == "no_match"
    assert tool.run({"query": "x" * 8_001}).outcome == "bad_query"
    assert tool.run({"query": 5}).outcome == "bad_arguments"
    assert tool.run({"query": 'area:"guides" OR NOT (*)'}).outcome == "no_match"
    assert [query for query, *_ in retriever.asked] == ["x" * 8_000, 'area:"guides" OR NOT (*)']


def test_a_limit_on_text_is_kept_and_told() -> None:
    tool = search_tool(filled(), max_chars=60)
    data = tool.run({"query": "key refund disk fees writer year"}).data
    shown = [len(document["text"]) for document in data["documents"]]  # type: ignore[attr-defined]
    assert 0 < sum(shown) <= 60
    assert "left out for length" in str(data["note"])
    cut = search_tool(filled(), max_tokens=4).run({"query": FOUND})
    assert cut.data["documents"][0]["text"] == "Rotate a"  # type: ignore[index]
    assert "Only the beginning of the best passage fits." in cut.text
    assert "passage 1 (only its beginning)" in cut.text


def test_a_timeout_holds_where_the_backend_does_not_stop() -> None:
    result = asyncio.run(search_tool(slow(), timeout=0.05).arun({"query": FOUND}))
    assert result.outcome == "timeout"


# --- events --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("G20", "G38")
def test_a_search_is_told_once_with_ids_and_counts() -> None:
    log = EventLog()
    result = search_tool(filled(), k=2).run({"query": FOUND}, sinks=[log])
    (event,) = log.events
    assert event.name == "retrieval.searched"
    assert set(event.data) >= {"retriever", "backend", "k", "count", "ids", "dropped", "latency_ms"}
    assert event.data["ids"] == [document["id"] for document in result.data["documents"]]  # type: ignore[attr-defined]
    assert (event.data["k"], event.data["backend"]) == (2, "Index")


def test_one_listener_on_both_sides_hears_of_a_search_once() -> None:
    log = EventLog()
    search_tool(Guarded(filled(), sinks=[log])).run({"query": FOUND}, sinks=[log])
    assert [event.name for event in log.events] == ["retrieval.searched"]


@pytest.mark.promise("G21")
@pytest.mark.parametrize(
    ("name", "kind"), [("both legs down", "BackendError"), ("time-out", "BackendTimeout"), ("no scope", "ScopeError")]
)
def test_a_failed_search_is_told_by_the_kind_of_its_error(name: str, kind: str) -> None:
    log = EventLog()
    ENDINGS[name].make().run(ENDINGS[name].arguments, sinks=[log])
    assert [(event.name, event.data["error_kind"]) for event in log.events] == [("retrieval.failed", kind)]


def test_the_context_is_the_hosts_and_cannot_be_changed() -> None:
    seen: list[Context] = []

    def by_user(ctx: Context) -> dict[str, object]:
        seen.append(ctx)
        return {"tenant": ctx.user_id}

    ctx = dataclasses.replace(Context(), user_id="acme")
    search_tool(two_tenants(), filters=by_user).run({"query": ABSENT}, ctx)
    assert seen == [ctx]
    with pytest.raises(dataclasses.FrozenInstanceError):
        ctx.user_id = "globex"  # type: ignore[misc]


@pytest.mark.promise("G11")
def test_a_search_asks_for_five_unless_the_host_says_otherwise() -> None:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add(Document(id=f"d{n}", text=f"refund {n}") for n in range(9))
    assert len(search_tool(index).run({"query": "refund"}).hits or ()) == 5
    assert len(search_tool(index, k=7).run({"query": "refund"}).hits or ()) == 7
