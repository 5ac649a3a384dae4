"""What the numbers of a vector store mean: declared by whoever wires it, and checked against what it returns.

Stores share an interface and not their numbers: some return a similarity, others a distance, in several metrics. A
wrong guess shows in nothing but a threshold that cuts the wrong half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from wellhead.errors import ConfigError
from wellhead.hints import choices

__all__ = ["Convention", "check_convention", "check_cosines", "check_order", "score_of"]

# similarity        higher is better, of no known range       distance   lower is better, of no known range
# cosine            -1 to 1, higher is better                 cosine_distance   0 to 2: one minus the cosine
# l2, squared_l2    Euclidean distance of unit vectors, 0 to 2; and its square, 0 to 4
Convention: TypeAlias = Literal["similarity", "distance", "cosine", "cosine_distance", "l2", "squared_l2"]

# How each becomes a score, where higher is better: no larger for a larger distance, and the largest for none at all.
_SCORES: Mapping[str, Callable[[float], float]] = {
    "similarity": lambda told: told,
    "distance": lambda told: 0.0 - told,
    "cosine": lambda told: told,
    "cosine_distance": lambda told: 1.0 - told,
    "l2": lambda told: 1.0 - told * told / 2.0,
    "squared_l2": lambda told: 1.0 - told / 2.0,
}
# These become a cosine.
_COSINES = frozenset({"cosine", "cosine_distance", "l2", "squared_l2"})
_ROUNDING = 1e-3
# Stores may keep vectors at a byte a dimension.
_QUANTISED = 0.03


def check_convention(convention: str) -> None:
    """Raises ConfigError for an unknown one."""
    known = get_args(Convention)
    if convention not in known:
        raise ConfigError(f"unknown score convention {convention!r}", fix=choices(str(convention), known))


def score_of(convention: str, told: object) -> object:
    """The score of what a store told: -1 to 1 where it is a cosine. What is no finite number stays as it is.

    Raises:
        ConfigError: the number cannot be of this convention.
    """
    number = _number(told)
    if number is None:
        return told
    score = _SCORES[convention](number)
    if convention not in _COSINES:
        return score
    below_zero = number < -_ROUNDING and convention != "cosine"
    if below_zero or not -1 - _ROUNDING <= score <= 1 + _ROUNDING:
        raise ConfigError(
            f"the store's scores are no {convention}",
            why=f"it returned {number:.6g}, which is out of its range",
            fix="declare what its collection was made with, or only score='similarity' or 'distance'",
        )
    return max(-1.0, min(1.0, score))


def _number(told: object) -> float | None:
    if isinstance(told, bool):
        return None
    try:
        number = float(told)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and not isinstance(told, str) else None


def check_order(convention: str, told: Sequence[object]) -> None:
    """Hold the convention against an answer, which every store gives best first.

    Raises:
        ConfigError: the scores rise down the list, so the direction is the other one, or the list has no order.
    """
    scores = [_SCORES[convention](number) for number in map(_number, told) if number is not None]
    rises = [late - early for early, late in pairwise(scores) if late > early + _ROUNDING * max(1.0, abs(early))]
    if rises:
        falls = any(late < early for early, late in pairwise(scores))
        raise ConfigError(
            f"the store's scores are no {convention}",
            why="they go up and down along its list" if falls else "the first of its list would be the worst",
            fix="declare the other direction: 'similarity' is higher for better, 'distance' lower",
        )


def check_cosines(
    convention: str, scores: Sequence[object], query: Sequence[float], documents: Sequence[Sequence[float]]
) -> None:
    """Hold scores that are said to be cosines against those of the vectors themselves.

    Raises:
        ConfigError: they are others: an L2 distance taken for a cosine distance has the right direction and range.
    """
    if convention not in _COSINES:
        return
    for told, vector in zip(map(_number, scores), documents, strict=True):
        true = _cosine(query, vector)
        if told is not None and abs(told - true) > _QUANTISED:
            raise ConfigError(
                f"the store's scores are no {convention}",
                why=f"they say a cosine of {told:.3f} where the vectors' own is {true:.3f}",
                fix="declare what its collection was made with, or only score='similarity' or 'distance'",
            )


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(left * right for left, right in zip(one, other, strict=True)) / lengths if lengths else 0.0
