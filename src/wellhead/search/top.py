"""The best rows of a score: found without sorting all of them, ties settled by passage id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wellhead.ports import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wellhead.ports import BoolArray, DoubleArray, IntArray, RowArray

__all__ = ["Candidates", "among_the_best", "at_least_the_best", "best", "order", "union"]

# So many groups of rows for each one wanted: the best of the groups bound the best of the rows from below.
_GROUPS = 4


class Candidates(NamedTuple):
    """Rows, ascending, each once.

    `places` int32[space]: where each row of the view stands among them, from 1; 0 for one that does not.
    """

    rows: RowArray
    places: IntArray

    @classmethod
    def of(cls, rows: RowArray, space: int) -> Candidates:
        """The rows of a view with so many."""
        places = np.zeros(space, dtype=np.int32)
        places[rows] = np.arange(1, len(rows) + 1, dtype=np.int32)
        return cls(rows, places)


def at_least_the_best(scores: NDArray[Any], size: int) -> RowArray:
    """The rows of the `size` best scores and of every score equal to the last of them, ascending; none of -inf.

    Args:
        scores: float[n], no NaN.
    """
    rows = among_the_best(scores, size, -np.inf)
    if len(rows) > size:
        held = scores[rows]
        rows = rows[held >= np.partition(held, len(rows) - size)[len(rows) - size]]
    return rows


def among_the_best(scores: NDArray[Any], size: int, above: float) -> RowArray:
    """The rows of the `size` best scores above a limit, and perhaps some more, ascending: found in one pass.

    Args:
        scores: float[n], no NaN.
    """
    bound = _bound(scores, size)
    rows: RowArray = np.flatnonzero(scores >= bound if bound > above else scores > above)
    return rows


def union(first: RowArray, second: RowArray) -> RowArray:
    """The rows of both, ascending, each once."""
    rows = np.concatenate((first, second))
    rows.sort()
    is_new = np.ones(len(rows), dtype=np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_new[1:])
    return rows[is_new]


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
    same = ranked[1:] == ranked[:-1]
    if same.any():
        _settle(view, rows, places, same)
    return places


def _settle(view: View, rows: RowArray, places: RowArray, same: BoolArray) -> None:
    """Put equal scores in the order of their passage ids. `same`: whether a place has the score of the one before."""
    tied = np.concatenate(((False,), same))
    runs = np.cumsum(~tied)  # of equal scores
    tied[:-1] |= same
    own = places[tied]
    places[tied] = own[np.lexsort((view.by_id(rows[own]), runs[tied]))]
