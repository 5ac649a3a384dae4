"""What a backend returned is held against what was asked: scope, filters, repeats, k; and gets its outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from wellhead.errors import UsageError
from wellhead.records import Coverage, Hit, Hits, Outcome, Source
from wellhead.search.filters import Condition, matches
from wellhead.search.guard.reading import Flaw, Returned
from wellhead.search.guard.scope import Bound

__all__ = ["Wanted", "rechecked"]

_HALF = "its backend says so"
_LOOK = "look at the backend"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a hit is held against.

    Args:
        scoped_by_filter: the backend knows no scopes, so it was given the scope as one more filter: what it says beside
            its hits may then speak of what others have.
    """

    k: int
    condition: Condition | None
    bound: Bound | None
    scoped_by_filter: bool


def rechecked(returned: Returned, wanted: Wanted) -> tuple[Hits, Counter[str]]:
    """The hits that may be delivered, and how many may not, by reason.

    Scope and filters come before repeats: another scope's passage must not hide one of the same id.

    Raises:
        UsageError: the backend returned something, and nothing of it can be used: that is no empty answer.
    """
    _refuse_useless(returned)
    dropped: Counter[str] = Counter()
    passing = _distinct(_admitted(returned.items, wanted, dropped), dropped)
    hits = _ranked([hit for place, hit in enumerate(passing) if place < wanted.k or _count(dropped, "beyond_k")])
    dropped.update(beyond_k=returned.unread)
    near = _near_misses(returned, wanted, hits, dropped)
    dropped = +dropped
    outcome, why = ("hits", "") if hits else _empty(returned, wanted, dropped)
    told = _own_words(returned.told, wanted, dropped)
    made = msgspec.structs.replace(
        Hits() if told is None else told,  # an empty one counts too, and is false
        hits=hits,
        outcome=outcome,
        why_empty=why,
        near_misses=near,
        dropped=dropped.total() + (0 if told is None else told.dropped),
    )
    return made, dropped


def _refuse_useless(returned: Returned) -> None:
    flaws = {item for item in returned.items if isinstance(item, str)}
    if flaws and all(isinstance(item, str) for item in returned.items):
        wanted = {"id": "a text that is not blank", "score": "a finite number, or None", "text": "a text, not blank"}
        raise UsageError(
            "nothing that the retriever returned can be used",
            why="; ".join(f"the {flaw} must be {wanted[flaw]}" for flaw in sorted(flaws)),
            fix="mend what the retriever returns; this is no empty answer",
        )


def _own_words(told: Hits | None, wanted: Wanted, dropped: Counter[str]) -> Hits | None:
    """The backend's answer without what may speak of other scopes, where it looked at what they hold."""
    if told is None or not (wanted.scoped_by_filter or dropped["scope"]):
        return told
    return msgspec.structs.replace(
        told,
        evidence={},
        coverage=Coverage(passages=0, with_vectors=0),
        degraded=tuple(msgspec.structs.replace(part, why=_HALF, fix=_LOOK) for part in told.degraded),
    )


def _near_misses(returned: Returned, wanted: Wanted, hits: tuple[Hit, ...], dropped: Counter[str]) -> tuple[Hit, ...]:
    """What the backend had cut itself, held against the same; none that is among the hits."""
    if not returned.near_misses:
        return ()
    delivered = {hit.id for hit in hits}
    near = _distinct(_admitted(returned.near_misses, wanted, dropped), dropped)
    return _ranked([hit for hit in near if hit.id not in delivered][: wanted.k])


def _count(dropped: Counter[str], reason: str) -> bool:
    dropped[reason] += 1
    return False


def _admitted(items: Iterable[Hit | Flaw], wanted: Wanted, dropped: Counter[str]) -> Iterator[Hit]:
    """Those in scope that pass the filters; the others are counted."""
    for hit in items:
        if isinstance(hit, str):
            dropped[hit] += 1
        elif wanted.bound is not None and not wanted.bound.holds(hit.passage.metadata):
            dropped["scope"] += 1
        elif not matches(wanted.condition, hit.passage.metadata):
            dropped["filters"] += 1
        else:
            yield _with_own_places(hit, wanted, dropped)


def _with_own_places(hit: Hit, wanted: Wanted, dropped: Counter[str]) -> Hit:
    """The hit, naming no other place of its text than those that may be seen."""
    if not hit.also_in:
        return hit
    own = tuple(place for place in hit.also_in if _may_be_seen(place, wanted))
    if len(own) == len(hit.also_in):
        return hit
    dropped["also_in"] += len(hit.also_in) - len(own)
    return msgspec.structs.replace(hit, also_in=own)


def _may_be_seen(place: object, wanted: Wanted) -> bool:
    if not isinstance(place, Source):
        return False
    if wanted.bound is not None and not wanted.bound.holds(place.metadata):
        return False
    return matches(wanted.condition, place.metadata)


def _distinct(hits: Iterable[Hit], dropped: Counter[str]) -> Iterator[Hit]:
    seen: set[str] = set()
    for hit in hits:
        if hit.id in seen:
            dropped["repeat"] += 1
        else:
            seen.add(hit.id)
            yield hit


def _ranked(hits: list[Hit]) -> tuple[Hit, ...]:
    return tuple(
        hit if hit.rank == rank else msgspec.structs.replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1)
    )


def _empty(returned: Returned, wanted: Wanted, dropped: Counter[str]) -> tuple[Outcome, str]:
    """Why nothing is delivered. What other scopes hold is never hinted at."""
    told = returned.told
    if dropped["filters"] and wanted.condition is not None and returned.items:
        return "filtered_out", "the backend returned passages of this scope, and none of them passes the filters"
    if wanted.scoped_by_filter or dropped["scope"]:
        # One wording, whether it looked at others' passages or found none; that it is empty altogether is of nobody.
        is_empty = told is not None and told.outcome == "empty_index" and not returned.items
        return ("empty_index" if is_empty else "no_match"), "nothing was found"
    if not returned.items:
        return _of_backend(told, wanted)
    return "no_match", "nothing that the backend returned can be delivered"


def _of_backend(told: Hits | None, wanted: Wanted) -> tuple[Outcome, str]:
    """The backend's own word for its empty answer; a scope alone filters nothing out, however the backend keeps it."""
    if told is not None and told.outcome == "filtered_out" and wanted.condition is None and wanted.bound is not None:
        return "no_match", "nothing was found"
    if told is None or told.outcome not in ("no_match", "filtered_out", "empty_index"):
        return "no_match", "the backend returned nothing"
    return told.outcome, told.why_empty or "the backend returned nothing"
