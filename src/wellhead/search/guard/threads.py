"""Daemon threads that are used again: a store keeps a connection for each thread, and a new one costs more than a call.

Daemons, unlike the threads of an executor: a backend that hangs must not keep the process from ending.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

__all__ = ["Answer", "run_aside"]

_T = TypeVar("_T")
_MOST_IDLE = 8


class Answer(Generic[_T]):
    """What a call has to say: a value, or what it raised."""

    def __init__(self, make: Callable[[], _T], told: Callable[[BaseException], Exception]) -> None:
        self._error: Exception | None = None
        try:
            self._made = make()
        except Exception as error:  # noqa: BLE001 (raised again where it is waited for)
            self._error = error
        except BaseException as error:  # noqa: BLE001
            # A backend that exits ends its own call, never the program that searched.
            self._error = told(error)

    def value(self) -> _T:
        if self._error is not None:
            raise self._error
        return self._made


# A call, and who is told once its thread is free again.
_Job: TypeAlias = tuple[Callable[[], object], Callable[[], None]]
# Appending and popping need no lock, which a fork could leave held for ever.
_idle: deque[_Worker] = deque()


class _Worker:
    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="wellhead-search", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """In a forked child no thread of its parent lives."""
        return self._thread.is_alive()

    def give(self, job: _Job) -> None:
        self._jobs.put(job)

    def _run(self) -> None:
        stays = True
        while stays:
            call, tell = self._jobs.get()
            call()
            stays = len(_idle) < _MOST_IDLE
            if stays:
                _idle.append(self)
            tell()
            del call, tell  # nothing of an answer is kept while waiting


def run_aside(
    make: Callable[[], _T], tell: Callable[[Answer[_T]], None], told: Callable[[BaseException], Exception]
) -> None:
    """Call `make` in another thread, then `tell` what came of it, also from there: it must not block or raise."""
    held: list[Answer[_T]] = []
    _worker().give((lambda: held.append(Answer(make, told)), lambda: tell(held.pop())))


def _worker() -> _Worker:
    while _idle:
        try:
            worker = _idle.pop()
        except IndexError:
            break
        if worker.alive:
            return worker
    return _Worker()
