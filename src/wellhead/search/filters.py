"""Filters over metadata: parsed once, strict in types, applied before ranking.

    {"product": "vault"}                              equality; several keys must all hold
    {"year": {"$gte": 2024, "$lt": 2026}}             ranges on numbers, or on dates against an ISO-8601 date
    {"lang": {"$in": ["en", "de"]}}                   any of these
    {"$or": [...]}, {"$and": [...]}, {"$not": {...}}  combined

A bool matches only a bool; whole and decimal numbers compare by value (1 equals 1.0); text matches only text. A list
in the metadata matches when any of its elements does. A key that a passage lacks matches nothing, and `$not` leaves out
the passages that lack a key it speaks of. Dates compare as instants: without a zone they are UTC, without a time
midnight.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from wellhead.errors import UsageError
from wellhead.hints import did_you_mean
from wellhead.records import Metadata, MetadataValue, Scalar, of_numpy

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, Column, View

__all__ = [
    "All",
    "Any",
    "Compare",
    "Condition",
    "Not",
    "failing",
    "instant",
    "keys",
    "matches",
    "parse",
    "select",
    "unmet",
]

_DEEPEST = 20
_RANGES: dict[str, Callable[[float, float], bool]] = {
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}
_OPERATORS = ("$eq", "$in", *_RANGES)


class Compare(msgspec.Struct, frozen=True, kw_only=True):
    """One key against one operand (`$in`: a tuple of them)."""

    key: str
    operator: str
    operand: Scalar | tuple[Scalar, ...]


class All(msgspec.Struct, frozen=True, kw_only=True):
    """Every part holds; no parts: always true."""

    parts: tuple[Condition, ...]


class Any(msgspec.Struct, frozen=True, kw_only=True):
    """Some part holds; no parts: never true."""

    parts: tuple[Condition, ...]


class Not(msgspec.Struct, frozen=True, kw_only=True):
    """The part does not hold, and every key that it speaks of is there."""

    part: Condition


Condition: TypeAlias = Compare | All | Any | Not


def parse(filters: Mapping[str, object] | None) -> Condition | None:
    """The condition that `filters` states; None for None or {} (no filter).

    Raises:
        UsageError: an unknown operator, an operand of another type, a blank key, more than 20 levels, {} inside.
    """
    if filters is None:
        return None
    condition = _mapping(filters, 0)
    return None if condition == All(parts=()) else condition


def _mapping(filters: object, depth: int) -> Condition:
    if not isinstance(filters, Mapping):
        raise UsageError("a filter must be a mapping of keys to values", why=f"got {type(filters).__name__}")
    if depth > _DEEPEST:
        raise _too_deep()
    if depth and not filters:
        # Beside others in `$or` it would let everything pass: most likely something was not set.
        raise UsageError("a filter inside another is empty", fix="leave it out, or say what it must hold")
    parts = [_entry(key, value, depth) for key, value in filters.items()]
    return parts[0] if len(parts) == 1 else All(parts=tuple(parts))


def _too_deep() -> UsageError:
    return UsageError(f"a filter may be nested {_DEEPEST} levels deep at most", fix="write it flatter")


def _entry(key: object, value: object, depth: int) -> Condition:
    if not isinstance(key, str) or not key.strip():
        raise UsageError("a filter key must be non-blank text", why=f"got {key!r}")
    if key in ("$and", "$or"):
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
            raise UsageError(f"{key} takes a list of filters", why=f"got {type(value).__name__}")
        parts = tuple(_mapping(part, depth + 1) for part in value)
        return All(parts=parts) if key == "$and" else Any(parts=parts)
    if key == "$not":
        return Not(part=_mapping(value, depth + 1))
    if key.startswith("$"):
        raise _unknown_operator(key)
    if isinstance(value, Mapping):
        return _operators(key, value, depth)
    return Compare(key=key, operator="$eq", operand=_scalar(key, value))


def _operators(key: str, operators: Mapping[object, object], depth: int) -> Condition:
    if not operators:
        raise UsageError(f"the filter on {key!r} names no operator", fix=f"use one of {', '.join(_OPERATORS)}")
    if depth > _DEEPEST:
        raise _too_deep()
    parts: list[Condition] = []
    for name, operand in operators.items():
        if name == "$not":
            parts.append(Not(part=_operators(key, _as_mapping(operand), depth + 1)))
        elif name == "$in":
            if isinstance(operand, (str, bytes, Mapping)) or not isinstance(operand, (Sequence, set, frozenset)):
                raise UsageError(f"$in on {key!r} takes a list of values", why=f"got {type(operand).__name__}")
            parts.append(Compare(key=key, operator="$in", operand=tuple(_scalar(key, item) for item in operand)))
        elif name == "$eq":
            parts.append(Compare(key=key, operator="$eq", operand=_scalar(key, operand)))
        elif isinstance(name, str) and name in _RANGES:
            parts.append(Compare(key=key, operator=name, operand=_bound(key, name, operand)))
        else:
            raise _unknown_operator(name)
    return parts[0] if len(parts) == 1 else All(parts=tuple(parts))


def _as_mapping(operand: object) -> Mapping[object, object]:
    return operand if isinstance(operand, Mapping) else {"$eq": operand}


def _unknown_operator(name: object) -> UsageError:
    return UsageError(
        f"unknown filter operator {name!r}", fix=f"use one of {', '.join((*_OPERATORS, '$and', '$or', '$not'))}"
    )


def _scalar(key: str, value: object) -> Scalar:
    value = of_numpy(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise UsageError(
        f"the filter on {key!r} has a value that nothing can equal",
        why=f"got {type(value).__name__} {value!r:.60}",
        fix="compare with text, a finite number, true or false, or a date",
    )


def _bound(key: str, operator: str, operand: object) -> Scalar:
    bound = _scalar(key, operand)
    if isinstance(bound, bool) or (isinstance(bound, str) and instant(bound) is None):
        raise UsageError(
            f"{operator} on {key!r} needs a number or an ISO-8601 date",
            why=f"got {operand!r}",
            fix='write a date as "2026-01-31" or "2026-01-31T12:00:00+00:00"',
        )
    return bound


def instant(text: str) -> int | None:
    """Microseconds since the epoch of an ISO-8601 date or time (no zone: UTC; no time: midnight), or None."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)


def matches(condition: Condition | None, metadata: Metadata) -> bool:
    """Whether one passage's metadata satisfies the condition."""
    match condition:
        case None:
            return True
        case Compare(key=key):
            return key in metadata and _holds(condition, metadata[key])
        case All(parts=parts):
            return all(matches(part, metadata) for part in parts)
        case Any(parts=parts):
            return any(matches(part, metadata) for part in parts)
        case Not(part=part):
            return all(key in metadata for key in keys(part)) and not matches(part, metadata)


def failing(condition: Condition | None, metadata: Metadata) -> str | None:
    """The first clause that a passage fails, in words; None when it passes."""
    if condition is None or matches(condition, metadata):
        return None
    if isinstance(condition, All):
        return next(filter(None, (failing(part, metadata) for part in condition.parts)))
    if isinstance(condition, Compare):
        held = repr(metadata[condition.key]) if condition.key in metadata else "nothing"
        return f"{condition.key} {condition.operator} {condition.operand!r}, but it holds {held}"
    return f"{'$or' if isinstance(condition, Any) else '$not'} over {', '.join(sorted(set(keys(condition))))}"


def unmet(condition: Condition | None, column: Callable[[str], Column | None], known: Sequence[str]) -> str:
    """Why a condition admits nothing, where a key is not in use or holds another type; "" where values just differ.

    Args:
        known: the keys in use.
    """
    for compare in _compares(condition):
        found = column(compare.key)
        if found is None:
            return f"no passage has the key {compare.key!r}; {did_you_mean(compare.key, known)}".rstrip("; ")
        held = {_kind(value) for entry in found.values for value in (entry if isinstance(entry, tuple) else (entry,))}
        operands = compare.operand if isinstance(compare.operand, tuple) else (compare.operand,)
        wanted = {_kind(operand) for operand in operands}
        if wanted and not wanted & held:
            return f"{compare.key!r} holds {' and '.join(sorted(held))}, and {operands[0]!r} is {min(wanted)}"
    return ""


def _compares(condition: Condition | None) -> Iterator[Compare]:
    match condition:
        case Compare():
            yield condition
        case Not(part=part):
            yield from _compares(part)
        case All(parts=parts) | Any(parts=parts):
            for part in parts:
                yield from _compares(part)


def _kind(value: Scalar) -> str:
    return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "numbers"


def keys(condition: Condition) -> Iterator[str]:
    """Every key that a condition speaks of (repeats included)."""
    return (compare.key for compare in _compares(condition))


def _holds(compare: Compare, held: MetadataValue) -> bool:
    values = held if isinstance(held, tuple) else (held,)
    if compare.operator == "$in":
        assert isinstance(compare.operand, tuple)
        return any(_equal(value, operand) for value in values for operand in compare.operand)
    assert not isinstance(compare.operand, tuple)
    if compare.operator == "$eq":
        return any(_equal(value, compare.operand) for value in values)
    return any(_within(compare.operator, value, compare.operand) for value in values)


def _equal(value: Scalar, operand: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    return isinstance(value, str) == isinstance(operand, str) and value == operand


def _within(operator: str, value: Scalar, bound: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(value, str) != isinstance(bound, str):
        return False
    if isinstance(value, str) and isinstance(bound, str):
        at, limit = instant(value), instant(bound)
        return at is not None and limit is not None and _RANGES[operator](at, limit)
    assert not isinstance(value, str)
    assert not isinstance(bound, str)
    return _RANGES[operator](value, bound)


def select(condition: Condition | None, view: View) -> BoolArray | None:
    """Which live rows satisfy the condition: bool[space]; None when there is no condition.

    Each distinct value is judged once, then spread over the rows by its code.
    """
    if condition is None:
        return None
    selected = _select(condition, view)
    return selected if view.live is None else selected & view.live


def _select(condition: Condition, view: View) -> BoolArray:
    match condition:
        case Compare(key=key):
            found = view.column(key)
            if found is None:
                return np.zeros(view.space, dtype=np.bool_)
            holds = np.array([*(_holds(condition, value) for value in found.values), False], dtype=np.bool_)
            selected: BoolArray = holds[found.codes]
            return selected
        case All(parts=parts) | Any(parts=parts):
            combine = np.logical_and if isinstance(condition, All) else np.logical_or
            selected = np.full(view.space, isinstance(condition, All), dtype=np.bool_)
            for part in parts:
                combine(selected, _select(part, view), out=selected)
            return selected
        case Not(part=part):
            selected = ~_select(part, view)
            for key in set(keys(part)):
                found = view.column(key)
                selected &= np.zeros(view.space, dtype=np.bool_) if found is None else found.codes >= 0
            return selected
