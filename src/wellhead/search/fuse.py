"""Fusion: one score from two legs. Pure arithmetic over the candidates of either leg.

`blend`   weight * BM25 / yardstick + (1 - weight) * cosine. The yardstick is the best BM25 of the query in scope, or
          0.3 of the most that the query could score where even the best is less: then the words alone say little, and
          the meaning decides. Needs no minimum of the query, so a score means the same from one query to the next.
`rrf`     reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009): the sum of 1 / (60 + rank); reads ranks only; a
          leg that did not return a passage adds nothing.
`convex`  weight * BM25 + (1 - weight) * cosine, each scaled to 0..1 over the candidates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from wellhead.ports import DoubleArray, RowArray
    from wellhead.search.top import Candidates

__all__ = ["RRF_K", "TRUSTED", "blend", "convex", "ranks_within", "rrf", "yardstick"]

RRF_K = 60
# The coverage from which on the best lexical match is taken at its word.
TRUSTED = 0.3


def blend(bm25: DoubleArray, yardstick: float, cosine: DoubleArray, weight: float) -> DoubleArray:
    """As above; a yardstick of 0.0 (the query has no word) leaves the cosine. A NaN cosine (no vector) adds nothing."""
    lexical = bm25 / yardstick if yardstick > 0.0 else np.zeros_like(bm25)
    fused: DoubleArray = weight * lexical + (1.0 - weight) * np.where(np.isnan(cosine), 0.0, cosine)
    return fused


def yardstick(best: float, most: float) -> float:
    """What `blend` measures BM25 by: `best` of the query in scope, `most` that it could score."""
    return max(best, TRUSTED * most)


def convex(bm25: DoubleArray, cosine: DoubleArray, weight: float) -> DoubleArray:
    """As above. A signal that is the same for every candidate adds nothing."""
    return weight * _scaled(bm25) + (1.0 - weight) * _scaled(cosine)


def _scaled(signal: DoubleArray) -> DoubleArray:
    known = signal[~np.isnan(signal)]
    if not len(known) or known.max() == known.min():
        return np.zeros_like(signal)
    scaled: DoubleArray = np.nan_to_num((signal - known.min()) / (known.max() - known.min()), nan=0.0)
    return scaled


def rrf(*ranks: DoubleArray) -> DoubleArray:
    """As above; `ranks` per leg: from 1, NaN where the leg did not return the candidate."""
    total = np.zeros_like(ranks[0])
    for leg in ranks:
        total += np.nan_to_num(1.0 / (RRF_K + leg), nan=0.0)
    return total


def ranks_within(candidates: Candidates, ranked: RowArray) -> DoubleArray:
    """The rank (from 1) of each candidate in a leg's list, NaN where it is not there.

    Args:
        ranked: best first; all of them are candidates.
    """
    ranks = np.full(len(candidates.rows) + 1, np.nan)
    ranks[candidates.places.take(ranked)] = np.arange(1, len(ranked) + 1)
    return ranks[1:]
