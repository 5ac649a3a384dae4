"""Plain functions as tools."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Literal

import msgspec
import pytest

from endings import SECRET
from wellhead import BackendTimeout, ConfigError, UsageError
from wellhead.agent.context import Context
from wellhead.agent.function import function_tool
from wellhead.agent.tool import Tool, ToolResult


def add(first: int, second: int = 2) -> int:
    """Add two numbers."""
    return first + second


async def later(name: str) -> dict[str, str]:
    """Greet a name, in a while."""
    await asyncio.sleep(0)
    return {"hello": name}


def whose(topic: str, ctx: Context) -> str:
    """Say who asks."""
    return f"{ctx.user_id} asks about {topic}"


def both_ways(tool: Tool, arguments: Any, ctx: Context | None = None) -> ToolResult:
    """The result, which must be the same for a caller with and without an event loop."""
    blocking, waiting = tool.run(arguments, ctx), asyncio.run(tool.arun(arguments, ctx))
    assert (blocking.outcome, blocking.text, blocking.data) == (waiting.outcome, waiting.text, waiting.data)
    return blocking


def test_a_functions_annotations_are_its_schema() -> None:
    tool = function_tool(add)
    assert (tool.name, tool.description, tool.kind) == ("add", "Add two numbers.", "function")
    assert tool.parameters == {
        "type": "object",
        "properties": {"first": {"type": "integer"}, "second": {"type": "integer", "default": 2}},
        "required": ["first"],
        "additionalProperties": False,
    }


def test_what_it_returns_is_told_as_text_or_json() -> None:
    assert both_ways(function_tool(add), {"first": 3}).text == "5"
    assert both_ways(function_tool(later), {"name": "Ada"}).text == '{"hello": "Ada"}'
    assert both_ways(function_tool(add), {"first": 3}).data == {"value": 5, "outcome": "ok"}


def test_the_context_is_given_by_the_host_and_never_by_the_model() -> None:
    tool = function_tool(whose)
    assert list(tool.parameters["properties"]) == ["topic"]  # type: ignore[call-overload]
    assert both_ways(tool, {"topic": "fees"}, Context(user_id="ada")).text == "ada asks about fees"
    assert both_ways(tool, {"topic": "fees", "ctx": {"user_id": "eve"}}).outcome == "bad_arguments"


def test_wrong_arguments_never_reach_the_function() -> None:
    called: list[int] = []

    def note(number: int) -> None:
        """Note."""
        called.append(number)

    for arguments in ({}, {"number": "1"}, {"number": 1, "more": 2}):
        assert both_ways(function_tool(note), arguments).outcome == "bad_arguments"
    assert called == []


def test_an_exception_is_told_without_its_text_and_kept_for_the_host() -> None:
    def fall(number: int) -> None:
        """Fall."""
        raise LookupError(f"{SECRET} {number}")

    result = both_ways(function_tool(fall), {"number": 1})
    assert result.outcome == "failed"
    assert SECRET not in result.text
    assert isinstance(result.error, LookupError)


def test_a_usage_error_is_what_the_function_has_to_say_to_the_model() -> None:
    def order(number: int) -> str:
        """Look up an order."""
        raise UsageError(f"there is no order {number}", fix="ask for the number on the invoice")

    result = both_ways(function_tool(order), {"number": 7})
    assert result.outcome == "bad_arguments"
    assert "There is no order 7. Ask for the number on the invoice." in result.text


@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_a_deadline_holds_and_the_loop_goes_on(kind: str) -> None:
    gate = threading.Event()

    def wait() -> str:
        """Wait."""
        gate.wait(5)
        return "late"

    async def await_() -> str:
        """Wait."""
        await asyncio.sleep(5)
        return "late"

    tool = function_tool(wait if kind == "blocking" else await_, timeout=0.05)

    async def beside() -> tuple[ToolResult, int]:
        ticks = 0
        task = asyncio.create_task(tool.arun({}))
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return await task, ticks

    started = time.perf_counter()
    (awaited, ticks), blocking = asyncio.run(beside()), tool.run({})
    gate.set()
    assert time.perf_counter() - started < 3
    assert ticks >= 3
    for result in (awaited, blocking):
        assert result.outcome == "timeout"
        assert isinstance(result.error, BackendTimeout)
        assert "the tool" in result.error.what


class Fee(msgspec.Struct):
    amount: int


def test_records_go_in_and_out() -> None:
    def double(fee: Fee) -> Fee:
        """Double it."""
        return Fee(amount=fee.amount * 2)

    assert both_ways(function_tool(double), {"fee": {"amount": 4}}).text == '{"amount": 8}'


def test_what_is_no_json_is_the_operators_fault() -> None:
    def odd() -> object:
        """Return something odd."""
        return threading.Lock()

    assert both_ways(function_tool(odd), {}).outcome == "misconfigured"


def test_a_default_list_is_made_anew_for_each_call() -> None:
    def gather(item: str, held: list[str] = []) -> list[str]:  # noqa: B006 (that is what is tested)
        """Gather."""
        held.append(item)
        return held

    tool = function_tool(gather)
    assert tool.run({"item": "a"}).text == '["a"]'
    assert tool.run({"item": "b"}).text == '["b"]'


def test_what_a_model_cannot_fill_in_is_refused() -> None:
    def untyped(value) -> None:  # type: ignore[no-untyped-def]
        """Take anything."""

    def starred(*values: int) -> None:
        """Take many."""

    def odd(value: threading.Thread) -> None:
        """Take a thread."""

    for function in (untyped, starred, odd):
        with pytest.raises(ConfigError):
            function_tool(function)
    with pytest.raises(ConfigError, match="description"):
        function_tool(lambda: None, name="nameless")
    with pytest.raises(ConfigError, match="cached for everybody"):
        function_tool(whose, cache_scope="global")


class Nested(msgspec.Struct):
    by_place: dict[str, dict[int, str]]


@pytest.mark.parametrize(
    "kind",
    [
        dict[int, str],
        dict[float, str],
        dict[bool, str],
        dict[str, dict[int, str]],
        list[dict[int, str]],
        dict[int, str] | None,
        dict[str | int, str],
        dict[Literal[1, 2], str],
        Nested,
    ],
)
def test_a_mapping_whose_keys_are_no_texts_is_refused_when_the_tool_is_made(kind: Any) -> None:
    def count(by_name: Any) -> str:
        """Count."""
        return str(by_name)

    count.__annotations__["by_name"] = kind
    with pytest.raises(ConfigError, match="types that JSON can hold"):
        function_tool(count)


@pytest.mark.parametrize("kind", [dict[str, int], dict[Literal["a"], int], dict[str, dict[str, int]], dict[Any, int]])
def test_a_mapping_with_texts_as_keys_is_taken(kind: Any) -> None:
    def count(by_name: Any) -> str:
        """Count."""
        return str(by_name)

    count.__annotations__["by_name"] = kind
    given = {"a": {"b": 1}} if kind == dict[str, dict[str, int]] else {"a": 1}
    assert both_ways(function_tool(count), {"by_name": given}).text == str(given)


@pytest.mark.parametrize("raised", [SystemExit(3), GeneratorExit()])
@pytest.mark.parametrize("timeout", [None, 5.0])
def test_a_function_that_exits_ends_its_own_call_and_not_the_program(raised: BaseException, timeout: Any) -> None:
    def leave() -> str:
        """Leave."""
        raise raised

    async def leave_later() -> str:
        """Leave."""
        raise raised

    for function in (leave, leave_later):
        assert both_ways(function_tool(function, timeout=timeout), {}).outcome == "unavailable"
