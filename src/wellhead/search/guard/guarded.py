"""`Guarded`: any retriever, with its input checked, its output checked again, and its failures told apart."""

from __future__ import annotations

import copy
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, Self, TypeAlias, TypedDict

import msgspec

from wellhead.errors import BackendError, ConfigError, UsageError, WellheadError
from wellhead.events import Sink, emit
from wellhead.ports import AsyncRetriever, Retriever
from wellhead.records import Hits, of_numpy
from wellhead.search.guard.backend import Backend, one_key
from wellhead.search.guard.reading import Returned
from wellhead.search.guard.recheck import Wanted, rechecked
from wellhead.search.guard.scope import Bound, bind, scope_of, settle
from wellhead.search.request import check

__all__ = ["GuardOptions", "Guarded", "OnDegrade"]

log = logging.getLogger("wellhead")
OnDegrade: TypeAlias = Literal["flag", "fail"]


class GuardOptions(TypedDict, total=False):
    """What a retriever that comes under its own guard takes for it, as `Guarded` documents it."""

    name: str
    scope_key: str | None
    timeout: float | None
    on_degrade: OnDegrade
    sinks: Sequence[Sink]
    capture_content: bool


class _Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a guard, and what it is bound to."""

    name: str
    scope_key: str | None
    bound: Bound | None
    timeout: float | None
    on_degrade: OnDegrade
    sinks: tuple[Sink, ...]
    capture: bool


class _Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One search, checked: what the backend is given, and what its answer is held against."""

    query: str
    narrowing: Mapping[str, object]
    timeout: float | None
    wanted: Wanted


class Guarded:
    """A retriever that can be trusted as far as its backend can be checked.

    Safe to use from several threads and event loops at once.
    """

    def __init__(
        self,
        retriever: Retriever | AsyncRetriever,
        *,
        name: str = "",
        scope_key: str | None = None,
        scope: str | None = None,
        timeout: float | None = None,
        on_degrade: OnDegrade = "flag",
        sinks: Sequence[Sink] = (),
        capture_content: bool = False,
    ) -> None:
        """Guard a retriever. One that is guarded already is guarded once: the options of both hold.

        Args:
            retriever: has `search`, or `asearch` to await. Where it has both, the blocking one is called in a thread,
                unless it says `native_async = True`. What it says of itself is believed: `name`, `scope_key`,
                `scope` (of a handle that is bound), and `scoped(key=value)` to bind one.
            name: for events and messages.
            scope_key: the metadata key that keeps tenants apart; every search must name one then.
            scope: the value that this handle is bound to.
            timeout: seconds that the backend has for one search; None for no limit.
            on_degrade: "fail" turns a degraded answer into a BackendError.
            sinks: told exactly one `retrieval.searched` or `retrieval.failed` a search.
            capture_content: put queries and texts into events too.

        Raises:
            ConfigError: no retriever, or options that contradict one another.
            ScopeError: a blank scope, or another than it is bound to.
        """
        _check_options(scope_key, on_degrade, sinks)
        inner: Guarded | None = retriever if isinstance(retriever, Guarded) else None
        self._setup: _Setup
        self._backend: Backend = Backend(retriever, name, scope_key) if inner is None else inner._backend  # noqa: SLF001
        setup = _Setup(
            name=name or self._backend.name,
            scope_key=self._backend.scope_key,
            bound=self._backend.own,
            timeout=_deadline(timeout, ConfigError),
            on_degrade=on_degrade,
            sinks=tuple(sinks),
            capture=capture_content,
        )
        self._setup = setup if inner is None else _joined(inner._setup, setup, name, scope_key)  # noqa: SLF001
        if scope is not None:
            if self._setup.scope_key is None:
                raise ConfigError("a scope needs its key", why="only scope= is given", fix='add scope_key="tenant"')
            self._setup = _bound_to(self._setup, {self._setup.scope_key: scope})

    @property
    def name(self) -> str:
        return self._setup.name

    @property
    def retriever(self) -> object:
        """What is guarded."""
        return self._backend.retriever

    @property
    def scope_key(self) -> str | None:
        """The metadata key that keeps tenants apart, or None."""
        return self._setup.scope_key

    @property
    def scope(self) -> str | None:
        """The value that this handle is bound to, or None."""
        return None if self._setup.bound is None else self._setup.bound.value

    def scoped(self, **scope: str) -> Self:
        """A handle that can only see one scope: `guarded.scoped(tenant="acme")`.

        Raises:
            ScopeError: not exactly one key, another key than the corpus's own, a blank value, or a handle that is
                already bound to another scope.
        """
        handle = copy.copy(self)
        handle._setup = _bound_to(self._setup, scope)  # noqa: SLF001 (a copy of this very object)
        return handle

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        filters: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> Hits:
        """The hits of the backend that stand up to the checks, in its order; or a typed reason why there are none.

        Args:
            query: 1 to 8,000 characters; data, never a query language.
            k: 1 to 100.
            filters: as in `wellhead.search.filters`. One on the scope key binds the search to that scope.
            timeout: seconds, instead of the guard's own.

        Raises:
            UsageError: the query, k, the filters or the timeout; or the backend returned what is no document.
            ScopeError: the corpus has scopes and this search names none, or a blank one, or another.
            BackendError, BackendTimeout: the backend failed, took too long, or was degraded where that is to fail.
        """
        started = time.perf_counter()
        try:
            ask = self._asked(query, k, filters, timeout)
            wanted = ask.wanted
            returned = self._backend.search(ask.query, wanted.k, ask.narrowing, wanted.bound, ask.timeout)
            hits, dropped = self._settled(returned, wanted)
        except WellheadError as error:
            self._tell_failure(query, error, started)
            raise
        self._tell(query, wanted.k, hits, dropped, started)
        return hits

    async def asearch(
        self,
        query: str,
        *,
        k: int = 10,
        filters: Mapping[str, object] | None = None,
        timeout: float | None = None,
    ) -> Hits:
        """`search` for an event loop, which goes on meanwhile, also where the backend blocks."""
        started = time.perf_counter()
        try:
            ask = self._asked(query, k, filters, timeout)
            wanted = ask.wanted
            returned = await self._backend.asearch(ask.query, wanted.k, ask.narrowing, wanted.bound, ask.timeout)
            hits, dropped = self._settled(returned, wanted)
        except WellheadError as error:
            self._tell_failure(query, error, started)
            raise
        self._tell(query, wanted.k, hits, dropped, started)
        return hits

    def _asked(self, query: str, k: int, filters: Mapping[str, object] | None, timeout: float | None) -> _Ask:
        # All of it first: what is no filter must not reach the question of the scope.
        check(query, k=k, filters=filters)
        bound, narrowing = settle(self._setup.scope_key, self._setup.bound, filters)
        asked = check(query, k=k, filters=narrowing)
        limit = _deadline(timeout, UsageError)
        return _Ask(
            query=asked.query,
            narrowing=narrowing if asked.condition is not None else {},
            timeout=self._setup.timeout if limit is None else limit,
            wanted=Wanted(
                k=asked.k,
                condition=asked.condition,
                bound=bound,
                scoped_by_filter=not self._backend.knows(bound),
            ),
        )

    def _settled(self, returned: Returned, wanted: Wanted) -> tuple[Hits, Counter[str]]:
        hits, dropped = rechecked(returned, wanted)
        if hits.degraded and self._setup.on_degrade == "fail":
            first = hits.degraded[0]
            raise BackendError(
                f"the answer of {self.name!r} would be worse than asked for",
                where=f"the {first.leg} leg",
                why=first.why,
                fix=first.fix,
            )
        if dropped:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
            log.warning("the guard of %r dropped some of what came back: %s", self.name, reasons)
        return hits, dropped

    # -- telling ----------------------------------------------------------------------------------------------------

    def _tell(self, query: str, k: int, hits: Hits, dropped: Counter[str], started: float) -> None:
        setup = self._setup
        if not setup.sinks:
            return
        emit(
            setup.sinks,
            "retrieval.searched",
            retriever=setup.name,
            backend=self._backend.kind,
            k=k,
            count=len(hits),
            ids=[hit.id for hit in hits],
            dropped=hits.dropped,
            dropped_by=dict(dropped),
            outcome=hits.outcome,
            degraded=[part.leg for part in hits.degraded],
            latency_ms=(time.perf_counter() - started) * 1e3,
            **({"query": query, "texts": [hit.text for hit in hits]} if setup.capture else {}),
        )

    def _tell_failure(self, query: object, error: WellheadError, started: float) -> None:
        setup = self._setup
        if error.__cause__ is not None:
            # Its type alone: a foreign message may hold a key, a query or a document.
            log.warning("the retriever %r failed with %s", setup.name, type(error.__cause__).__name__)
        emit(
            setup.sinks,
            "retrieval.failed",
            retriever=setup.name,
            backend=self._backend.kind,
            error_kind=type(error).__name__,
            latency_ms=(time.perf_counter() - started) * 1e3,
            **({"query": query} if setup.capture else {}),
        )


def _joined(inner: _Setup, outer: _Setup, name: str, scope_key: str | None) -> _Setup:
    """The options of a guard around a guard: the stricter of both."""
    limits = [limit for limit in (inner.timeout, outer.timeout) if limit is not None]
    new = tuple(sink for sink in outer.sinks if sink not in inner.sinks)
    captures = [part.capture for part in (inner, outer) if part.sinks]
    return _Setup(
        name=name or inner.name,
        scope_key=one_key(scope_key, inner.scope_key),
        bound=inner.bound,
        timeout=min(limits) if limits else None,
        on_degrade="fail" if "fail" in (inner.on_degrade, outer.on_degrade) else "flag",
        sinks=(*inner.sinks, *new),
        # No listener is told more than both guards would tell.
        capture=all(captures) if captures else inner.capture and outer.capture,
    )


def _bound_to(setup: _Setup, scope: Mapping[str, object]) -> _Setup:
    wanted = scope_of(scope, setup.scope_key)
    return msgspec.structs.replace(setup, scope_key=wanted.key, bound=bind(setup.bound, wanted))


def _check_options(scope_key: object, on_degrade: object, sinks: object) -> None:
    """Raises ConfigError for what would be taken silently wrong."""
    if scope_key is not None and not (isinstance(scope_key, str) and scope_key.strip() and scope_key.isprintable()):
        raise ConfigError("scope_key must be the name of a metadata key", why=f"got {scope_key!r:.80}")
    if on_degrade not in ("flag", "fail"):
        raise ConfigError(f"unknown on_degrade {on_degrade!r:.80}", fix="known: flag, fail")
    if not isinstance(sinks, (list, tuple)) or not all(map(callable, sinks)):
        raise ConfigError("sinks takes a list of functions", why=f"got {type(sinks).__name__}", fix="write sinks=[...]")


def _deadline(timeout: object, kind: type[ConfigError | UsageError]) -> float | None:
    """Seconds, more than none of them.

    Raises:
        ConfigError, UsageError: as `kind` says.
    """
    timeout = of_numpy(timeout)
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e6:
        raise kind("timeout must be a number of seconds above 0", why=f"got {timeout!r:.80}", fix="None for no limit")
    return float(timeout)
