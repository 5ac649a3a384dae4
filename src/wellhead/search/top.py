"""The best rows of a score: found without sorting all of them, ties settled by passage id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wellhead.ports import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wellhead.ports import DoubleArray, RowArray

__all__ = ["at_least_the_best", "best", "order"]

# So many groups of rows for each one wanted: the best of the groups bound the best of the rows from below.
_GROUPS = 4


def at_least_the_best(scores: NDArray[Any], size: int) -> RowArray:
    """The rows of the `size` best scores and of every score equal to the last of them, ascending; none of -inf.

    Args:
        scores: float[n], no NaN.
    """
    bound = _bound(scores, size)
    rows = np.flatnonzero(scores >= bound) if bound > -np.inf else np.flatnonzero(scores > -np.inf)
    if len(rows) > size:
        held = scores[rows]
        rows = rows[held >= np.partition(held, len(rows) - size)[len(rows) - size]]
    return rows


def _bound(scores: NDArray[Any], size: int) -> float:
    """A score that at least `size` rows reach, seen by the best of groups of rows; -inf where there are few rows."""
    groups = _GROUPS * size
    each = len(scores) // groups
    if each < 2:
        return -np.inf
    tops = scores[: each * groups].reshape(each, groups).max(axis=0)
    return float(np.partition(tops, groups - size)[groups - size])


def best(view: View, rows: RowArray, scores: DoubleArray, size: int) -> RowArray:
    """The `size` best of these rows, best first, ties by passage id. `scores` float64[len(rows)], no NaN."""
    if len(rows) > size:
        kept = scores >= np.partition(scores, len(rows) - size)[len(rows) - size]
        rows, scores = rows[kept], scores[kept]
    ranked: RowArray = rows[order(view, rows, scores)][:size]
    return ranked


def order(view: View, rows: RowArray, scores: DoubleArray) -> RowArray:
    """The places of `rows` in the order of their scores, best first, ties by passage id."""
    places = np.argsort(-scores, kind="stable")
    ranked = scores[places]
    if len(ranked) > 1 and bool((ranked[1:] == ranked[:-1]).any()):
        places = np.lexsort((view.by_id(rows), -scores))
    return places
