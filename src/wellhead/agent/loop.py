"""`run_tool_loop`: a model and its tools, until the model answers in text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec

from wellhead.agent.context import Context
from wellhead.agent.executor import Executor
from wellhead.agent.messages import Message, Reply, ToolCall, Usage, message_of, reply_of
from wellhead.agent.registry import Registry
from wellhead.agent.tool import ToolResult
from wellhead.errors import BackendError, ConfigError, UsageError, WellheadError
from wellhead.events import emit
from wellhead.ports import Generator
from wellhead.search.guard.call import is_coroutine

__all__ = ["LoopResult", "Step", "run_tool_loop", "run_tool_loop_sync"]

Stopped: TypeAlias = Literal["", "steps"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of the model, and what the tools that it called came to."""

    reply: Reply
    results: tuple[ToolResult, ...] = ()


class LoopResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run of the loop ended.

    Args:
        final: the model's last message; its text is the answer. Where `stopped` is not "", it is not the end.
        messages: the whole conversation, what was handed in included.
        steps: every reply, with the results of its calls: `step.results[0].hits` names the passages.
        usage: in sum.
        stopped: "" when the model answered; "steps" when it still wanted tools after the last step.
    """

    final: Message
    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    usage: Usage
    stopped: Stopped = ""


async def run_tool_loop(
    model: Generator,
    registry: Registry,
    messages: Sequence[Message | Mapping[str, object]],
    *,
    executor: Executor | None = None,
    ctx: Context | None = None,
    max_steps: int = 8,
) -> LoopResult:
    """Let a model answer, with the tools of a registry.

    Args:
        model: a generator; one with `agenerate` is awaited, any other runs in a worker thread.
        messages: the conversation so far, the user's question last.
        executor: runs the calls; a plain one over `registry` when left out.
        ctx: for whom, a context a run; a new one for nobody when left out.
        max_steps: replies that the model has at most.

    Raises:
        UsageError: no messages, or something that is none; max_steps below 1.
        ConfigError: an executor of another registry, a model that is none.
        BackendError: the model failed; other errors of ours as the generator raises them.
    """
    loop = _Loop(model, registry, messages, executor, ctx, max_steps)
    for _ in range(max_steps):
        reply = await loop.areply()
        loop.results([await loop.executor.arun(call, loop.ctx) for call in reply.tool_calls])
        if not reply.tool_calls:
            break
    return loop.ended()


def run_tool_loop_sync(
    model: Generator,
    registry: Registry,
    messages: Sequence[Message | Mapping[str, object]],
    *,
    executor: Executor | None = None,
    ctx: Context | None = None,
    max_steps: int = 8,
) -> LoopResult:
    """`run_tool_loop` for a program without an event loop: the same in every respect."""
    loop = _Loop(model, registry, messages, executor, ctx, max_steps)
    for _ in range(max_steps):
        reply = loop.reply()
        loop.results([loop.executor.run(call, loop.ctx) for call in reply.tool_calls])
        if not reply.tool_calls:
            break
    return loop.ended()


class _Loop:
    """The state of one run; what both forms of the loop share."""

    def __init__(
        self,
        model: Generator,
        registry: Registry,
        messages: Sequence[Message | Mapping[str, object]],
        executor: Executor | None,
        ctx: Context | None,
        max_steps: int,
    ) -> None:
        self.model = model
        self.name = _model_name(model)
        self.executor = executor or Executor(registry)
        if self.executor.registry is not registry:
            raise ConfigError(
                "the executor runs the tools of another registry than the model is shown",
                fix="pass the registry that the executor was made with",
            )
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
            raise UsageError("max_steps must be a whole number from 1", why=f"got {max_steps!r:.60}")
        if isinstance(messages, (str, Mapping)) or not messages:
            raise UsageError("a loop needs a list of messages", fix='for example [Message("user", "...")]')
        self.ctx = ctx or self.executor.context()
        self.messages = [message_of(each) for each in messages]
        self.tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in registry
        ]
        self.steps: list[Step] = []
        self.usage = Usage()

    def reply(self) -> Reply:
        """The model's next reply."""
        if is_coroutine(self.model.generate):
            raise ConfigError(f"the model {self.name!r} has to be awaited", fix="use run_tool_loop")
        started = time.perf_counter()
        try:
            return self._taken(reply_of(self._generate(self.model.generate), self.name), started)
        except Exception as error:
            self._tell_failure(error, started)
            if isinstance(error, WellheadError):
                raise
            raise self._translated(error) from error

    async def areply(self) -> Reply:
        started = time.perf_counter()
        native = next(filter(is_coroutine, (getattr(self.model, "agenerate", None), self.model.generate)), None)
        try:
            if native is None:
                # A stream is drained in the thread that it was made in.
                made: object = await asyncio.to_thread(lambda: reply_of(self._generate(self.model.generate), self.name))
            else:
                made = await cast("Awaitable[object]", self._generate(native))
            return self._taken(reply_of(made, self.name), started)
        except Exception as error:
            self._tell_failure(error, started)
            if isinstance(error, WellheadError):
                raise
            raise self._translated(error) from error

    def _generate(self, generate: Callable[..., object]) -> object:
        return generate([message.to_dict() for message in self.messages], self.tools)

    def _taken(self, reply: Reply, started: float) -> Reply:
        calls = tuple(
            call if call.id else msgspec.structs.replace(call, id=f"call_{len(self.messages)}_{number}")
            for number, call in enumerate(reply.tool_calls)
        )
        reply = msgspec.structs.replace(reply, tool_calls=calls)
        self.messages.append(Message("assistant", reply.text, calls))
        self.steps.append(Step(reply=reply))
        self.usage += msgspec.structs.replace(reply.usage, calls=1)
        emit(
            self.executor.sinks,
            "model.replied",
            model=self.name,
            run=self.ctx.run_id,
            tool_calls=len(calls),
            input_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
            latency_ms=(time.perf_counter() - started) * 1e3,
        )
        return reply

    def _tell_failure(self, error: Exception, started: float) -> None:
        emit(
            self.executor.sinks,
            "model.failed",
            model=self.name,
            run=self.ctx.run_id,
            error_kind=type(error).__name__,
            latency_ms=(time.perf_counter() - started) * 1e3,
        )

    def _translated(self, error: Exception) -> BackendError:
        """The one place where what a model raises becomes ours; of its text nothing is told."""
        return BackendError(
            f"the model {self.name!r} failed",
            where=self.name,
            why=f"it raised {type(error).__name__}",
            fix="see the chained error",
        )

    def results(self, results: Sequence[ToolResult]) -> None:
        """Tell the model what its calls came to."""
        reply = self.steps[-1].reply
        self.steps[-1] = Step(reply=reply, results=tuple(results))
        self.messages += [_answer(call, result) for call, result in zip(reply.tool_calls, results, strict=True)]

    def ended(self) -> LoopResult:
        last = self.steps[-1].reply
        return LoopResult(
            final=Message("assistant", last.text, last.tool_calls),
            messages=tuple(self.messages),
            steps=tuple(self.steps),
            usage=self.usage,
            stopped="steps" if last.tool_calls else "",
        )


def _answer(call: ToolCall, result: ToolResult) -> Message:
    return Message("tool", result.text, (), call.id, call.name)


def _model_name(model: Any) -> str:
    if not callable(getattr(model, "generate", None)):
        raise ConfigError(
            f"{type(model).__name__} is no model",
            fix="wrap a function in CallableModel, or give it generate(messages, tools)",
        )
    name = getattr(model, "name", "")
    return name if isinstance(name, str) and name else type(model).__name__
