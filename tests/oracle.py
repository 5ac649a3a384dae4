"""Second implementations, as plain as can be: what the real ones must agree with.

Nothing here imports wellhead, and nothing here is fast.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any


def bm25_scores(
    passages: Sequence[Mapping[str, int]],
    documents: Sequence[Hashable],
    query: Mapping[str, int],
    k1: float,
    b: float,
) -> list[float]:
    """BM25 of every passage: term counts of the passages in, whose document each is, counts of the query's terms.

    A term gives idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len / avg)), as often as the query holds it; lengths are
    those of passages.
    """
    lengths = [sum(terms.values()) for terms in passages]
    average = sum(lengths) / len(lengths) if lengths else 0.0
    scores = []
    for terms, length in zip(passages, lengths, strict=True):
        score = 0.0
        for term, times in query.items():
            tf = terms.get(term, 0)
            if tf:
                weight = times * idf(passages, documents, term)
                score += weight * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average))
        scores.append(score)
    return scores


def idf(passages: Sequence[Mapping[str, int]], documents: Sequence[Hashable], term: str) -> float:
    """ln(1 + (N - df + 0.5) / (df + 0.5)): there are N documents, and df of them have a passage that holds the term."""
    df = len({document for terms, document in zip(passages, documents, strict=True) if terms.get(term, 0)})
    return math.log(1 + (len(set(documents)) - df + 0.5) / (df + 0.5))


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """-1 to 1; 0.0 where one of them has no length."""
    norm = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0


def matches(filters: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether one row passes. All clauses of a mapping must hold; an empty mapping lets everything pass.

    `$not` passes the rows that have every key it mentions and fail what stands inside.
    """
    return all(_clause(key, operand, metadata) for key, operand in filters.items())


def _clause(key: str, operand: Any, metadata: Mapping[str, Any]) -> bool:
    if key == "$and":
        return all(matches(inner, metadata) for inner in operand)
    if key == "$or":
        return any(matches(inner, metadata) for inner in operand)
    if key == "$not":
        return all(name in metadata for name in keys_of(operand)) and not matches(operand, metadata)
    if key not in metadata:
        return False
    value = metadata[key]
    elements = value if isinstance(value, (list, tuple)) else [value]
    operators = operand if isinstance(operand, Mapping) else {"$eq": operand}
    # Each operator is a clause of its own: different elements of a list may satisfy the two ends of a range.
    return all(any(_holds(name, element, bound) for element in elements) for name, bound in operators.items())


def keys_of(filters: Mapping[str, Any]) -> set[str]:
    """The metadata keys that a filter mentions, at any depth."""
    keys: set[str] = set()
    for key, operand in filters.items():
        if key in {"$and", "$or"}:
            for inner in operand:
                keys |= keys_of(inner)
        elif key == "$not":
            keys |= keys_of(operand)
        else:
            keys.add(key)
    return keys


def _holds(name: str, value: Any, operand: Any) -> bool:
    if name == "$eq":
        return same(value, operand)
    if name == "$in":
        return any(same(value, item) for item in operand)
    compare = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}[name]
    if is_number(value) and is_number(operand):
        return bool(compare(value, operand))
    left, right = instant(value), instant(operand)
    return left is not None and right is not None and bool(compare(left, right))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(value: Any, operand: Any) -> bool:
    """Strict equality: a bool equals only a bool, text only text; 1 equals 1.0."""
    if is_number(value) and is_number(operand):
        return bool(value == operand)
    return type(value) is type(operand) and bool(value == operand)


def instant(value: Any) -> datetime.datetime | None:
    """The moment that an ISO-8601 text (or a date) names: without a zone in UTC, a day at its midnight; else None."""
    if isinstance(value, datetime.date):
        value = value.isoformat()
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
