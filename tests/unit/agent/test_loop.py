"""A model and its tools, with and without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from endings import FOUND, SECRET, filled, outage
from wellhead import BackendError, ConfigError, Document, EventLog, Index, RateLimited, UsageError
from wellhead.agent.context import Budget
from wellhead.agent.executor import Executor
from wellhead.agent.loop import LoopResult, run_tool_loop, run_tool_loop_sync
from wellhead.agent.messages import Message, Reply, ToolCall, Usage
from wellhead.agent.registry import Registry
from wellhead.agent.search import search_tool
from wellhead.backends.generators.function import CallableModel

Loop = Callable[..., LoopResult]
QUESTION = [Message("system", "Be brief."), Message("user", "How do I rotate a key?")]


def with_event_loop(*given: Any, **options: Any) -> LoopResult:
    return asyncio.run(run_tool_loop(*given, **options))


by_loop = pytest.mark.parametrize("loop", [with_event_loop, run_tool_loop_sync], ids=["async", "sync"])


def scripted(messages: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> Reply | str:
    """Search first, then quote the first source."""
    assert [tool["name"] for tool in tools] == ["search_docs"]
    last = messages[-1]
    if last.role == "user":
        return Reply(
            tool_calls=(ToolCall(name="search_docs", arguments={"query": FOUND}),),
            usage=Usage(input_tokens=10, output_tokens=2),
        )
    assert last.role == "tool"
    return "Once a year [keys]." if "Rotate a key once a year." in last.content else last.content


@pytest.mark.promise("G37")
@by_loop
def test_the_loop_runs_tools_until_the_model_answers(loop: Loop) -> None:
    log = EventLog()
    registry = Registry(search_tool(filled()))
    executor = Executor(registry, sink=log)
    result = loop(CallableModel(scripted, provider="test", model="m"), registry, QUESTION, executor=executor)
    assert result.final.text == "Once a year [keys]."
    assert [message.role for message in result.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert result.messages[2].tool_calls[0].id == result.messages[3].tool_call_id != ""
    assert result.usage == Usage(input_tokens=10, output_tokens=2, calls=2)
    assert (result.stopped, len(result.steps)) == ("", 2)
    hits = result.steps[0].results[0].hits
    assert hits is not None
    names = ["model.replied", "retrieval.searched", "tool.finished", "model.replied"]
    assert [event.name for event in log.events] == names
    assert log.events[1].data["ids"] == [hit.id for hit in hits]
    assert {event.data["run"] for event in log.events if "run" in event.data} == {log.events[0].data["run"]}
    assert log.events[0].data["model"] == "test/m"


@by_loop
def test_a_registry_alone_will_do_and_messages_may_be_mappings(loop: Loop) -> None:
    result = loop(CallableModel(scripted), Registry(search_tool(filled())), [{"role": "user", "content": "key?"}])
    assert result.final.text == "Once a year [keys]."


@by_loop
def test_several_calls_of_one_reply_are_answered_in_their_order(loop: Loop) -> None:
    def model(messages: Sequence[Message], tools: object) -> object:
        if messages[-1].role == "tool":
            return "done"
        return {
            "tool_calls": [
                {"id": "b", "name": "search_docs", "arguments": {"query": FOUND}},
                {"id": "a", "name": "no_such_tool"},
                {"id": "c", "name": "search_docs", "arguments": "{"},
            ]
        }

    result = loop(CallableModel(model), Registry(search_tool(filled())), QUESTION)
    answers = [message for message in result.messages if message.role == "tool"]
    assert [message.tool_call_id for message in answers] == ["b", "a", "c"]
    assert [each.outcome for each in result.steps[0].results] == ["hits", "unknown_tool", "bad_arguments"]


@by_loop
def test_a_model_that_never_answers_is_stopped_and_said_to_be(loop: Loop) -> None:
    def model(messages: object, tools: object) -> object:
        return {"text": "thinking", "tool_calls": [{"name": "search_docs", "arguments": {"query": FOUND}}]}

    result = loop(CallableModel(model), Registry(search_tool(filled())), QUESTION, max_steps=3)
    assert (result.stopped, len(result.steps), result.usage.calls) == ("steps", 3, 3)


@by_loop
def test_a_spent_budget_is_told_and_the_model_goes_on_without_tools(loop: Loop) -> None:
    def model(messages: Sequence[Message], tools: object) -> object:
        if "BUDGET SPENT" in messages[-1].content:
            return "I have seen enough."
        return {"tool_calls": [{"name": "search_docs", "arguments": {"query": FOUND}}]}

    registry = Registry(search_tool(filled()))
    executor = Executor(registry, budget=Budget(calls=2))
    result = loop(CallableModel(model), registry, QUESTION, executor=executor)
    assert result.final.text == "I have seen enough."
    assert [step.results[0].outcome for step in result.steps[:-1]] == ["hits", "hits", "budget_spent"]


@by_loop
def test_an_outage_reaches_the_model_as_an_outage(loop: Loop) -> None:
    result = loop(CallableModel(scripted), Registry(search_tool(outage())), QUESTION)
    assert result.final.text.startswith("SEARCH UNAVAILABLE")
    assert SECRET not in repr(result.messages)


@pytest.mark.promise("A33")
@by_loop
def test_a_models_failure_is_translated_once_with_its_cause(loop: Loop) -> None:
    def model(messages: object, tools: object) -> object:
        raise LookupError(SECRET)

    log = EventLog()
    registry = Registry(search_tool(filled()))
    with pytest.raises(BackendError) as caught:
        loop(CallableModel(model), registry, QUESTION, executor=Executor(registry, sink=log))
    assert isinstance(caught.value.__cause__, LookupError)
    assert SECRET not in str(caught.value) + repr(log.events)
    assert [event.data["error_kind"] for event in log.of_type("model.failed")] == ["LookupError"]


@by_loop
def test_errors_of_ours_pass_as_they_are(loop: Loop) -> None:
    limited = RateLimited("slow down", retry_after_s=3.0)

    def model(messages: object, tools: object) -> object:
        raise limited

    with pytest.raises(RateLimited) as caught:
        loop(CallableModel(model), Registry(), QUESTION)
    assert caught.value is limited
    assert caught.value.__cause__ is None


@by_loop
def test_a_reply_that_is_none_is_the_models_failure(loop: Loop) -> None:
    with pytest.raises(BackendError, match="cannot be read"):
        loop(CallableModel(lambda messages, tools: 5), Registry(), QUESTION)


class Streaming:
    """A generator that streams, and blocks."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def generate(self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()) -> Any:
        for piece in ("Once ", "a ", "year."):
            self.threads.add(threading.get_ident())
            yield piece


@by_loop
def test_a_stream_is_one_reply_and_never_drained_on_the_event_loop(loop: Loop) -> None:
    model = Streaming()
    assert loop(model, Registry(), QUESTION).final.text == "Once a year."
    assert (threading.get_ident() in model.threads) == (loop is run_tool_loop_sync)


def test_an_async_model_is_awaited_and_refused_without_an_event_loop() -> None:
    async def model(messages: Sequence[Message], tools: object) -> str:
        await asyncio.sleep(0)
        return messages[-1].content

    assert with_event_loop(CallableModel(model), Registry(), QUESTION).final.text == "How do I rotate a key?"
    with pytest.raises(ConfigError, match="awaited"):
        run_tool_loop_sync(CallableModel(model), Registry(), QUESTION)


@by_loop
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"messages": []}, UsageError),
        ({"messages": "hello"}, UsageError),
        ({"messages": [5]}, UsageError),
        ({"max_steps": 0}, UsageError),
        ({"max_steps": True}, UsageError),
        ({"model": object()}, ConfigError),
        ({"executor": Executor(Registry())}, ConfigError),
    ],
)
def test_a_loop_that_means_nothing_is_refused(loop: Loop, change: dict[str, Any], error: type[Exception]) -> None:
    given: dict[str, Any] = {"model": CallableModel(scripted), "registry": Registry(), "messages": QUESTION, **change}
    with pytest.raises(error):
        loop(**given)


@pytest.mark.promise("G38", "D39")
@by_loop
def test_two_users_of_one_loop_see_their_own_and_only_that(loop: Loop) -> None:
    index = Index.open(":memory:", scope_key="tenant", languages=["en"])
    for tenant, days in (("acme", 45), ("globex", 14)):
        index.scoped(tenant=tenant).add([Document(id="keys", text=f"Rotate a key once a year, or in {days} days.")])
    log = EventLog()
    registry = Registry(search_tool(index, filters=lambda ctx: {"tenant": ctx.user_id}))
    executor = Executor(registry, sink=log)
    for user in ("acme", "globex"):
        loop(CallableModel(scripted), registry, QUESTION, executor=executor, ctx=executor.context(user))
    first, second = (set(event.data["ids"]) for event in log.of_type("retrieval.searched"))  # type: ignore[call-overload]
    assert first
    assert second
    assert not first & second
