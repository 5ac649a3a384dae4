"""`langchain_tool`: a tool of ours, as LangChain's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from wellhead.agent.context import Context
from wellhead.agent.executor import Executor
from wellhead.agent.messages import ToolCall
from wellhead.agent.tool import Tool, ToolResult, failed
from wellhead.errors import ConfigError

__all__ = ["langchain_tool"]

# Told of the run's configuration, gives for whom a call is made; a Context as it is for everybody.
ContextOf: TypeAlias = Callable[[RunnableConfig], Context] | Context


def langchain_tool(tool: Tool, *, context: ContextOf | None = None, executor: Executor | None = None) -> BaseTool:
    """A tool for LangChain's agents. The content is what the model reads, the artifact the same as plain data.

    Whatever goes wrong is told in the content, with the status "error"; nothing is raised into the agent's run.

    Args:
        context: for whom it runs: a Context, or a function from the run's configuration to one
            (`lambda config: Context(user_id=config["configurable"]["user_id"])`). Never an argument of the model's.
        executor: runs the calls with its hooks, budget, cache and events; the tool must be in its registry.
    """
    return _LangChainTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.parameters),
        tool=tool,
        context_of=context,
        executor=executor,
    )


class _LangChainTool(BaseTool):
    tool: Any
    context_of: Any = None
    executor: Any = None
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _run(self, /, *, config: RunnableConfig, **arguments: Any) -> tuple[str, dict[str, Any]]:
        try:
            ctx = self._context(config)
        except Exception as error:  # noqa: BLE001 (becomes a result with the error inside)
            return _pair(failed(self.tool, error))
        if self.executor is not None:
            return _pair(self.executor.run(ToolCall(name=self.name, arguments=arguments), ctx))
        return _pair(self.tool.run(arguments, ctx))

    async def _arun(self, /, *, config: RunnableConfig, **arguments: Any) -> tuple[str, dict[str, Any]]:
        try:
            ctx = self._context(config)
        except Exception as error:  # noqa: BLE001
            return _pair(failed(self.tool, error))
        if self.executor is not None:
            return _pair(await self.executor.arun(ToolCall(name=self.name, arguments=arguments), ctx))
        return _pair(await self.tool.arun(arguments, ctx))

    def _context(self, config: RunnableConfig) -> Context | None:
        made = self.context_of(config) if callable(self.context_of) else self.context_of
        if made is not None and not isinstance(made, Context):
            raise ConfigError("for whom a tool runs is said by a Context", why=f"got a {type(made).__name__}")
        return made

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return _marked(super().run(*args, **kwargs))

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        return _marked(await super().arun(*args, **kwargs))


def _pair(result: ToolResult) -> tuple[str, dict[str, Any]]:
    return result.text, {**result.data, "ok": result.ok}


def _marked(output: Any) -> Any:
    """The message of a call that failed has that status: LangChain itself knows only exceptions."""
    if isinstance(output, ToolMessage) and isinstance(output.artifact, dict) and not output.artifact["ok"]:
        return output.model_copy(update={"status": "error"})
    return output
