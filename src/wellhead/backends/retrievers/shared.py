"""One retriever for the whole process, made on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["shared_retriever"]

_Made = TypeVar("_Made")
_lock = threading.RLock()
_made: dict[Callable[[], object], object] = {}


def shared_retriever(make: Callable[[], _Made]) -> _Made:
    """What `make` returned when it was first asked for: one object a function and process, however many ask at once.

    Where it raises, nothing is kept, and the next call tries again. Pass a function of a module, not a new lambda each
    time: the function is what an object is known by.
    """
    with _lock:
        if make not in _made:
            _made[make] = make()
        return cast("_Made", _made[make])
