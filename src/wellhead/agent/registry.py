"""`Registry`: the tools that a model may call, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wellhead.agent.function import function_tool
from wellhead.agent.schema import Provider
from wellhead.agent.tool import Tool
from wellhead.errors import ConfigError

__all__ = ["Registry"]


class Registry:
    """Tools by name, in the order in which they were added."""

    def __init__(self, *tools: Tool | Callable[..., object]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool | Callable[..., object]) -> Tool:
        """Add a tool; a plain function becomes one (see `function_tool`).

        Raises:
            ConfigError: the name is taken: one tool must not quietly stand in for another.
        """
        made = tool if isinstance(tool, Tool) else function_tool(tool)
        if made.name in self._tools:
            raise ConfigError(f"there is a tool named {made.name!r} already", fix="give one of them another name")
        self._tools[made.name] = made
        return made

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def names(self) -> list[str]:
        return list(self._tools)

    def schemas(self, provider: Provider) -> list[dict[str, object]]:
        """All tools as one provider's function calling takes them."""
        return [tool.schema(provider) for tool in self]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)
