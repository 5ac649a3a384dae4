"""`Tool`: something that a model may call. Whatever happens inside becomes a typed result, never a bare exception."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from wellhead.agent.context import Context
from wellhead.agent.schema import Arguments, Provider, for_provider
from wellhead.agent.telling import Outcome, Said, of_error
from wellhead.errors import ConfigError
from wellhead.events import Sink
from wellhead.records import Hits

__all__ = [
    "CacheScope",
    "Call",
    "Kind",
    "Prepared",
    "Tool",
    "ToolResult",
    "Work",
    "check_options",
    "failed",
    "result_of",
]

Kind: TypeAlias = Literal["retrieval", "function"]
CacheScope: TypeAlias = Literal["run", "global"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool call came to.

    Args:
        tool: its name. outcome: how it went; see `wellhead.agent.telling`.
        text: what the model reads. data: the same as JSON, for programs.
        hits: of a search, for the host program (ids to log with the answer); None otherwise.
        error: what went wrong, for the host program; the model is told `text` alone.
        cached: the answer of an earlier call.
    """

    tool: str
    outcome: Outcome
    text: str
    data: Mapping[str, object]
    hits: Hits | None = None
    error: Any = None
    cached: bool = False

    @property
    def ok(self) -> bool:
        """Whether the tool did what it was asked (for a search: it ran, whatever it found)."""
        return self.error is None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool, as the host program makes it.

    Args:
        ctx: for whom. sinks: are told what happens inside. capture_content: they are told queries and texts too.
        timeout: in seconds, beside the tool's own; the shorter one holds.
    """

    ctx: Context
    sinks: Sequence[Sink] = ()
    capture_content: bool = False
    timeout: float | None = None

    def within(self, timeout: float | None) -> float | None:
        """The shorter of two timeouts."""
        return min((each for each in (timeout, self.timeout) if each is not None), default=None)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose arguments are checked.

    Args:
        arguments: by name. filters: of a search, settled for this call.
        key: equal for calls with equal answers; what a cache goes by.
    """

    arguments: Mapping[str, Any]
    key: str
    filters: Mapping[str, object] | None = None


class Work(Protocol):
    """What a tool does. Everything but `again` may raise; `Tool` and the executor turn that into a result."""

    def prepare(self, given: object, call: Call) -> Prepared: ...
    def run(self, prepared: Prepared, call: Call) -> ToolResult: ...
    async def arun(self, prepared: Prepared, call: Call) -> ToolResult: ...
    def again(self, result: ToolResult) -> ToolResult:
        """A cached result, told afresh."""
        ...


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: make one with `search_tool` or `function_tool`.

    Args:
        name, description, parameters: what the model sees; `parameters` is the JSON schema of the arguments.
        work: what it does.
        kind: "retrieval" for a search. tags: for the host program.
        cache_ttl: seconds that an answer may be used again; None for never.
        cache_scope: within one run ("run"), or for everybody ("global").
    """

    name: str
    description: str
    parameters: Mapping[str, object]
    work: Work
    kind: Kind = "function"
    tags: tuple[str, ...] = ()
    cache_ttl: float | None = None
    cache_scope: CacheScope = "run"

    def schema(self, provider: Provider) -> dict[str, object]:
        """The tool as "openai", "anthropic" or "gemini" function calling takes it."""
        return for_provider(provider, self.name, self.description, self.parameters)

    def run(self, arguments: Arguments, ctx: Context | None = None, *, sinks: Sequence[Sink] = ()) -> ToolResult:
        """Call it outside an executor: no hooks, no budget, no cache. Errors become results all the same."""
        call = Call(ctx=ctx or Context(), sinks=sinks)
        try:
            return self.work.run(self.work.prepare(arguments, call), call)
        except Exception as error:  # noqa: BLE001 (whatever it is becomes a result with the error inside)
            return failed(self, error)

    async def arun(self, arguments: Arguments, ctx: Context | None = None, *, sinks: Sequence[Sink] = ()) -> ToolResult:
        """`run` from an event loop, which goes on meanwhile."""
        call = Call(ctx=ctx or Context(), sinks=sinks)
        try:
            return await self.work.arun(self.work.prepare(arguments, call), call)
        except Exception as error:  # noqa: BLE001
            return failed(self, error)


def failed(tool: Tool, error: Exception) -> ToolResult:
    """The result of a call that failed: which kind of failure it is, in our words alone."""
    return result_of(tool.name, of_error(error, tool.kind), error)


def result_of(name: str, said: Said, error: Exception) -> ToolResult:
    return ToolResult(
        tool=name, outcome=said.outcome, text=said.text, data={"outcome": said.outcome, "note": said.text}, error=error
    )


def check_options(name: object, description: object, tags: object, cache_ttl: object, cache_scope: object) -> None:
    """Raises ConfigError for a name that no provider takes, a blank description, cache options that mean nothing."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r:.80} cannot be the name of a tool",
            fix="use 1 to 64 letters, digits, _ and -; begin with no digit",
        )
    if not isinstance(description, str) or not description.strip():
        raise ConfigError(f"the tool {name!r} needs a description", fix="say what it is for; the model decides by it")
    if not isinstance(tags, (list, tuple, set, frozenset)):
        raise ConfigError("tags takes a list", why=f"got {tags!r:.60}", fix="write tags=[...]")
    if cache_ttl is not None and (
        isinstance(cache_ttl, bool) or not isinstance(cache_ttl, (int, float)) or not cache_ttl > 0
    ):
        raise ConfigError("cache_ttl must be a number of seconds above 0, or None", why=f"got {cache_ttl!r:.60}")
    if cache_scope not in ("run", "global"):
        raise ConfigError(f"unknown cache_scope {cache_scope!r:.60}", fix="known: run, global")
