"""What was probably meant: the last part of a message about a wrong name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["choices", "did_you_mean"]


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """`did you mean 'x' or 'y'?`, or "" when nothing is near."""
    import difflib  # late: only mistakes need it

    near = difflib.get_close_matches(given, list(known), n=3)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def choices(given: str, known: Sequence[str]) -> str:
    """How to mend a name that is not among the known ones."""
    return f"{did_you_mean(given, known)} known: {', '.join(known)}".strip()
