"""The places where a crash would hurt most, by name."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["hook", "reached"]

# Tests put a function here that ends the process, or raises; otherwise nothing happens at a failpoint.
hook: Callable[[str], None] | None = None


def reached(name: str) -> None:
    """Tell the hook that a place was reached."""
    if hook is not None:
        hook(name)
