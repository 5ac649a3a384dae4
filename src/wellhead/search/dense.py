"""The dense leg: cosine over the vectors of a scope.

A rough product finds who can be in the pool: over one byte a dimension where a view keeps that form, else over float32.
More rows than the pool takes are then measured over float32 by a kernel that takes each row by itself, so that neither
the order of insertion nor the shape of a matrix shows in a score. A row enters the pool by that cosine, which is exact
to about 1e-7; what one byte a dimension can get wrong is only whether a row is measured at all, and half as many again
as the pool takes are measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import simsimd

from wellhead.errors import UsageError
from wellhead.ports import VectorPart, View
from wellhead.search.top import Candidates, at_least_the_best, best, union

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, CodeArray, DoubleArray, FloatArray, RowArray

__all__ = ["Nearest", "cosine", "cosines", "nearest", "pool", "quantise"]

# For each row of the pool, so many are measured exactly.
_MEASURED = 1.5
# Up to so many rows all are measured: those that a filter admits, for gathering them costs less than looking at every
# row of the scope; and those of a small scope, for they lie side by side.
_FEW, _SMALL = 2_000, 1_500


def quantise(vectors: FloatArray) -> tuple[CodeArray, FloatArray]:
    """One byte a dimension, and a scale for each vector: int8[n, d] and float32[n]; `codes * scale` is the vector.

    The largest component becomes 127 or -127, so each vector uses the whole range. A vector of zeros has the scale 0.
    """
    most = np.abs(vectors).max(axis=1, initial=0.0)
    scales: FloatArray = (most / 127.0).astype(np.float32)
    safe = np.where(scales > 0.0, scales, 1.0)
    return np.rint(vectors / safe[:, None]).astype(np.int8), scales


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
    """The cosine of the query with each row (ascending): float64[len(rows)], NaN for rows without a vector."""
    found = np.full(len(rows), np.nan)
    for part in _with_vectors(view):
        first, last = np.searchsorted(rows, (part.first, part.first + len(part.scales)))
        if first < last:
            own = rows[first:last] - part.first
            found[first:last] = np.where(part.scales.take(own) > 0.0, _exact(part.floats, own, query), np.nan)
    return found


def _exact(floats: FloatArray, rows: RowArray, query: FloatArray) -> DoubleArray:
    """The product of each row with the query, -1.0 to 1.0."""
    own = floats if len(rows) == len(floats) else floats.take(rows, axis=0)
    products: DoubleArray = np.asarray(simsimd.cdist(query[None, :], own, "dot", out_dtype="float64")).reshape(-1)
    return products.clip(-1.0, 1.0)


class Nearest(NamedTuple):
    """The leg's answer: `rows`, best first; and everything that was measured for it, `measured` ascending."""

    rows: RowArray
    measured: RowArray
    cosines: DoubleArray

    def of(self, candidates: Candidates) -> DoubleArray:
        """The cosines of the candidates, all of which were measured."""
        found: DoubleArray = self.cosines[candidates.places.take(self.measured) > 0]
        return found


def pool(view: View, query: FloatArray, allowed: BoolArray | None, size: int) -> RowArray:
    """The rows of `nearest`."""
    return nearest(view, query, allowed, size).rows


def nearest(
    view: View, query: FloatArray, allowed: BoolArray | None, size: int, also: RowArray | None = None
) -> Nearest:
    """The `size` rows nearest to the query among those allowed (None: all are), best first, ties by passage id.

    Args:
        also: allowed rows whose cosines are wanted whether they are near or not.
    """
    rows = _few(view.space, allowed)
    if rows is None:
        rough = _rough(view, query)
        if allowed is not None:
            rough[~allowed] = -np.inf
        rows = at_least_the_best(rough, int(_MEASURED * size))
        rows = rows if also is None else union(rows, also)
    exact = cosines(view, query, rows)
    has = ~np.isnan(exact)
    return Nearest(best(view, rows[has], exact[has], size), rows, exact)


def _few(space: int, allowed: BoolArray | None) -> RowArray | None:
    """The rows, where so few are allowed, or there at all, that each is measured."""
    if allowed is None:
        return np.arange(space) if space <= _SMALL else None
    return np.flatnonzero(allowed) if np.count_nonzero(allowed) <= _FEW else None


def _rough(view: View, query: FloatArray) -> FloatArray:
    """About the cosine of every row; -inf for rows without a vector."""
    rough = np.full(view.space, -np.inf, dtype=np.float32)
    codes, scales = quantise(query[None, :])
    for part in _with_vectors(view):
        own = rough[part.first : part.first + len(part.scales)]
        if part.codes is None:
            own[:] = part.floats @ query
        else:
            np.multiply(_products(codes, part.codes), part.scales, out=own)
            own *= scales[0]
        own[part.scales == 0.0] = -np.inf
    return rough


def _with_vectors(view: View) -> list[VectorPart]:
    return [part for part in view.vectors if part.floats.size]


def _products(query: CodeArray, codes: CodeArray) -> FloatArray:
    """The products of whole numbers, exact up to 1,040 dimensions: float32[n]."""
    products: FloatArray = np.asarray(simsimd.cdist(query, codes, "dot", out_dtype="float32")).reshape(-1)
    return products
