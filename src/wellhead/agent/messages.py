"""What passes between a model and its tools: messages, calls, replies. Plain data on the way to a `Generator`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, cast

import msgspec

from wellhead.errors import BackendError, UsageError

__all__ = ["Message", "Reply", "Role", "ToolCall", "Usage", "message_of", "reply_of"]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """What a model asks for.

    Args:
        id: by which the answer is matched to the call. name: of the tool.
        arguments: by name; the text itself where it was not a JSON object (the executor refuses it then).
    """

    id: str = ""
    name: str
    arguments: Mapping[str, object] | str = {}


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, as the model's provider counts them; 0 where it does not say. calls: replies that were asked for."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            calls=self.calls + other.calls,
        )


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message of a conversation: `Message("user", "Can I get a refund?")`.

    Args:
        tool_calls: of an assistant that asks for tools. tool_call_id, name: of a tool's answer: which call it answers,
            and the tool.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        return self.content

    def to_dict(self) -> dict[str, object]:
        """Plain data, without what is empty; `role` and `content` are always there."""
        plain = cast("dict[str, object]", msgspec.to_builtins(self))
        return {name: value for name, value in plain.items() if value or name in ("role", "content")}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered: text, tool calls, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


def message_of(given: object) -> Message:
    """A message, or a mapping with the same fields.

    Raises:
        UsageError: it is neither.
    """
    if isinstance(given, Message):
        return given
    try:
        return msgspec.convert(given, Message)
    except msgspec.ValidationError as error:
        raise UsageError(
            "this is no message",
            why=str(error),
            fix='write Message("user", "...") or {"role": "user", "content": "..."}',
        ) from error


def reply_of(made: object, name: str) -> Reply:
    """What a generator gave, checked: a `Reply`, a text, a mapping with the fields of one, or pieces of text.

    Args:
        name: of the model, for messages.

    Raises:
        BackendError: it is something else.
    """
    if isinstance(made, Reply):
        return made
    if isinstance(made, str):
        return Reply(text=made)
    if isinstance(made, Iterator):
        made = {"text": "".join(str(piece) for piece in cast("Iterator[object]", made))}
    try:
        return msgspec.convert(_plain(made), Reply)
    except msgspec.ValidationError as error:
        raise BackendError(
            "the model's reply cannot be read",
            where=name,
            why=f"it is no text and no mapping of text, tool_calls and usage: {type(made).__name__}",
            fix="return a text, a Reply, or a mapping with the fields of one",
        ) from error


def _plain(made: object) -> object:
    """The same with each call's arguments as a mapping, where its text is that of a JSON object."""
    if not isinstance(made, Mapping):
        return made
    plain = {key: value for key, value in cast("Mapping[str, object]", made).items() if value is not None}
    calls = plain.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str):
        plain["tool_calls"] = [_read_arguments(call) for call in cast("Sequence[object]", calls)]
    return plain


def _read_arguments(given: object) -> object:
    if not isinstance(given, (Mapping, ToolCall)):
        return given
    call = cast("Mapping[str, object]", msgspec.to_builtins(given) if isinstance(given, ToolCall) else given)
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        return call
    try:
        read: object = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return call
    return {**call, "arguments": cast("object", read)} if isinstance(read, dict) else call
