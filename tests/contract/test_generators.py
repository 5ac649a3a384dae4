"""What every generator of ours does, whichever it is: replies as plain data, tool calls with their arguments read,
nothing of what it was given changed, and failures in our words.

A new backend goes into the table below: `generators.function`, `generators.openai_chat`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx2
import pytest

from wellhead import BackendError, CallableModel, Message, OpenAIChat, Registry, run_tool_loop_sync
from wellhead.agent.messages import reply_of
from wellhead.ports import Generator

# What stands for a model: from the messages, as plain data, a text, or the name and arguments of a call; None for junk.
Mind = Callable[[Sequence[Mapping[str, Any]]], str | tuple[str, dict[str, Any]] | None]

TOOLS = [{"name": "add", "description": "Add two numbers.", "parameters": {"type": "object", "properties": {}}}]
ASKED: list[dict[str, object]] = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2 + 3?"}]


def by_function(mind: Mind) -> Generator:
    def answer(messages: Sequence[Message], tools: object) -> object:
        said = mind([message.to_dict() for message in messages])
        if isinstance(said, tuple):
            return {"tool_calls": [{"id": "c1", "name": said[0], "arguments": json.dumps(said[1])}]}
        return 7 if said is None else said

    return CallableModel(answer, provider="test", model="small")


def over_http(mind: Mind) -> Generator:
    def answer(request: httpx2.Request) -> httpx2.Response:
        said = mind(json.loads(request.content)["messages"])
        if said is None:
            return httpx2.Response(200, content=b"<html>")
        message: dict[str, object] = {"role": "assistant", "content": said}
        if isinstance(said, tuple):
            call = {"name": said[0], "arguments": json.dumps(said[1])}
            message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": call}]}
        return httpx2.Response(200, json={"choices": [{"message": message}]})

    return OpenAIChat("small", base_url="http://model.test/v1", transport=httpx2.MockTransport(answer))


MAKERS: dict[str, Callable[[Mind], Generator]] = {"function": by_function, "openai_chat": over_http}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[Mind], Generator]:
    return MAKERS[request.param]


def test_it_has_a_name(make: Callable[[Mind], Generator]) -> None:
    assert "small" in make(lambda messages: "5").name  # type: ignore[attr-defined]


def test_a_text_is_a_reply_of_plain_data(make: Callable[[Mind], Generator]) -> None:
    made = make(lambda messages: "5").generate(ASKED)
    assert json.loads(json.dumps(made)) == {
        "text": "5",
        "tool_calls": [],
        "usage": {"input_tokens": 0, "output_tokens": 0, "calls": 0},
    }


def test_a_call_has_its_arguments_by_name(make: Callable[[Mind], Generator]) -> None:
    reply = reply_of(make(lambda messages: ("add", {"one": 2, "other": 3})).generate(ASKED, TOOLS), "small")
    ((call,), text) = reply.tool_calls, reply.text
    assert (call.id, call.name, call.arguments, text) == ("c1", "add", {"one": 2, "other": 3}, "")


def test_it_is_given_every_message_in_order_and_changes_none(make: Callable[[Mind], Generator]) -> None:
    seen: list[Mapping[str, Any]] = []

    def mind(messages: Sequence[Mapping[str, Any]]) -> str:
        seen.extend(messages)
        return "5"

    given, tools = copy.deepcopy(ASKED), copy.deepcopy(TOOLS)
    make(mind).generate(given, tools)
    assert seen == ASKED
    assert (given, tools) == (ASKED, TOOLS)


def test_what_is_no_reply_is_an_error_of_ours(make: Callable[[Mind], Generator]) -> None:
    with pytest.raises(BackendError):
        make(lambda messages: None).generate(ASKED)


def test_it_drives_a_loop_with_a_tool(make: Callable[[Mind], Generator]) -> None:
    def add(one: int, other: int) -> int:
        """Add two numbers."""
        return one + other

    def mind(messages: Sequence[Mapping[str, Any]]) -> str | tuple[str, dict[str, Any]]:
        last = messages[-1]
        return f"It is {last['content']}." if last["role"] == "tool" else ("add", {"one": 2, "other": 3})

    result = run_tool_loop_sync(make(mind), Registry(add), [Message("user", "2 + 3?")])
    assert result.final.text == "It is 5."
    assert result.usage.calls == 2
