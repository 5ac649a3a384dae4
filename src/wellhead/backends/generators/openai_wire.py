"""Messages, tools and replies in the form of OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from wellhead.agent.messages import Message, message_of, reply_of
from wellhead.agent.schema import for_provider
from wellhead.backends.generators.answers import unreadable

__all__ = ["completion", "request"]


def request(
    model: str,
    messages: Sequence[Mapping[str, object]],
    tools: Sequence[Mapping[str, object]],
    options: Mapping[str, object],
) -> dict[str, object]:
    """The body of a request."""
    body: dict[str, object] = {
        **options,
        "model": model,
        "messages": [_outgoing(message_of(message)) for message in messages],
    }
    return {**body, "tools": [_tool(tool) for tool in tools]} if tools else body


def _outgoing(message: Message) -> dict[str, object]:
    """A message in the endpoint's own form."""
    plain: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        plain["tool_call_id"] = message.tool_call_id
    return plain


def _tool(tool: Mapping[str, object]) -> dict[str, object]:
    parameters = cast("Mapping[str, object]", tool["parameters"])
    return for_provider("openai", str(tool["name"]), str(tool["description"]), parameters)


class _Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] | None = None


class _Called(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Said(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Called] | None = None


class _Choice(msgspec.Struct):
    message: _Said


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    """What is read of an answer."""

    choices: list[_Choice]
    usage: _Usage | None = None


def completion(answer: bytes, name: str, host: str) -> Mapping[str, object]:
    """The reply in an answer's bytes.

    Raises:
        BackendError: they are no JSON, or no chat completion.
    """
    try:
        made = msgspec.json.decode(answer, type=_Completion)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(host, "it is no chat completion in JSON") from error
    if not made.choices:
        raise unreadable(host, "it holds no choice")
    said, usage = made.choices[0].message, made.usage or _Usage()
    calls = [
        {"id": call.id or "", "name": call.function.name, "arguments": call.function.arguments or {}}
        for call in said.tool_calls or ()
    ]
    reply = reply_of(
        {
            "text": said.content or "",
            "tool_calls": calls,
            "usage": {"input_tokens": usage.prompt_tokens or 0, "output_tokens": usage.completion_tokens or 0},
        },
        name,
    )
    plain: dict[str, object] = msgspec.to_builtins(reply)
    return plain
