"""A function as a retriever: web search, a search service, a dictionary."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, Unpack, cast

from wellhead.errors import ConfigError
from wellhead.records import Hits
from wellhead.search.guard import Guarded, GuardOptions, is_coroutine

__all__ = ["FunctionRetriever", "SearchFunction"]

# (query, k, filters) -> hits, passages, texts, or mappings with a text.
SearchFunction: TypeAlias = Callable[[str, int, Mapping[str, Any]], object]


class FunctionRetriever(Guarded):
    """`fn(query, k, filters)`, blocking or async, under the guard.

    It returns `Hits`, or a list of passages, texts, or mappings with a `text` (and `id`, `score`, `source`, `title`,
    `metadata`, where it has them). What has no id gets a stable one: a digest of source and text.
    """

    def __init__(self, fn: SearchFunction, **options: Unpack[GuardOptions]) -> None:
        """Wrap a function.

        Args:
            fn: is given the filters as a mapping, empty for none; the scope stands among them.
            options: name, scope_key, timeout, on_degrade, sinks and capture_content, as for `Guarded`.

        Raises:
            ConfigError: it cannot be called with (query, k, filters).
        """
        _check(fn)
        options["name"] = options.get("name") or getattr(fn, "__name__", "") or type(fn).__name__
        super().__init__(_AwaitedFunction(fn) if is_coroutine(fn) else _BlockingFunction(fn), **options)


class _BlockingFunction:
    kind = "FunctionRetriever"

    def __init__(self, fn: SearchFunction) -> None:
        self._fn = fn

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        # The guard reads whatever it is.
        return cast("Hits", self._fn(query, k, filters or {}))


class _AwaitedFunction:
    kind = "FunctionRetriever"

    def __init__(self, fn: SearchFunction) -> None:
        self._fn = fn

    async def asearch(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits:
        return await cast("Awaitable[Hits]", self._fn(query, k, filters or {}))


def _check(fn: object) -> None:
    if not callable(fn):
        raise ConfigError(f"a {type(fn).__name__} is no function", fix="pass fn(query, k, filters)")
    try:
        inspect.signature(fn).bind("query", 1, {})
    except TypeError as error:
        raise ConfigError(
            "the function cannot be called with (query, k, filters)", why=str(error), fix="give it three parameters"
        ) from error
    except ValueError:  # a function of C has no signature to look at
        return
