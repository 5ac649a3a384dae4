"""`function_tool`: a plain function as a tool. Its annotations are its schema; one named `ctx` is given the context."""

from __future__ import annotations

import hashlib
import inspect
import json
import secrets
import typing
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec

from wellhead.agent.schema import Field, Parameters
from wellhead.agent.telling import Outcome
from wellhead.agent.tool import CacheScope, Call, Prepared, Tool, ToolResult, check_options
from wellhead.errors import BackendTimeout, ConfigError
from wellhead.search.guard.call import Caller, is_coroutine

__all__ = ["function_tool"]

_CONTEXT = "ctx"


def function_tool(
    function: Callable[..., object],
    *,
    name: str = "",
    description: str = "",
    cache_ttl: float | None = None,
    cache_scope: CacheScope = "run",
    timeout: float | None = None,
    tags: Sequence[str] = (),
) -> Tool:
    """A function, blocking or async, as a tool. What it returns is told to the model as text, or as JSON.

    Args:
        function: each parameter annotated; one named `ctx` is given the call's context, and is not shown to the model.
            A UsageError that it raises is told to the model; of any other exception it is only told that there was one.
        name, description: of the function itself when left out.
        cache_ttl, cache_scope, timeout, tags: as for `search_tool`; "global" not where it takes a `ctx`.

    Raises:
        ConfigError: a parameter without a type, no description, options that mean nothing.
    """
    name = name or getattr(function, "__name__", "")
    description = description or inspect.getdoc(function) or ""
    check_options(name, description, tags, cache_ttl, cache_scope)
    fields, takes_context = _fields(function, name)
    if takes_context and cache_scope == "global":
        raise ConfigError(
            f"the tool {name!r} answers each context by itself, and cannot be cached for everybody",
            fix='leave cache_scope at "run"',
        )
    parameters = Parameters(fields)
    return Tool(
        name=name,
        description=description,
        parameters=parameters.schema,
        work=_Function(name, function, parameters, takes_context, timeout),
        tags=tuple(tags),
        cache_ttl=cache_ttl,
        cache_scope=cache_scope,
    )


def _fields(function: Callable[..., object], name: str) -> tuple[list[Field], bool]:
    """The parameters that the model fills in, and whether there is one for the context."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(f"the signature of the tool {name!r} cannot be read", why=type(error).__name__) from error
    fields: list[Field] = []
    for each in parameters.values():
        if each.name == _CONTEXT:
            continue
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY) or each.name not in hints:
            raise ConfigError(
                f"the parameter {each.name!r} of the tool {name!r} must be annotated, and can be given by name",
                fix="a model fills in each argument by its name and type",
            )
        hint = hints[each.name]
        fields.append((each.name, hint) if each.default is each.empty else (each.name, hint, _default(each.default)))
    return fields, _CONTEXT in parameters


def _default(value: object) -> object:
    """Lists and the like are made anew for each call."""
    if isinstance(value, (list, dict, set)):
        copied = cast("list[object]", value)
        return msgspec.field(default_factory=lambda: copied.copy())
    return value


class _Function:
    """What a function's tool does: see `Work`."""

    def __init__(
        self,
        name: str,
        function: Callable[..., object],
        parameters: Parameters,
        takes_context: bool,
        timeout: float | None,
    ) -> None:
        self.name = name
        self.function = function
        self.parameters = parameters
        self.takes_context = takes_context
        self.timeout = timeout
        self.token = secrets.token_hex(16)
        self._caller = Caller(name)

    def prepare(self, given: object, call: Call) -> Prepared:
        arguments = self.parameters.read(given)
        user = call.ctx.user_id if self.takes_context else ""
        told = json.dumps(msgspec.to_builtins(arguments), sort_keys=True, default=repr)
        return Prepared(arguments=arguments, key=hashlib.sha256(repr((self.token, user, told)).encode()).hexdigest())

    def run(self, prepared: Prepared, call: Call) -> ToolResult:
        work = self._work(prepared, call)
        try:
            ended = self._caller.blocking(work, call.within(self.timeout), native=is_coroutine(self.function))
        except BackendTimeout as error:
            raise self._late() from error
        return self._told(ended)

    async def arun(self, prepared: Prepared, call: Call) -> ToolResult:
        work = self._work(prepared, call)
        try:
            ended = await self._caller.waiting(work, call.within(self.timeout), native=is_coroutine(self.function))
        except BackendTimeout as error:
            raise self._late() from error
        return self._told(ended)

    def again(self, result: ToolResult) -> ToolResult:
        return result

    def _work(self, prepared: Prepared, call: Call) -> Callable[[], _Ended | Awaitable[_Ended]]:
        arguments = {**prepared.arguments, **({_CONTEXT: call.ctx} if self.takes_context else {})}

        def work() -> _Ended | Awaitable[_Ended]:
            try:
                made = self.function(**arguments)
            except Exception as error:  # noqa: BLE001 (raised again by `_told`)
                return _Ended(error=error)
            return _awaited(cast("Awaitable[object]", made)) if inspect.isawaitable(made) else _Ended(value=made)

        return work

    def _late(self) -> BackendTimeout:
        return BackendTimeout(
            f"the tool {self.name!r} did not answer in time", where=self.name, fix="give it more time"
        )

    def _told(self, ended: _Ended) -> ToolResult:
        if ended.error is not None:
            raise ended.error
        try:
            value = msgspec.to_builtins(ended.value)
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"what the tool {self.name!r} returned cannot be told as JSON",
                why=f"it is a {type(ended.value).__name__}",
                fix="return text, numbers, lists, mappings or records of those",
            ) from error
        outcome: Outcome = "ok"
        return ToolResult(tool=self.name, outcome=outcome, text=text, data={"value": value, "outcome": outcome})


class _Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a function came to: its value, or what it raised."""

    value: Any = None
    error: Exception | None = None


async def _awaited(made: Awaitable[object]) -> _Ended:
    try:
        return _Ended(value=await made)
    except Exception as error:  # noqa: BLE001 (a function is anyone's code; the cause stays chained)
        return _Ended(error=error)
