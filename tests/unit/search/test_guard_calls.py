"""How a backend is called: threads, loops, deadlines, and what becomes of a backend that never comes back."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from wellhead.errors import BackendError, BackendTimeout, StoreError, WellheadError
from wellhead.events import EventLog
from wellhead.records import Hits
from wellhead.search.guard import Guarded, call
from wellhead.testing.liars import honest_hit


class Blocking:
    def __init__(self, work: Callable[[], Any] = list) -> None:
        self.work = work

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Any:
        return self.work()


class Awaited:
    def __init__(self, work: Callable[[], Awaitable[Any]]) -> None:
        self.work = work

    async def asearch(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Any:
        return await self.work()


async def one_hit() -> list[Any]:
    await asyncio.sleep(0)
    return [honest_hit(1)]


def ids(hits: Hits) -> list[str]:
    return [hit.id for hit in hits]


async def ticks(search: Callable[[], Awaitable[Hits]]) -> tuple[Hits, float]:
    """The answer, and by how much a ticker of 10 ms was late at worst while it was waited for: seconds."""
    worst, done = 0.0, False

    async def tick() -> None:
        nonlocal worst
        while not done:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            worst = max(worst, time.perf_counter() - began - 0.01)

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.02)
    hits = await search()
    done = True
    await ticker
    return hits, worst


def test_a_blocking_backend_does_not_hold_up_the_loop() -> None:
    def slow() -> list[Any]:
        time.sleep(0.4)
        return [honest_hit(1)]

    hits, worst = asyncio.run(ticks(lambda: Guarded(Blocking(slow)).asearch("refund")))
    assert ids(hits) == ["p1"]
    assert worst < 0.2


@pytest.mark.promise("G35")
def test_coroutines_can_be_waited_for_without_a_loop_and_share_one() -> None:
    loops = []

    async def work() -> list[Any]:
        loops.append(asyncio.get_running_loop())
        return await one_hit()

    guarded = Guarded(Awaited(work))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: guarded.search("refund", timeout=5), range(8)))
    assert [ids(hits) for hits in answers] == [["p1"]] * 8
    assert len(set(loops)) == 1
    assert ids(asyncio.run(guarded.asearch("refund"))) == ["p1"]
    assert len(set(loops)) == 2


def test_a_function_that_turns_out_to_be_async_is_awaited() -> None:
    guarded = Guarded(Blocking(one_hit))
    assert ids(guarded.search("refund")) == ids(guarded.search("refund", timeout=5)) == ["p1"]
    assert ids(asyncio.run(guarded.asearch("refund", timeout=5))) == ["p1"]


@pytest.mark.promise("G32")
@pytest.mark.parametrize("timeout", [None, 5.0])
def test_both_ways_of_calling_raise_the_same(timeout: float | None) -> None:
    def fail() -> list[Any]:
        raise KeyError("secret")

    async def afail() -> list[Any]:
        raise KeyError("secret")

    for backend in (Blocking(fail), Awaited(afail)):
        guarded = Guarded(backend, timeout=timeout)
        for attempt in (lambda g=guarded: g.search("refund"), lambda g=guarded: asyncio.run(g.asearch("refund"))):
            with pytest.raises(BackendError) as caught:
                attempt()
            assert type(caught.value) is BackendError
            assert isinstance(caught.value.__cause__, KeyError)
            assert "secret" not in str(caught.value)
            assert "KeyError" in caught.value.why


def test_our_own_errors_are_passed_on_as_they_are() -> None:
    error = StoreError("the disk is gone", where="here")

    def fail() -> list[Any]:
        raise error

    for attempt in (
        lambda: Guarded(Blocking(fail)).search("refund"),
        lambda: Guarded(Blocking(fail)).search("refund", timeout=5),
        lambda: asyncio.run(Guarded(Blocking(fail)).asearch("refund")),
    ):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert caught.value is error


class ReadTimeoutError(Exception):
    """As client libraries have them: no relative of TimeoutError."""


@pytest.mark.parametrize("kind", [TimeoutError, ReadTimeoutError])
def test_a_backends_own_timeout_is_a_timeout(kind: type[Exception]) -> None:
    async def fail() -> list[Any]:
        raise kind

    def bfail() -> list[Any]:
        raise kind

    for backend in (Awaited(fail), Blocking(bfail)):
        for timeout in (None, 5.0):
            with pytest.raises(BackendTimeout) as caught:
                Guarded(backend).search("refund", timeout=timeout)
            assert isinstance(caught.value.__cause__, kind)
            with pytest.raises(BackendTimeout):
                asyncio.run(Guarded(backend).asearch("refund", timeout=timeout))


@pytest.mark.promise("G32")
def test_a_deadline_holds_though_the_backend_blocks() -> None:
    release = threading.Event()

    def hang() -> list[Any]:
        release.wait(5)
        return []

    guarded = Guarded(Blocking(hang), timeout=0.1)
    for attempt in (lambda: guarded.search("refund"), lambda: asyncio.run(guarded.asearch("refund"))):
        began = time.perf_counter()
        with pytest.raises(BackendTimeout, match="in time"):
            attempt()
        # Nor does the end of the loop wait for the thread.
        assert 0.09 < time.perf_counter() - began < 1.0
    release.set()


def test_a_deadline_holds_though_the_backend_refuses_to_be_cancelled() -> None:
    async def stubborn() -> list[Any]:
        for _ in range(20):
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return []

    guarded = Guarded(Awaited(stubborn))

    async def attempt() -> float:
        began = time.perf_counter()
        with pytest.raises(BackendTimeout):
            await guarded.asearch("refund", timeout=0.1)
        return time.perf_counter() - began

    assert asyncio.run(attempt()) < 0.5
    began = time.perf_counter()
    with pytest.raises(BackendTimeout):
        guarded.search("refund", timeout=0.1)
    assert time.perf_counter() - began < 0.5


def test_a_coroutine_is_cancelled_at_its_deadline() -> None:
    seen = threading.Event()

    async def wait() -> list[Any]:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            seen.set()
            raise
        return []

    with pytest.raises(BackendTimeout):
        Guarded(Awaited(wait)).search("refund", timeout=0.05)
    assert seen.wait(2)


def test_calls_that_never_end_do_not_pile_up_without_limit() -> None:
    release = threading.Event()
    calls: list[int] = []

    def hang() -> list[Any]:
        calls.append(1)
        release.wait(10)
        return [honest_hit(1)]

    guarded = Guarded(Blocking(hang))
    for _ in range(40):
        with pytest.raises(BackendTimeout):
            guarded.search("refund", timeout=0.002)
    assert len(calls) <= 32
    with pytest.raises(BackendTimeout, match="still busy"):
        asyncio.run(guarded.asearch("refund", timeout=1))
    release.set()
    limit = time.monotonic() + 5
    while guarded._backend._caller._late and time.monotonic() < limit:
        time.sleep(0.01)
    assert ids(guarded.search("refund", timeout=5)) == ["p1"]


def test_a_search_that_is_cancelled_is_cancelled() -> None:
    seen: list[str] = []

    async def wait() -> list[Any]:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return []

    async def cancel() -> None:
        for backend in (Awaited(wait), Blocking(lambda: time.sleep(0.2) or [])):
            task = asyncio.create_task(Guarded(backend).asearch("refund", timeout=9))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.sleep(0)

    asyncio.run(cancel())
    assert seen == ["cancelled"]


def test_a_backend_that_cancels_itself_is_an_outage_and_not_a_cancellation() -> None:
    async def cancelled() -> list[Any]:
        raise asyncio.CancelledError

    def bcancelled() -> list[Any]:
        raise asyncio.CancelledError

    for backend in (Awaited(cancelled), Blocking(bcancelled)):
        with pytest.raises(BackendError):
            asyncio.run(Guarded(backend).asearch("refund"))
        with pytest.raises(BackendError):
            Guarded(backend).search("refund")
        with pytest.raises(BackendError):
            Guarded(backend).search("refund", timeout=5)


def test_a_coroutine_may_search_again_and_wait_without_a_deadlock() -> None:
    async def outer() -> list[Any]:
        return list(Guarded(Awaited(one_hit)).search("again"))

    assert ids(Guarded(Awaited(outer)).search("refund", timeout=5)) == ["p1"]
    assert ids(asyncio.run(Guarded(Awaited(outer)).asearch("refund", timeout=5))) == ["p1"]


def test_what_the_caller_knows_by_context_is_known_in_the_thread() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user")
    user.set("ada")
    guarded = Guarded(Blocking(lambda: [{"text": "x", "id": user.get()}]))
    assert ids(guarded.search("refund", timeout=5)) == ["ada"]
    assert ids(asyncio.run(guarded.asearch("refund"))) == ["ada"]


def test_where_a_retriever_has_both_ways_the_one_that_cannot_hold_up_the_loop_is_called() -> None:
    class Both(Blocking):
        native_async = False

        async def asearch(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Any:
            return [honest_hit(2)]

    both = Both(lambda: [honest_hit(1)])
    assert ids(asyncio.run(Guarded(both).asearch("refund"))) == ["p1"]
    both.native_async = True
    assert ids(asyncio.run(Guarded(both).asearch("refund"))) == ["p2"]
    assert ids(Guarded(both).search("refund")) == ["p1"]


def test_threads_are_used_again() -> None:
    seen: set[threading.Thread] = set()
    guarded = Guarded(Blocking(lambda: seen.add(threading.current_thread()) or []))
    for _ in range(50):
        guarded.search("refund", timeout=5)
    assert len(seen) <= 8
    assert threading.current_thread() not in seen


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_searches_too() -> None:
    guarded, awaited = Guarded(Blocking(lambda: [honest_hit(1)])), Guarded(Awaited(one_hit))
    assert len(guarded.search("refund", timeout=5)) == len(awaited.search("refund", timeout=5)) == 1
    child = os.fork()
    if not child:
        try:
            found = len(guarded.search("refund", timeout=5)) + len(awaited.search("refund", timeout=5))
        except BaseException:
            found = 0
        os._exit(0 if found == 2 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_only_our_errors_leave_the_guard() -> None:
    kinds = [ValueError, OSError, StopIteration, RecursionError, MemoryError, AssertionError, NotImplementedError]
    for kind in kinds:

        def fail(kind: type[Exception] = kind) -> list[Any]:
            raise kind

        for timeout in (None, 5.0):
            with pytest.raises(WellheadError):
                Guarded(Blocking(fail)).search("refund", timeout=timeout)
        with pytest.raises(WellheadError):
            asyncio.run(Guarded(Blocking(fail)).asearch("refund"))
    assert call.translated(ValueError(), "x").retryable


class Leaving(BaseException):
    """Neither an error nor an exit."""


@pytest.mark.promise("G32")
@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit, Leaving, asyncio.CancelledError])
@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("form", ["blocking", "awaited", "not a coroutine"])
def test_a_backend_that_exits_ends_its_own_call_and_not_the_program(
    raised: type[BaseException], timeout: float | None, form: str
) -> None:
    def leave() -> Any:
        raise raised

    async def leave_later() -> Any:
        raise raised

    backend: Any = {
        "blocking": Blocking(leave),
        "awaited": Awaited(leave_later),
        "not a coroutine": type("At", (), {"asearch": lambda self, query, *, k, filters: leave()})(),
    }[form]
    log = EventLog()
    guarded = Guarded(backend, sinks=[log])

    async def waiting() -> int:
        with pytest.raises(BackendError):
            await guarded.asearch("refund", timeout=timeout)
        return len(await Guarded(Awaited(one_hit)).asearch("refund"))

    with pytest.raises(BackendError, match="failed"):
        guarded.search("refund", timeout=timeout)
    assert asyncio.run(waiting()) == 1
    assert {event.name for event in log.events} == {"retrieval.failed"}
    assert len(Guarded(Awaited(one_hit)).search("refund")) == 1, "the shared loop lives on"


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_an_interrupt_raised_on_the_shared_loop_is_the_backends_own(timeout: float | None) -> None:
    async def interrupt() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(BackendError):
        Guarded(Awaited(interrupt)).search("refund", timeout=timeout)
    assert len(Guarded(Awaited(one_hit)).search("refund")) == 1


def test_a_persons_interrupt_passes() -> None:
    def interrupt() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guarded(Blocking(interrupt)).search("refund")
