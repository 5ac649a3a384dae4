"""What a host sends that is no message: it is answered, since whoever sent it may be waiting."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

__all__ = ["Answering"]

log = logging.getLogger("wellhead")


class Answering:
    """A stream of messages. What could not be read as one is answered with an error without an id, and left out.

    The protocol's library hands on what it could not read, and its server passes over that in silence.

    Args:
        reading, writing: the streams of a transport of the library.
    """

    def __init__(self, reading: Any, writing: Any) -> None:
        self._reading = reading
        self._writing = writing

    @property
    def last_context(self) -> Any:
        """The context of whoever sent the last message; the library looks for it under this name."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> SessionMessage:
        """The next message. Raises what the stream raises at its end."""
        while isinstance(received := await self._reading.receive(), Exception):
            await self._writing.send(_refusal(received))
        message: SessionMessage = received
        return message

    def __aiter__(self) -> Answering:
        return self

    async def __anext__(self) -> SessionMessage:
        anyio: Any = importlib.import_module("anyio")
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._reading.aclose()

    async def __aenter__(self) -> Answering:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _refusal(error: Exception) -> SessionMessage:
    """An error for whoever it was: the id is null. The text of the fault quotes the request, so it stays here."""
    types: Any = importlib.import_module("mcp.types")
    message: Any = importlib.import_module("mcp.shared.message")
    code, words = types.INVALID_REQUEST, "this is no message of JSON-RPC 2.0"
    if _is_no_json(error):
        code, words = types.PARSE_ERROR, "this is not valid JSON in UTF-8"
    log.warning("a line on stdin was refused: %s", words)
    refused = types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=words))
    made: SessionMessage = message.SessionMessage(refused)
    return made


def _is_no_json(error: Exception) -> bool:
    pydantic: Any = importlib.import_module("pydantic")
    if not isinstance(error, pydantic.ValidationError):
        return True
    found: Any = error
    return any(each["type"] == "json_invalid" for each in found.errors(include_input=False, include_url=False))
