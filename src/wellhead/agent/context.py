"""For whom a tool runs, and how much it may still use. Set by the host program, never by a model."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Mapping

from wellhead.errors import ConfigError

__all__ = ["Budget", "Context", "Spent"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that one run may use of its tools; None for no bound.

    Args:
        calls: of tools, failed ones included. seconds: spent inside tools, in sum. characters: of all answers that
            tools give; one that does not fit any more is withheld.
    """

    calls: int | None = None
    seconds: float | None = None
    characters: int | None = None

    def __post_init__(self) -> None:
        for name, kinds in (("calls", int), ("seconds", (int, float)), ("characters", int)):
            most = getattr(self, name)
            if most is not None and (isinstance(most, bool) or not isinstance(most, kinds) or not most >= 0):
                raise ConfigError(f"a budget of {name} must be a number from 0, or None", why=f"got {most!r:.60}")


class Spent:
    """What a run has used of its budget so far; safe to use from several threads."""

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.characters = 0
        self._lock = threading.Lock()

    def begin(self, budget: Budget) -> str:
        """Count one call; the name of what is used up before it, "" when it may run."""
        with self._lock:
            for name in ("calls", "seconds", "characters"):
                most = getattr(budget, name)
                if most is not None and getattr(self, name) >= most:
                    return name
            self.calls += 1
            return ""

    def add_seconds(self, seconds: float) -> None:
        with self._lock:
            self.seconds += seconds

    def add_characters(self, characters: int, budget: Budget) -> bool:
        """Count them where they fit; False where they do not."""
        with self._lock:
            if budget.characters is not None and self.characters + characters > budget.characters:
                return False
            self.characters += characters
            return True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Context:
    """One run on behalf of one user: `dataclasses.replace(executor.context(), user_id="ada")`.

    A replaced context is another run: its budget is untouched, and it shares no cached answer of scope "run".

    Args:
        user_id: whoever the host program authenticated; "" for nobody. data: anything else that filters and tools of
            the host need (a tenant, a session).
        budget: of the run.
        run_id: random; tells runs apart in events.
    """

    user_id: str = ""
    data: Mapping[str, object] = dataclasses.field(default_factory=dict[str, object])
    budget: Budget = Budget()
    run_id: str = dataclasses.field(init=False, default_factory=lambda: secrets.token_hex(8))
    spent: Spent = dataclasses.field(init=False, default_factory=Spent, repr=False, compare=False)
