"""`Executor`: runs what a model calls. Arguments are checked, budgets held, hooks asked, answers cached, events told.

call ─► known? ─► budget ─► before hooks ─► arguments ─► cache or work ─► after hooks ─► budget ─► result, event
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from wellhead.agent.cache import MemoryCache
from wellhead.agent.context import Budget, Context
from wellhead.agent.messages import ToolCall
from wellhead.agent.registry import Registry
from wellhead.agent.schema import ArgumentsError
from wellhead.agent.telling import RefusedError, of_error
from wellhead.agent.tool import Call, Prepared, Tool, ToolResult, failed, result_of
from wellhead.errors import ConfigError, UsageError
from wellhead.events import Sink, emit

__all__ = ["After", "Before", "Executor"]

_T = TypeVar("_T")

# Asked before a call: None lets it pass, another call replaces it, a UsageError refuses it.
Before: TypeAlias = Callable[[ToolCall, Context], ToolCall | None]
# Told of a result: None leaves it, another one replaces it.
After: TypeAlias = Callable[[ToolCall, ToolResult, Context], ToolResult | None]


class _Running(msgspec.Struct, frozen=True, kw_only=True):
    """A call that may run."""

    asked: ToolCall
    tool: Tool
    call: Call
    prepared: Prepared
    key: str
    cached: ToolResult | None


class Executor:
    """Runs the tools of a registry; safe to use from several threads and event loops.

    Args:
        registry: the tools.
        sink: is told every event; several in a list.
        cache: where answers of tools with a `cache_ttl` are kept; one of its own when left out.
        before, after: hooks, in this order. One that fails closes the door: the call is refused, the result withheld.
        budget: of each run (see `Context`).
        capture_content: put queries, arguments and texts into events too.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        sink: Sink | Sequence[Sink] | None = None,
        cache: MemoryCache | None = None,
        before: Sequence[Before] = (),
        after: Sequence[After] = (),
        budget: Budget | None = None,
        capture_content: bool = False,
    ) -> None:
        if not isinstance(registry, Registry):
            raise ConfigError("an executor runs the tools of a Registry", why=f"got {type(registry).__name__}")
        self.registry = registry
        self.sinks: tuple[Sink, ...] = () if sink is None else (sink,) if callable(sink) else tuple(sink)
        self.cache = MemoryCache() if cache is None else cache
        self.before = tuple(before)
        self.after = tuple(after)
        self.budget = budget or Budget()
        self.capture_content = capture_content

    def context(self, user_id: str = "", data: Mapping[str, object] | None = None) -> Context:
        """The context of a new run; another user's: `dataclasses.replace(executor.context(), user_id="ada")`."""
        return Context(user_id=user_id, data=data or {}, budget=self.budget)

    def run(self, asked: ToolCall, ctx: Context | None = None) -> ToolResult:
        """Run one call. Whatever goes wrong becomes a result that the model can read, and an event."""
        ctx = ctx or self.context()
        started = time.perf_counter()
        running = self._begin(asked, ctx)
        if isinstance(running, ToolResult):
            return self._end(asked, running, ctx, started)
        try:
            result = running.cached or running.tool.work.run(running.prepared, running.call)
        except Exception as error:  # noqa: BLE001 (becomes a result with the error inside)
            result = failed(running.tool, error)
        return self._end(asked, self._kept(running, result), ctx, started, running)

    async def arun(self, asked: ToolCall, ctx: Context | None = None) -> ToolResult:
        """`run` from an event loop, which goes on meanwhile."""
        ctx = ctx or self.context()
        started = time.perf_counter()
        running = self._begin(asked, ctx)
        if isinstance(running, ToolResult):
            return self._end(asked, running, ctx, started)
        try:
            result = running.cached or await running.tool.work.arun(running.prepared, running.call)
        except Exception as error:  # noqa: BLE001 (as in `run`)
            result = failed(running.tool, error)
        return self._end(asked, self._kept(running, result), ctx, started, running)

    def _begin(self, asked: ToolCall, ctx: Context) -> _Running | ToolResult:
        """Everything before the tool itself; the result, where it does not come to that."""
        tool = self.registry.get(_name(asked))
        try:
            self._check_budget(ctx)
            return self._prepared(self._known(tool), self._allowed(asked, ctx), ctx)
        except Exception as error:  # noqa: BLE001 (as in `run`)
            kind = "function" if tool is None else tool.kind
            return result_of(_name(asked), of_error(error, kind), error)

    def _known(self, tool: Tool | None) -> Tool:
        if tool is None:
            raise RefusedError(
                "there is no tool of that name",
                outcome="unknown_tool",
                fix=f"the tools are: {', '.join(self.registry.names()) or 'none'}",
            )
        return tool

    def _check_budget(self, ctx: Context) -> None:
        spent = ctx.spent.begin(ctx.budget)
        if spent:
            raise RefusedError(f"the run has used up its {spent}", outcome="budget_spent")

    def _allowed(self, asked: ToolCall, ctx: Context) -> ToolCall:
        """The call as the hooks leave it.

        Raises:
            RefusedError: a hook refused it, or failed.
        """
        for hook in self.before:
            try:
                asked = _given(hook(asked, ctx), ToolCall) or asked
            except UsageError as error:
                raise RefusedError(error.what, outcome="refused", fix=error.fix) from error
            except Exception as error:
                raise RefusedError("a check of the program failed", outcome="refused") from error
        return asked

    def _prepared(self, tool: Tool, asked: ToolCall, ctx: Context) -> _Running:
        if asked.name != tool.name:
            raise ConfigError("a before hook may change a call's arguments, not its tool")
        call = Call(ctx=ctx, sinks=self.sinks, capture_content=self.capture_content, timeout=self._time_left(ctx))
        if isinstance(asked.arguments, str):
            raise ArgumentsError("the arguments are not one JSON object")
        prepared = tool.work.prepare(asked.arguments, call)
        owner = ctx.run_id if tool.cache_scope == "run" else ""
        key = f"{owner}/{prepared.key}"
        held = None if tool.cache_ttl is None else self.cache.get(key)
        cached = None if held is None else msgspec.structs.replace(tool.work.again(held), cached=True)
        return _Running(asked=asked, tool=tool, call=call, prepared=prepared, key=key, cached=cached)

    def _time_left(self, ctx: Context) -> float | None:
        return None if ctx.budget.seconds is None else max(ctx.budget.seconds - ctx.spent.seconds, 0.001)

    def _kept(self, running: _Running, result: ToolResult) -> ToolResult:
        """Cache an answer: not a failure, and not one that is worse than asked for; both may be over in a moment."""
        ttl = running.tool.cache_ttl
        degraded = result.hits is not None and bool(result.hits.degraded)
        if ttl is not None and result.ok and not result.cached and not degraded:
            self.cache.put(running.key, result, ttl)
        return result

    def _end(
        self, asked: ToolCall, result: ToolResult, ctx: Context, started: float, running: _Running | None = None
    ) -> ToolResult:
        """Hooks, the budget of characters, the event."""
        if running is not None:
            result = self._after(running, result, ctx)
        seconds = time.perf_counter() - started
        ctx.spent.add_seconds(seconds)
        if result.ok and not ctx.spent.add_characters(len(result.text), ctx.budget):
            error = RefusedError("the answer has more characters than the run has left", outcome="budget_spent")
            result = result_of(result.tool, of_error(error, "function"), error)
        self._tell(asked, result, ctx, seconds, known=self.registry.get(_name(asked)) is not None)
        return result

    def _after(self, running: _Running, result: ToolResult, ctx: Context) -> ToolResult:
        for hook in self.after:
            try:
                result = _given(hook(running.asked, result, ctx), ToolResult) or result
            except Exception as error:  # noqa: BLE001 (a hook that fails must not let a result through)
                refusal = RefusedError("a check of the program withheld the result", outcome="refused")
                refusal.__cause__ = error
                return result_of(running.tool.name, of_error(refusal, running.tool.kind), refusal)
        return result

    def _tell(self, asked: ToolCall, result: ToolResult, ctx: Context, seconds: float, *, known: bool) -> None:
        content: dict[str, Any] = {}
        if self.capture_content:
            content = {"arguments": asked.arguments, "text": result.text, "asked": asked.name}
        emit(
            self.sinks,
            "tool.finished",
            # A name that is no tool's is the model's own text.
            tool=asked.name if known else "",
            run=ctx.run_id,
            outcome=result.outcome,
            error_kind="" if result.error is None else _kind(result.error),
            cached=result.cached,
            characters=len(result.text),
            latency_ms=seconds * 1e3,
            **content,
        )


def _name(asked: ToolCall) -> str:
    """What a model named; a name that is no text is nobody's."""
    return asked.name if isinstance(asked.name, str) else ""


def _given(made: object, kind: type[_T]) -> _T | None:
    """What a hook gave.

    Raises:
        ConfigError: it is neither None nor of that kind: True may mean yes or no.
    """
    if made is None or isinstance(made, kind):
        return made
    raise ConfigError(f"a hook gives a {kind.__name__} or None", why=f"it gave {type(made).__name__}")


def _kind(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, RefusedError) and error.__cause__ is not None else error
    return type(cause).__name__
