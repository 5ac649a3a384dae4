"""`MemoryCache`: answers that may be used again for a while. What a key holds is the caller's business."""

from __future__ import annotations

import copy
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from wellhead.agent.tool import ToolResult
from wellhead.errors import ConfigError

__all__ = ["MemoryCache"]


class MemoryCache:
    """Keeps results in this process, each for its own time; safe to use from several threads.

    Args:
        most: how many are kept; the least recently used one makes room.
        clock: seconds, never going back.
    """

    def __init__(self, most: int = 1_000, *, clock: Callable[[], float] = time.monotonic) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ConfigError("a cache keeps a whole number of answers, at least 1", why=f"got {most!r:.60}")
        self._most = most
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, ToolResult]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> ToolResult | None:
        """What was kept under the key, unless its time is over."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            if self._clock() >= found[0]:
                del self._held[key]
                return None
            self._held.move_to_end(key)
        return _copied(found[1])

    def put(self, key: str, result: ToolResult, ttl: float) -> None:
        """Keep a result for `ttl` seconds."""
        kept = _copied(result)
        with self._lock:
            self._held[key] = (self._clock() + ttl, kept)
            self._held.move_to_end(key)
            while len(self._held) > self._most:
                self._held.popitem(last=False)

    def __len__(self) -> int:
        """How many are kept, those whose time is over included."""
        return len(self._held)


def _copied(result: ToolResult) -> ToolResult:
    """The result with data of its own: whoever changes what was given to one must not change it for others."""
    return msgspec.structs.replace(result, data=copy.deepcopy(result.data), hits=copy.deepcopy(result.hits))
