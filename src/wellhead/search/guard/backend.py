"""What is guarded: which of a retriever's methods is called, bound to which scope, and with what it is given."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from wellhead.errors import ConfigError
from wellhead.search.guard.call import Caller, is_coroutine
from wellhead.search.guard.reading import Returned, read
from wellhead.search.guard.scope import Bound
from wellhead.search.scope import scope_value

__all__ = ["Backend", "Work", "one_key"]

Work: TypeAlias = Callable[[], Returned | Awaitable[Returned]]


class Backend:
    """A foreign or own retriever, and how it is called. Nothing of what it says or gives is taken for granted."""

    def __init__(self, retriever: Any, name: str, scope_key: str | None) -> None:
        """Look at what a retriever is and says of itself.

        Raises:
            ConfigError: it is no retriever, or is scoped by another key. ScopeError: it is bound to a blank scope.
        """
        self.retriever = retriever
        self._blocking, self._native = _methods(retriever)
        said = getattr(retriever, "name", "")
        kind = getattr(retriever, "kind", "")
        self.kind = kind if isinstance(kind, str) and kind else type(retriever).__name__
        self.name = name or (said if isinstance(said, str) else "") or self.kind
        self.scope_key = one_key(scope_key, getattr(retriever, "scope_key", None))
        scope = getattr(retriever, "scope", None)
        # A handle that is bound already is searched as it is.
        key = self.scope_key
        self.own = Bound(key, scope_value(key, scope)) if key and isinstance(scope, str) else None
        self._binds = callable(getattr(retriever, "scoped", None))
        self._last: tuple[Bound, Any] | None = None
        self._caller = Caller(self.name)

    def knows(self, bound: Bound | None) -> bool:
        """Whether it keeps to this scope by itself; otherwise the scope has to be one more filter."""
        return bound is None or bound == self.own or self._binds

    def search(
        self, query: str, k: int, filters: Mapping[str, object], bound: Bound | None, timeout: float | None
    ) -> Returned:
        """What it returns, within the deadline.

        Raises:
            BackendError, BackendTimeout: it failed or took too long. UsageError: it returned what is no document.
        """
        method = self._blocking or self._native or ""
        work = self._work(method, query, k, filters, bound)
        return self._caller.blocking(work, timeout, native=self._blocking is None)

    async def asearch(
        self, query: str, k: int, filters: Mapping[str, object], bound: Bound | None, timeout: float | None
    ) -> Returned:
        """The same, while the event loop goes on."""
        # Where it has both, the blocking one: in a thread of its own it holds up nobody, and a coroutine that blocks
        # in secret would hold up the loop.
        native = self._native is not None and (
            self._blocking is None or getattr(self.retriever, "native_async", False) is True
        )
        method = (self._native if native else self._blocking) or ""
        work = self._work(method, query, k, filters, bound)
        return await self._caller.waiting(work, timeout, native=native)

    def _work(self, method: str, query: str, k: int, filters: Mapping[str, object], bound: Bound | None) -> Work:
        given = {bound.key: bound.value, **filters} if bound is not None and not self.knows(bound) else filters

        def work() -> Returned | Awaitable[Returned]:
            # A copy: what a backend does to its arguments does not reach the next call.
            made = getattr(self._handle(bound), method)(query, k=k, filters=_copied(given) if given else None)
            return _awaited(made) if inspect.isawaitable(made) else read(made)

        return work

    def _handle(self, bound: Bound | None) -> Any:
        if bound is None or bound == self.own or not self._binds:
            return self.retriever
        last = self._last
        if last is None or last[0] != bound:
            last = self._last = (bound, self.retriever.scoped(**{bound.key: bound.value}))
        return last[1]


async def _awaited(made: Awaitable[object]) -> Returned:
    return read(await made)


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_copied(inner) for inner in value]
    return value


def one_key(given: str | None, said: object) -> str | None:
    """The scope key that two sides agree on, or that one of them names.

    Raises:
        ConfigError: they name two.
    """
    said = str.__str__(said) if isinstance(said, str) else None
    if said and given not in (None, said):
        raise ConfigError(f"this retriever is scoped by {said!r}, not by {given!r}", fix="leave scope_key out")
    return given or said or None


def _methods(retriever: object) -> tuple[str | None, str | None]:
    """The names of its blocking method and of the one to await; one of them may be missing.

    Raises:
        ConfigError: it has neither, or one that does not take (query, k=, filters=).
    """
    if isinstance(retriever, type):
        raise ConfigError(f"{retriever.__name__} is a class, not a retriever", fix="make an object of it first")
    search, asearch = getattr(retriever, "search", None), getattr(retriever, "asearch", None)
    blocking = "search" if callable(search) and not is_coroutine(search) else None
    native = "asearch" if callable(asearch) else "search" if callable(search) and not blocking else None
    if not blocking and not native:
        raise ConfigError(
            f"{type(retriever).__name__} is no retriever",
            why="it has neither `search` nor `asearch`",
            fix="wrap a function in FunctionRetriever, or give it search(query, *, k, filters)",
        )
    for name in filter(None, (blocking, native)):
        _check_signature(getattr(retriever, name), f"{type(retriever).__name__}.{name}")
    return blocking, native


def _check_signature(method: Callable[..., object], name: str) -> None:
    """Raises ConfigError for a method that would fail at every search."""
    try:
        inspect.signature(method).bind("query", k=1, filters=None)
    except TypeError as error:
        raise ConfigError(
            f"{name} cannot be called as a retriever is",
            why=str(error),
            fix="give it the parameters (query, *, k, filters)",
        ) from error
    except ValueError:  # a function of C has no signature to look at
        return
