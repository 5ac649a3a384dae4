"""What is answered from the cache: never another scope's, never a failure, never what a write has made old."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endings import ASK, Scripted, filled, filled_anew, half_down, outage
from wellhead import ConfigError, Document, EventLog, Hits, Index
from wellhead.agent.cache import MemoryCache
from wellhead.agent.context import Context
from wellhead.agent.executor import Executor
from wellhead.agent.messages import ToolCall
from wellhead.agent.registry import Registry
from wellhead.agent.search import search_tool
from wellhead.agent.tool import ToolResult
from wellhead.records import Hit, Passage

CALL = ToolCall(name="search_docs", arguments=ASK)


class Counting:
    """A retriever that counts its searches, and names in its answer what it was asked with."""

    def __init__(self) -> None:
        self.searches = 0
        self.index_version = 1

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        self.searches += 1
        text = f"{query} in {filters}"
        passage = Passage(
            id="p", document_id="d", ordinal=0, text=text, start=0, end=len(text), metadata=dict(filters or {})
        )
        return Hits(hits=(Hit(rank=1, score=1.0, passage=passage),))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def result(text: str = "x") -> ToolResult:
    return ToolResult(tool="t", outcome="ok", text=text, data={})


# --- the cache itself ----------------------------------------------------------------------------------------------


def test_an_answer_lives_as_long_as_it_was_given() -> None:
    clock = Clock()
    cache = MemoryCache(clock=clock)
    cache.put("a", result(), ttl=10)
    clock.now = 9.9
    assert cache.get("a") == result()
    clock.now = 10.0
    assert cache.get("a") is None
    assert len(cache) == 0


def test_the_least_recently_used_answer_makes_room() -> None:
    cache = MemoryCache(2)
    for key in ("a", "b"):
        cache.put(key, result(key), ttl=10)
    cache.get("a")
    cache.put("c", result("c"), ttl=10)
    assert [cache.get(key) is not None for key in ("a", "b", "c")] == [True, False, True]


def test_a_cache_is_safe_to_use_from_several_threads() -> None:
    cache = MemoryCache(10)
    wrong: list[object] = []

    def work(name: str) -> None:
        for number in range(500):
            key = f"{name}{number % 15}"
            cache.put(key, result(key), ttl=10)
            found = cache.get(key)
            if found is not None and found.text != key:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(cache) == 10


def test_what_one_does_to_a_kept_answer_reaches_nobody_else() -> None:
    cache = MemoryCache()
    given = ToolResult(tool="t", outcome="hits", text="x", data={"documents": [{"text": "as it was"}]})
    cache.put("key", given, 60)
    for _ in range(2):
        given.data["documents"][0]["text"] = "poisoned"  # type: ignore[index]
        got = cache.get("key")
        assert got is not None
        assert got.data == {"documents": [{"text": "as it was"}]}
        given = got


def test_a_cache_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError):
        MemoryCache(0)


# --- in the executor -----------------------------------------------------------------------------------------------


@pytest.mark.promise("G17")
def test_an_answer_is_used_again_within_its_run_and_its_time() -> None:
    retriever, clock, log = Counting(), Clock(), EventLog()
    registry = Registry(search_tool(retriever, cache_ttl=300))
    executor = Executor(registry, cache=MemoryCache(clock=clock), sink=log)
    ctx = executor.context("ada")
    first, second = executor.run(CALL, ctx), executor.run(CALL, ctx)
    assert (first.cached, second.cached, retriever.searches) == (False, True, 1)
    assert first.data == second.data
    assert len(log.of_type("retrieval.searched")) == 1
    assert [event.data["cached"] for event in log.of_type("tool.finished")] == [False, True]
    executor.run(CALL, dataclasses.replace(ctx))
    assert retriever.searches == 2
    clock.now = 300.0
    executor.run(CALL, ctx)
    assert retriever.searches == 3


@pytest.mark.promise("G17")
def test_a_global_answer_is_used_again_in_every_run() -> None:
    retriever = Counting()
    executor = Executor(Registry(search_tool(retriever, cache_ttl=300, cache_scope="global")))
    executor.run(CALL, executor.context("ada"))
    assert executor.run(CALL, executor.context("bob")).cached
    assert retriever.searches == 1


def test_without_a_ttl_nothing_is_kept() -> None:
    retriever = Counting()
    executor = Executor(Registry(search_tool(retriever)))
    ctx = executor.context()
    assert [executor.run(CALL, ctx).cached for _ in range(2)] == [False, False]


def test_a_cached_answer_is_told_inside_a_fresh_boundary() -> None:
    executor = Executor(Registry(search_tool(filled(), cache_ttl=300)))
    ctx = executor.context()
    first, second = executor.run(CALL, ctx), executor.run(CALL, ctx)
    assert second.cached
    assert first.text != second.text
    assert len(first.text) == len(second.text)


@pytest.mark.promise("G18")
@given(st.lists(st.tuples(st.sampled_from(["acme", "globex", "a", "b"]), st.sampled_from(["q", "r"])), max_size=20))
def test_no_answer_crosses_from_one_scope_to_another(asked: list[tuple[str, str]]) -> None:
    retriever = Counting()
    tool = search_tool(retriever, filters=lambda ctx: {"tenant": ctx.data["tenant"]}, cache_ttl=300)
    executor = Executor(Registry(tool))
    # One run whose tenant changes under way is the hardest case: everything else about the calls is equal.
    data: dict[str, object] = {}
    ctx = Context(user_id="ada", data=data)
    for tenant, query in asked:
        data["tenant"] = tenant
        told = executor.run(ToolCall(name="search_docs", arguments={"query": query}), ctx)
        assert f"{query} in {{'tenant': '{tenant}'}}" in told.text
    assert retriever.searches == len(set(asked))


def test_the_filters_are_asked_for_once_a_call() -> None:
    tenants = itertools.cycle(["acme", "globex"])
    retriever = Counting()
    tool = search_tool(retriever, filters=lambda ctx: {"tenant": next(tenants)}, cache_ttl=300)
    executor = Executor(Registry(tool))
    ctx = executor.context()
    texts = [executor.run(CALL, ctx).text for _ in range(4)]
    assert ["acme" in text for text in texts] == [True, False, True, False]
    assert retriever.searches == 2


def test_two_tools_share_a_cache_and_no_answer() -> None:
    cache = MemoryCache()
    index = Index.open(":memory:", scope_key="tenant", languages=["en"])
    texts = []
    for tenant in ("acme", "globex"):
        scoped = index.scoped(tenant=tenant)
        scoped.add([Document(id="keys", text=f"{tenant}: rotate a key once a year.")])
        tool = search_tool(scoped, cache_ttl=300, cache_scope="global")
        executor = Executor(Registry(tool), cache=cache)
        texts += [executor.run(CALL).text for _ in range(2)]
    assert ["acme:" in text for text in texts] == [True, True, False, False]
    assert ["globex:" in text for text in texts] == [False, False, True, True]


def test_two_tools_of_one_name_over_two_backends_share_no_answer() -> None:
    cache = MemoryCache()
    backends = [Counting(), Counting()]
    for backend in backends:
        executor = Executor(Registry(search_tool(backend, cache_ttl=300, cache_scope="global")), cache=cache)
        assert [executor.run(CALL).cached for _ in range(2)] == [False, True]
    assert [backend.searches for backend in backends] == [1, 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"query": "a"}, {"query": "b"}),
        ({"query": "a"}, {"query": "a "}),
        ({"query": "a"}, {"query": "a", "area": "guides"}),
        ({"query": "a", "area": "guides"}, {"query": "a", "area": "runbooks"}),
    ],
)
def test_other_arguments_are_another_answer(first: Any, second: Any) -> None:
    retriever = Counting()
    tool = search_tool(retriever, narrowing={"area": ["guides", "runbooks"]}, cache_ttl=300)
    executor = Executor(Registry(tool))
    ctx = executor.context()
    for arguments in (first, second, first):
        executor.run(ToolCall(name="search_docs", arguments=arguments), ctx)
    assert retriever.searches == 2


@pytest.mark.parametrize("values", [(1, True), (1, "1"), (0, False), ("a", "b")])
def test_filters_of_another_type_are_another_answer(values: tuple[object, object]) -> None:
    retriever = Counting()
    held: dict[str, object] = {}
    tool = search_tool(retriever, filters=lambda ctx: {"flag": held["flag"]}, cache_ttl=300)
    executor = Executor(Registry(tool))
    ctx = executor.context()
    for value in values:
        held["flag"] = value
        executor.run(CALL, ctx)
    assert retriever.searches == 2


def test_a_failure_is_never_kept() -> None:
    down = outage()
    executor = Executor(Registry(search_tool(down, cache_ttl=300)))
    ctx = executor.context()
    assert [executor.run(CALL, ctx).outcome for _ in range(2)] == ["unavailable", "unavailable"]
    assert len(down.asked) == 2
    down.answer = lambda: filled().search(str(ASK["query"]))
    assert executor.run(CALL, ctx).outcome == "hits"
    assert len(executor.cache) == 1


def test_a_degraded_answer_is_not_kept_either() -> None:
    index = half_down()
    executor = Executor(Registry(search_tool(index, cache_ttl=300)))
    ctx = executor.context()
    assert [executor.run(CALL, ctx).cached for _ in range(2)] == [False, False]
    assert len(executor.cache) == 0


def test_nothing_found_is_an_answer_and_kept() -> None:
    retriever = Scripted(lambda: Hits(outcome="no_match"))
    executor = Executor(Registry(search_tool(retriever, cache_ttl=300)))
    ctx = executor.context()
    assert [executor.run(CALL, ctx).cached for _ in range(2)] == [False, True]


def test_a_write_makes_every_older_answer_old() -> None:
    retriever = Counting()
    executor = Executor(Registry(search_tool(retriever, cache_ttl=300, cache_scope="global")))
    executor.run(CALL)
    retriever.index_version = 2
    assert not executor.run(CALL).cached
    retriever.index_version = 1
    assert executor.run(CALL).cached


def test_an_index_is_never_answered_for_from_before_a_write() -> None:
    index = filled_anew()
    executor = Executor(Registry(search_tool(index, cache_ttl=300)))
    ctx = executor.context()
    assert executor.run(CALL, ctx).outcome == "hits"
    assert executor.run(CALL, ctx).cached
    index.remove(["keys", "disk", "fees"])
    assert executor.run(CALL, ctx).outcome == "empty_index"


def test_hooks_see_a_cached_answer_too_and_change_no_kept_one() -> None:
    def stamped(call: ToolCall, made: ToolResult, ctx: Context) -> ToolResult:
        return ToolResult(tool=made.tool, outcome=made.outcome, text=f"for {ctx.user_id}", data={}, hits=made.hits)

    executor = Executor(Registry(search_tool(Counting(), cache_ttl=300, cache_scope="global")), after=[stamped])
    texts = [executor.run(CALL, executor.context(user)).text for user in ("ada", "bob")]
    assert texts == ["for ada", "for bob"]


def test_a_functions_answers_are_kept_by_arguments_and_user() -> None:
    called: list[tuple[str, str]] = []

    def orders(topic: str, ctx: Context) -> str:
        """List orders."""
        called.append((ctx.user_id, topic))
        return f"{ctx.user_id}: {topic}"

    from wellhead.agent.function import function_tool

    executor = Executor(Registry(function_tool(orders, cache_ttl=300)))
    ada, bob = executor.context("ada"), executor.context("bob")
    for ctx, topic in [(ada, "a"), (ada, "a"), (bob, "a"), (ada, "b")]:
        told = executor.run(ToolCall(name="orders", arguments={"topic": topic}), ctx)
        assert told.text == f"{ctx.user_id}: {topic}"
    assert called == [("ada", "a"), ("bob", "a"), ("ada", "b")]
