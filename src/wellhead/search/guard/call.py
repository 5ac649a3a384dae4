"""How a backend is called: blocking ones in a thread, coroutines on a loop, none past its deadline.

Whatever a backend raises becomes one of our errors here, with the cause chained and nothing of its text repeated: a
message of someone else's may hold a key, a query or another tenant's words.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from wellhead.errors import BackendError, BackendTimeout, WellheadError
from wellhead.search.guard.threads import Answer, run_aside

__all__ = ["Caller", "is_coroutine", "translated"]

_T = TypeVar("_T")
# So many calls may run on past their deadline before new ones are refused: each holds a thread.
_MOST_LATE = 32


def is_coroutine(function: object) -> bool:
    """Whether calling it gives something to await: an `async def`, or an object with an async `__call__`."""
    # A class's `__call__` is a plain function of it; an instance without one is not callable at all.
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def translated(error: BaseException, name: str) -> WellheadError:
    """A backend's exception in our words: only its type is told.

    Whether it is a timeout is read off the names of its types: every client library has one of its own.
    """
    if isinstance(error, WellheadError):
        return error
    kind = type(error).__name__
    timed_out = any("timeout" in base.__name__.lower() for base in type(error).__mro__)
    made = (BackendTimeout if timed_out else BackendError)(
        f"the retriever {name!r} {'did not answer in time' if timed_out else 'failed'}",
        where=name,
        why=f"its backend raised {kind}",
        fix="see the chained error; this is an outage, not an empty answer",
    )
    made.__cause__ = error
    return made


class Caller:
    """Calls one backend, and knows how many calls of it are still running past their deadline."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._late = 0
        self._lock = threading.Lock()

    def blocking(self, work: Callable[[], _T | Awaitable[_T]], timeout: float | None, *, native: bool) -> _T:
        """The outcome of `work`, from a thread that has no event loop to keep going."""
        try:
            if timeout is not None and not native:
                return self._in_time(work, timeout)
            made = work()
            return self._shared(made, timeout) if inspect.isawaitable(made) else made
        except KeyboardInterrupt:  # a person's, not the backend's
            raise
        except BaseException as error:  # noqa: BLE001 (all of it is translated; one that exits ends its own call)
            raise self._told(error) from error.__cause__ if isinstance(error, WellheadError) else error

    async def waiting(self, work: Callable[[], _T | Awaitable[_T]], timeout: float | None, *, native: bool) -> _T:
        """The same from an event loop, which goes on meanwhile.

        Args:
            native: `work` makes a coroutine and does not block; otherwise it runs in a thread of its own.
        """
        try:
            made = self._contained(work) if native else self._threaded(work)
            return await self._awaited(made, timeout)
        except Exception as error:  # noqa: BLE001 (all of it is translated)
            raise self._told(error) from error.__cause__ if isinstance(error, WellheadError) else error

    def _told(self, error: BaseException) -> WellheadError:
        return translated(error, self.name)

    def _contained(self, work: Callable[[], _T]) -> _T:
        """`work` in the thread of the event loop, which an exit of the backend must not end."""
        try:
            return work()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (translated)
            raise self._told(error) from (error.__cause__ if isinstance(error, WellheadError) else error)

    def _shared(self, made: Awaitable[_T], timeout: float | None) -> _T:
        future = _on_shared_loop(made, self._told)
        try:
            return future.result(timeout)
        except TimeoutError:
            if future.done():  # the backend's own
                raise
            future.cancel()
            assert timeout is not None
            raise self._timeout(timeout) from None

    # -- threads --------------------------------------------------------------------------------------------------

    def _in_time(self, work: Callable[[], _T | Awaitable[_T]], timeout: float) -> _T:
        answer: queue.SimpleQueue[Answer[_T]] = queue.SimpleQueue()
        late = self._start(work, answer.put)
        try:
            return answer.get(timeout=timeout).value()
        except queue.Empty:
            late.begin()
            raise self._timeout(timeout) from None

    async def _threaded(self, work: Callable[[], _T | Awaitable[_T]]) -> _T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer[_T]] = loop.create_future()

        def deliver(answer: Answer[_T]) -> None:
            try:
                loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(answer))
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

        late = self._start(work, deliver)
        try:
            answer = await future
        except asyncio.CancelledError:
            late.begin()
            raise
        return answer.value()

    def _start(self, work: Callable[[], _T | Awaitable[_T]], deliver: Callable[[Answer[_T]], None]) -> _Late:
        if self._late >= _MOST_LATE:
            raise BackendTimeout(
                f"the retriever {self.name!r} is still busy",
                where=self.name,
                why=f"{self._late} earlier calls run on past their deadline",
                fix="mend the backend; a new call is made once one of them ends",
            )
        late = _Late(self)
        context = contextvars.copy_context()

        def make() -> _T:
            try:
                made = context.run(work)
                return _on_shared_loop(made, self._told).result() if inspect.isawaitable(made) else made
            finally:
                late.end()

        run_aside(make, deliver, self._told)
        return late

    def count_late(self, change: int) -> None:
        with self._lock:
            self._late += change

    # -- coroutines -----------------------------------------------------------------------------------------------

    async def _awaited(self, made: _T | Awaitable[_T], timeout: float | None) -> _T:
        if not inspect.isawaitable(made):
            return made
        task: asyncio.Task[_T] = asyncio.ensure_future(_whole(made, self._told))
        try:
            # Not `wait_for`: it would wait for as long as the backend refuses to be cancelled.
            done, _ = await asyncio.wait({task}, timeout=timeout)
        except asyncio.CancelledError:
            _abandon(task)
            raise
        if not done:
            _abandon(task)
            assert timeout is not None
            raise self._timeout(timeout)
        if task.cancelled():
            raise BackendError(
                f"the retriever {self.name!r} was cancelled by its own backend",
                where=self.name,
                why="nobody who waits for it asked for that",
                fix="look for what cancels the backend's tasks",
            )
        error = task.exception()
        if error is not None and not isinstance(error, (Exception, KeyboardInterrupt)):
            raise self._told(error) from error
        return task.result()

    def _timeout(self, timeout: float) -> BackendTimeout:
        return BackendTimeout(
            f"the retriever {self.name!r} did not answer in time",
            where=self.name,
            why=f"its deadline of {timeout:g} s passed",
            fix="give it more time, or mend the backend; this is an outage, not an empty answer",
        )


class _Late:
    """Counts a call as late from its deadline until it ends, whichever of the two comes first."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._lock = threading.Lock()
        self._ended = False
        self._counted = False

    def begin(self) -> None:
        with self._lock:
            if not self._ended:
                self._counted = True
                self._caller.count_late(1)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            if self._counted:
                self._caller.count_late(-1)


async def _whole(made: Awaitable[_T], told: Callable[[BaseException], Exception]) -> _T:
    try:
        value: _T = await made
    except (SystemExit, KeyboardInterrupt) as error:
        # A task that exits takes its event loop along. A person's interrupt comes to the main thread alone.
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise
        raise told(error) from error
    return value


def _abandon(task: asyncio.Task[Any]) -> None:
    task.cancel()
    # What it may still raise belongs to nobody; asked for, so that nobody is told that nobody asked.
    task.add_done_callback(lambda done: None if done.cancelled() else done.exception())


# -- one loop for all blocking calls of coroutines --------------------------------------------------------------------

_starting = threading.Lock()
_shared: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None


def _shared_loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """The process-wide loop and its thread; made on first use, and again in a forked child (where no thread lives)."""
    global _shared
    with _starting:
        if _shared is None or not _shared[1].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="wellhead-loop", daemon=True)
            thread.start()
            _shared = (loop, thread)
        return _shared


def _on_shared_loop(made: Awaitable[_T], told: Callable[[BaseException], Exception]) -> concurrent.futures.Future[_T]:
    loop, thread = _shared_loop()
    if threading.current_thread() is not thread:
        return asyncio.run_coroutine_threadsafe(_whole(made, told), loop)
    # A backend that, on the shared loop, searches again and waits: on the same loop both would wait for ever.
    future: concurrent.futures.Future[_T] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(asyncio.run(_whole(made, told)))
        except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
            future.set_exception(error)

    threading.Thread(target=run, name="wellhead-nested", daemon=True).start()
    return future
