"""The dense leg: exact cosine over the distinct vectors of a scope.

A float32 product finds who can be in the pool; their cosines are then computed in float64, row by row, so that neither
the order of insertion nor the shape of the matrix shows in a score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wellhead.errors import UsageError
from wellhead.ports import View

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, DoubleArray, FloatArray, RowArray

__all__ = ["cosine", "cosines", "pool"]

# More than float32 can be off by for unit vectors of a few thousand dimensions.
_SLACK = 1e-5


def cosine(first: FloatArray, second: FloatArray) -> float:
    """The cosine of two vectors, -1 to 1; 0.0 where one of them is all zeros.

    Raises:
        UsageError: the vectors differ in length.
    """
    if len(first) != len(second):
        raise UsageError(
            f"vectors differ in length: {len(first)} vs {len(second)}",
            why="they come from two models, or one was cut",
            fix="embed both with the same model and dimensions",
        )
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return 0.0 if lengths == 0.0 else float(np.clip(a @ b / lengths, -1.0, 1.0))


def cosines(view: View, query: FloatArray, rows: RowArray) -> DoubleArray:
    """The cosine of the query with each row: float64[len(rows)], NaN for rows without a vector."""
    matrix, of = view.vectors
    found = np.full(len(rows), np.nan)
    places = of[rows]
    has = places >= 0
    if has.any():
        vectors = matrix[places[has]].astype(np.float64)
        found[has] = np.clip(np.einsum("ij,j->i", vectors, query.astype(np.float64)), -1.0, 1.0)
    return found


def pool(view: View, query: FloatArray, allowed: BoolArray | None, size: int) -> RowArray:
    """The `size` rows nearest to the query among those allowed, best first, ties by row (that is, by id)."""
    matrix, of = view.vectors
    eligible = of >= 0 if allowed is None else (of >= 0) & allowed
    rows = np.flatnonzero(eligible)
    if not len(rows):
        return rows
    rough = (matrix @ query)[of[rows]]
    if len(rows) > size:
        bound = np.partition(rough, len(rough) - size)[len(rough) - size] - _SLACK
        rows = rows[rough >= bound]
    exact = cosines(view, query, rows)
    order = np.lexsort((rows, -exact))[:size]
    ranked: RowArray = rows[order]
    return ranked
