"""`CallableModel`: a function as a chat model; for scripts, tests, and clients that Wellhead does not know."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from wellhead.agent.messages import Message, Reply, message_of, reply_of
from wellhead.errors import ConfigError
from wellhead.search.guard.call import is_coroutine

__all__ = ["CallableModel", "Said"]

# A text, a Reply, a mapping of text, tool_calls and usage, or pieces of text.
Said: TypeAlias = object


class CallableModel:
    """A generator that asks a function.

    Args:
        function: is given the messages, and the tools as mappings of name, description and parameters; blocking or
            async. It returns a text, a `Reply`, or a mapping with the fields of one.
        provider, model: what it is called in events and messages.
    """

    def __init__(
        self,
        function: Callable[[Sequence[Message], Sequence[Mapping[str, object]]], Said | Awaitable[Said]],
        *,
        provider: str = "",
        model: str = "",
    ) -> None:
        if not callable(function):
            raise ConfigError("a CallableModel needs a function", why=f"got {type(function).__name__}")
        self._function = function
        own = getattr(function, "__name__", type(function).__name__)
        self.name = "/".join(filter(None, [provider, model])) or own

    def generate(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> Mapping[str, object]:
        """What the function says, as plain data.

        Raises:
            ConfigError: the function is async.
            BackendError: it returned no reply; its own exceptions pass.
        """
        if is_coroutine(self._function):
            raise ConfigError(f"the model {self.name!r} has to be awaited", fix="use run_tool_loop, or agenerate")
        return self._plain(self._function([message_of(each) for each in messages], tools))

    async def agenerate(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> Mapping[str, object]:
        """`generate` from an event loop: a blocking function runs in a worker thread."""
        import asyncio  # late: it costs a third of the whole import

        given = [message_of(each) for each in messages]
        if is_coroutine(self._function):
            made: Any = self._function(given, tools)
        else:
            made = await asyncio.to_thread(self._function, given, tools)
        return self._plain(await made if inspect.isawaitable(made) else made)

    def _plain(self, made: object) -> Mapping[str, object]:
        reply: Reply = reply_of(made, self.name)
        plain: dict[str, object] = msgspec.to_builtins(reply)
        return plain
