"""Why a document's id is not taken over from where it came before, and what to do about it."""

from __future__ import annotations

__all__ = ["taken"]


def taken(owner: str, origin: str, *, same: bool) -> str:
    """Why an id of `owner` is not taken over by `origin`, and what to do about it; `same`: so is the content."""
    if not owner:
        return "this id already belongs to a program that added it; remove it there, or index with a prefix (--prefix)"
    if _is_within(origin, owner):
        return f"this id already belongs to the folder {owner!r}, which holds it; index the folder {owner!r} instead"
    if _is_within(owner, origin):
        return f"this id already belongs to {owner!r}, which was indexed by itself; remove its documents first"
    if same or origin.rpartition("/")[2] == owner.rpartition("/")[2]:
        moved = f"pass origin={owner!r} (--origin {owner}) where this is that folder, moved or seen from a moved index"
        return f"this folder seems to have been indexed as {owner!r} before: {moved}; else give it a prefix (--prefix)"
    return f"this id already belongs to the folder {owner!r}; give these documents a prefix of their own (--prefix)"


def _is_within(inner: str, outer: str) -> bool:
    """Whether one origin lies in another: both are paths from the same place, without needless parts."""
    if set(outer.split("/")) <= {".", ".."}:
        return inner != outer and inner.split("/").count("..") <= outer.count("..")
    return inner.startswith(f"{outer}/")
