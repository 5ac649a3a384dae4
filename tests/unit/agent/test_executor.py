"""The executor: budgets, hooks, events; every way out is a typed result."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

import pytest

from endings import FOUND, SECRET, Scripted, filled, outage
from wellhead import ConfigError, Event, EventLog, Hits, UsageError
from wellhead.agent.context import Budget, Context
from wellhead.agent.executor import Executor
from wellhead.agent.messages import ToolCall
from wellhead.agent.registry import Registry
from wellhead.agent.search import search_tool
from wellhead.agent.tool import ToolResult

ASK = ToolCall(name="search_docs", arguments={"query": FOUND})


def echo(text: str) -> str:
    """Say it again."""
    return text


def say(text: str) -> ToolCall:
    return ToolCall(name="echo", arguments={"text": text})


@pytest.mark.promise("G36")
def test_a_registry_an_executor_and_a_context_of_ones_own() -> None:
    registry = Registry()
    tool = registry.add(search_tool(filled()))
    registry.add(echo)
    executor = Executor(registry, sink=EventLog())
    ctx = executor.context()
    assert dataclasses.is_dataclass(ctx)
    ada = dataclasses.replace(ctx, user_id="ada")
    assert (ctx.user_id, ada.user_id) == ("", "ada")
    assert ctx.run_id != ada.run_id
    assert registry.get("search_docs") is tool
    assert registry.names() == ["search_docs", "echo"]
    assert [schema["name"] for schema in registry.schemas("anthropic")] == ["search_docs", "echo"]
    assert executor.run(ASK, ada).outcome == "hits"


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ConfigError, match="already"):
        Registry(echo, echo)


@pytest.mark.promise("G19", "G38")
def test_a_search_runs_like_any_tool_and_is_told_of_once() -> None:
    log = EventLog()
    seen: list[str] = []

    def before(call: ToolCall, ctx: Context) -> None:
        seen.append(f"before {call.name} for {ctx.user_id}")

    def after(call: ToolCall, result: ToolResult, ctx: Context) -> None:
        seen.append(f"after {result.outcome}")

    executor = Executor(Registry(search_tool(filled())), sink=log, before=[before], after=[after])
    result = executor.run(ASK, executor.context("ada"))
    assert seen == ["before search_docs for ada", "after hits"]
    assert [event.name for event in log.events] == ["retrieval.searched", "tool.finished"]
    (searched,) = log.of_type("retrieval.searched")
    assert result.hits is not None
    assert searched.data["ids"] == [hit.id for hit in result.hits]
    assert log.of_type("tool.finished")[0].data["outcome"] == "hits"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_cannot_run_is_told_to_the_model_and_to_the_caller(asynchronous: bool) -> None:
    log = EventLog()
    executor = Executor(Registry(echo, search_tool(outage())), sink=log)

    def run(call: ToolCall) -> ToolResult:
        return asyncio.run(executor.arun(call)) if asynchronous else executor.run(call)

    unknown = run(ToolCall(name=f"drop_{SECRET}", arguments={}))
    assert (unknown.outcome, "The tools are: echo, search_docs." in unknown.text) == ("unknown_tool", True)
    assert run(ToolCall(name="echo", arguments='{"text": ')).outcome == "bad_arguments"
    assert run(ToolCall(name="echo", arguments={"words": "x"})).outcome == "bad_arguments"
    assert run(ASK).outcome == "unavailable"
    told = [(event.data["outcome"], event.data["tool"]) for event in log.of_type("tool.finished")]
    assert told == [
        ("unknown_tool", ""),
        ("bad_arguments", "echo"),
        ("bad_arguments", "echo"),
        ("unavailable", "search_docs"),
    ]
    assert SECRET not in repr(log.events)


# --- budgets -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("G19")
def test_a_budget_of_calls_counts_those_that_fail_too() -> None:
    executor = Executor(Registry(echo), budget=Budget(calls=3))
    ctx = executor.context()
    calls = [say("a"), ToolCall(name="nothing"), ToolCall(name="echo", arguments="{"), say("b")]
    assert [executor.run(call, ctx).outcome for call in calls] == [
        "ok",
        "unknown_tool",
        "bad_arguments",
        "budget_spent",
    ]
    assert executor.run(say("c"), executor.context()).outcome == "ok"
    assert executor.run(say("d"), dataclasses.replace(ctx, user_id="ada")).outcome == "ok"


def test_a_budget_of_characters_withholds_what_does_not_fit() -> None:
    executor = Executor(Registry(echo), budget=Budget(characters=10))
    ctx = executor.context()
    assert executor.run(say("12345678"), ctx).text == "12345678"
    over = executor.run(say("abcd"), ctx)
    assert over.outcome == "budget_spent"
    assert "abcd" not in over.text
    assert over.data["outcome"] == "budget_spent"
    assert executor.run(say("12"), ctx).text == "12"
    assert executor.run(say(""), ctx).outcome == "budget_spent"


def test_a_budget_of_seconds_cuts_the_call_that_would_outlast_it() -> None:
    gate = threading.Event()

    def wait() -> str:
        """Wait."""
        gate.wait(5)
        return "late"

    executor = Executor(Registry(wait), budget=Budget(seconds=0.05))
    ctx = executor.context()
    assert executor.run(ToolCall(name="wait"), ctx).outcome == "timeout"
    assert executor.run(ToolCall(name="wait"), ctx).outcome == "budget_spent"
    gate.set()


def test_calls_at_the_same_time_share_one_budget() -> None:
    executor = Executor(Registry(echo), budget=Budget(calls=10))
    ctx = executor.context()
    outcomes: list[str] = []
    threads = [
        threading.Thread(target=lambda: outcomes.extend(executor.run(say("x"), ctx).outcome for _ in range(5)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("ok"), outcomes.count("budget_spent")) == (10, 20)


@pytest.mark.parametrize("budget", [{"calls": -1}, {"calls": "3"}, {"seconds": True}, {"characters": 1.5}])
def test_a_budget_that_means_nothing_is_refused(budget: Any) -> None:
    with pytest.raises(ConfigError, match=next(iter(budget))):
        Budget(**budget)


# --- hooks ---------------------------------------------------------------------------------------------------------


def test_a_hook_may_refuse_or_change_a_call() -> None:
    def checked(call: ToolCall, ctx: Context) -> ToolCall | None:
        if ctx.user_id == "eve":
            raise UsageError("ask somebody else")
        return ToolCall(name="echo", arguments={"text": "changed"}) if ctx.user_id == "ada" else None

    executor = Executor(Registry(echo), before=[checked])
    refused = executor.run(say("x"), executor.context("eve"))
    assert (refused.outcome, "Ask somebody else." in refused.text) == ("refused", True)
    assert executor.run(say("x"), executor.context("ada")).text == "changed"
    assert executor.run(say("x"), executor.context("bob")).text == "x"


def test_a_hook_cannot_make_it_another_tool() -> None:
    def swapped(call: ToolCall, ctx: Context) -> ToolCall:
        return ToolCall(name="search_docs", arguments={"query": "x"})

    executor = Executor(Registry(echo, search_tool(filled())), before=[swapped])
    assert executor.run(say("x")).outcome == "misconfigured"


def test_a_hook_that_fails_closes_the_door() -> None:
    called: list[str] = []

    def note(text: str) -> str:
        """Note."""
        called.append(text)
        return text

    def broken(*_: object) -> None:
        raise RuntimeError(SECRET)

    call = ToolCall(name="note", arguments={"text": "private words"})
    log = EventLog()
    first = Executor(Registry(note), before=[broken], sink=log).run(call)
    assert (first.outcome, called) == ("refused", [])
    second = Executor(Registry(note), after=[broken], sink=log).run(call)
    assert (second.outcome, called) == ("refused", ["private words"])
    assert "private words" not in second.text + repr(second.data)
    assert SECRET not in first.text + second.text
    assert [event.data["error_kind"] for event in log.events] == ["RuntimeError", "RuntimeError"]


@pytest.mark.parametrize("given", [True, False, "", "a text", 0, {"text": "x"}, ASK])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_after_hook_that_gives_what_is_no_result_withholds_it(given: Any, asynchronous: bool) -> None:
    log = EventLog()
    hook: Any = lambda asked, result, ctx: given  # noqa: E731
    executor = Executor(Registry(echo), sink=log, after=[hook])
    result = asyncio.run(executor.arun(say("x"))) if asynchronous else executor.run(say("x"))
    assert (result.outcome, result.tool) == ("refused", "echo")
    assert [event.name for event in log.events] == ["tool.finished"]


@pytest.mark.parametrize("given", [True, False, "", "a text", 0])
def test_a_before_hook_that_gives_what_is_no_call_refuses_it(given: Any) -> None:
    hook: Any = lambda asked, ctx: given  # noqa: E731
    assert Executor(Registry(echo), before=[hook]).run(say("x")).outcome == "refused"


@pytest.mark.parametrize("name", [[], {}, None, 5])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_name_that_is_no_text_is_that_of_no_tool(name: Any, asynchronous: bool) -> None:
    log = EventLog()
    executor, asked = Executor(Registry(echo), sink=log), ToolCall(name=name)
    result = asyncio.run(executor.arun(asked)) if asynchronous else executor.run(asked)
    assert (result.outcome, result.tool) == ("unknown_tool", "")
    assert [event.data["tool"] for event in log.events] == [""]


def test_an_after_hook_may_change_what_the_model_reads() -> None:
    def shorter(call: ToolCall, result: ToolResult, ctx: Context) -> ToolResult:
        return ToolResult(tool=result.tool, outcome=result.outcome, text="short", data={})

    assert Executor(Registry(echo), after=[shorter]).run(say("long words")).text == "short"


# --- silence -------------------------------------------------------------------------------------------------------


def test_a_listener_that_fails_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError(SECRET)

    assert Executor(Registry(echo), sink=[broken]).run(say("x")).ok
    assert SECRET not in caplog.text


@pytest.mark.parametrize("retriever", ["found", "failing", "lying"])
def test_no_query_and_no_text_is_in_events_or_logs(retriever: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    log = EventLog()
    made: Any = {
        "found": filled(),
        "failing": outage(),
        "lying": Scripted(lambda: [{"text": SECRET, "id": n, "metadata": {"area": "x"}} for n in (1, 1)]),  # type: ignore[arg-type, return-value]
    }[retriever]
    executor = Executor(Registry(search_tool(made, filters={"area": "guides"})), sink=log)
    for query in (f"rotate a key {SECRET}", f"{SECRET}" * 800, ""):
        executor.run(ToolCall(name="search_docs", arguments={"query": query}), executor.context(f"user {SECRET}"))
    executor.run(ToolCall(name="search_docs", arguments={SECRET: SECRET}))
    executor.run(ToolCall(name=SECRET, arguments=SECRET))
    assert len(log.of_type("tool.finished")) == 5
    told = repr(log.events) + caplog.text
    for word in (SECRET, "Rotate a key", "rotate a key"):
        assert word not in told


def test_queries_and_texts_are_told_on_request() -> None:
    log = EventLog()
    Executor(Registry(search_tool(filled())), sink=log, capture_content=True).run(ASK)
    searched, finished = log.events
    assert searched.data["query"] == FOUND
    assert "Rotate a key once a year." in str(searched.data["texts"])
    assert finished.data["arguments"] == ASK.arguments
    assert "Rotate a key once a year." in str(finished.data["text"])


def test_an_executor_needs_a_registry() -> None:
    with pytest.raises(ConfigError):
        Executor([search_tool(Scripted(Hits))])  # type: ignore[arg-type]
