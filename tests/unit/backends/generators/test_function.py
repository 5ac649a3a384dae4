"""A function as a chat model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence

import pytest

from wellhead import BackendError, ConfigError, UsageError
from wellhead.agent.messages import Message
from wellhead.backends.generators.function import CallableModel
from wellhead.ports import Generator

ASKED = [{"role": "user", "content": "hello"}]


def shout(messages: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> str:
    return messages[-1].content.upper()


@pytest.mark.promise("G37")
def test_it_is_a_generator_with_a_name() -> None:
    model: Generator = CallableModel(shout, provider="local", model="shout-1")
    assert model.generate(ASKED) == {
        "text": "HELLO",
        "tool_calls": (),
        "usage": {"input_tokens": 0, "output_tokens": 0, "calls": 0},
    }
    assert CallableModel(shout, provider="local", model="shout-1").name == "local/shout-1"
    assert CallableModel(shout).name == "shout"


def test_it_is_given_messages_and_the_tools() -> None:
    seen: list[object] = []

    def look(messages: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> str:
        seen.extend([*messages, *tools])
        return ""

    CallableModel(look).generate(ASKED, [{"name": "echo"}])
    assert seen == [Message("user", "hello"), {"name": "echo"}]


def test_a_blocking_function_runs_beside_the_event_loop() -> None:
    threads: list[int] = []

    def look(messages: object, tools: object) -> str:
        threads.append(threading.get_ident())
        return "x"

    asyncio.run(CallableModel(look).agenerate(ASKED))
    assert threads != [threading.get_ident()]


def test_an_async_function_is_awaited() -> None:
    async def later(messages: Sequence[Message], tools: object) -> str:
        await asyncio.sleep(0)
        return "later"

    assert asyncio.run(CallableModel(later).agenerate(ASKED))["text"] == "later"
    with pytest.raises(ConfigError, match="awaited"):
        CallableModel(later).generate(ASKED)


def test_wrong_things_are_named() -> None:
    with pytest.raises(ConfigError):
        CallableModel("gpt")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        CallableModel(shout).generate([{"role": "robot", "content": ""}])
    with pytest.raises(BackendError):
        CallableModel(lambda messages, tools: 5).generate(ASKED)
