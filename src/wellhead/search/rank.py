"""Which passages can answer, in which order: two legs, a pool, one score.

gather    each leg ranks the allowed rows and gives its best 300; both signals are computed for every candidate
order     the fusion scores the candidates; ties go by passage id
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from wellhead.ports import View
from wellhead.records import Degraded, Signals, Terms
from wellhead.search import bm25, dense, fuse
from wellhead.search.filters import Condition, select
from wellhead.search.threshold import Cuts, Origin, is_rare, probability
from wellhead.search.top import Candidates, among_the_best, best, order, union

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, DoubleArray, FloatArray, RowArray

__all__ = ["POOL", "Ranking", "Request", "rank", "signals_at", "signals_of"]

# Three times the largest k, always, so that the order never depends on k.
POOL = 300


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A checked query, with everything that the arithmetic needs.

    Args:
        terms: the analysed query; stem_of: the stem of each exact word; identifiers: words spelled like names.
        vector: float32[d] of unit length; None when the dense leg is not asked for, or cannot be had.
        legs: which legs take part.
        k: 1 to 100. per_document: the most passages of one document. max_tokens: the most tokens of all texts.
        weight: of the lexical leg, 0 to 1, in `blend` and `convex`.
        thresholds: explicit cuts by signal; they replace the profile's and drop hits below.
        count_tokens: how many tokens a text has.
    """

    terms: Terms
    stem_of: Mapping[str, str]
    identifiers: tuple[str, ...]
    vector: FloatArray | None
    legs: Literal["hybrid", "lexical", "dense"]
    k: int
    fusion: str
    weight: float
    condition: Condition | None
    cuts: Cuts
    cut: Literal["query", "hit", "off"]
    thresholds: Mapping[str, float] | None
    per_document: int | None
    max_tokens: int | None
    count_tokens: Callable[[str], int]
    degraded: tuple[Degraded, ...] = ()

    def judged(self, passages: int) -> tuple[Mapping[str, float], Origin]:
        """The cuts that apply to a scope of so many passages, and where they come from."""
        if self.thresholds is not None:
            return self.thresholds, "user"
        return self.cuts.of(self.legs, passages), self.cuts.origin


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Every candidate of the pool in its final order, with what was measured for it. Arrays run along the order.

    Args:
        rows, scores: the order. bm25, coverage, cosine: signals, NaN where there is none.
        held: the share of the query's words that the row holds, 0 to 1 (`Lexical.held`).
        lexical_rank, dense_rank: from 1, NaN where the leg did not return the row.
        evidence: the best of each signal over all allowed rows; `rare` is 1.0 where `rare` below matched.
        rare: a word of the query that is spelled like a name, and that a rare passage holds exactly; or None.
        rare_rows: the allowed rows that hold it.
        admits: the live rows that pass the filter; None without one.
    """

    rows: RowArray
    scores: DoubleArray
    bm25: DoubleArray
    coverage: DoubleArray
    held: DoubleArray
    cosine: DoubleArray
    lexical_rank: DoubleArray
    dense_rank: DoubleArray
    evidence: Mapping[str, float]
    rare: str | None
    rare_rows: frozenset[int]
    admits: BoolArray | None


def rank(view: View, request: Request) -> Ranking:
    """Gather the candidates of both legs and put them in order."""
    admits = select(request.condition, view)
    allowed = view.live if admits is None else admits
    lexical = bm25.score(view, request.terms)
    by_words = _lexical_pool(view, lexical.scores, admits) if request.legs != "dense" else _nothing()
    near = None if request.vector is None else dense.nearest(view, request.vector, allowed, POOL, by_words)
    by_meaning = _nothing() if near is None else near.rows
    candidates = Candidates.of(union(by_words, by_meaning), view.space)
    rows = candidates.rows
    scores = lexical.scores[rows]
    coverage, held = lexical.coverage(rows), lexical.held(candidates)
    cosine = _unknown(rows) if near is None else near.of(candidates)
    lexical_rank, dense_rank = fuse.ranks_within(candidates, by_words), fuse.ranks_within(candidates, by_meaning)
    yardstick = fuse.yardstick(float(lexical.scores.max(initial=0.0)), lexical.most)
    fused = _fused(request, scores, yardstick, cosine, lexical_rank, dense_rank)
    places = order(view, rows, fused)
    rare, rare_rows = _rare_match(view, request, admits)
    return Ranking(
        rows=rows[places],
        scores=fused[places],
        bm25=scores[places],
        coverage=coverage[places],
        held=held[places],
        cosine=cosine[places],
        lexical_rank=lexical_rank[places],
        dense_rank=dense_rank[places],
        evidence=_evidence(request, len(view), {"coverage": coverage, "held": held}, cosine, rare),
        rare=rare,
        rare_rows=rare_rows,
        admits=admits,
    )


def _nothing() -> RowArray:
    return np.zeros(0, dtype=np.intp)


def _unknown(rows: RowArray) -> DoubleArray:
    return np.full(len(rows), np.nan)


def _lexical_pool(view: View, scores: DoubleArray, admits: BoolArray | None) -> RowArray:
    """The 300 best rows that hold a word of the query, best first, ties by passage id."""
    own = scores if admits is None else np.where(admits, scores, 0.0)
    rows = among_the_best(own, POOL, 0.0)
    return best(view, rows, scores[rows], POOL)


def _fused(
    request: Request,
    scores: DoubleArray,
    yardstick: float,
    cosine: DoubleArray,
    lexical_rank: DoubleArray,
    dense_rank: DoubleArray,
) -> DoubleArray:
    if request.legs == "dense":
        return cosine
    if request.legs == "lexical":
        return scores
    if request.fusion == "rrf":
        return fuse.rrf(lexical_rank, dense_rank)
    if request.fusion == "convex":
        return fuse.convex(scores, cosine, request.weight)
    return fuse.blend(scores, yardstick, cosine, request.weight)


def _evidence(
    request: Request, passages: int, of_words: Mapping[str, DoubleArray], cosine: DoubleArray, rare: str | None
) -> dict[str, float]:
    """The best of each signal over the candidates, and the probability of these."""
    evidence: dict[str, float] = {}
    if request.legs != "dense":
        evidence |= {name: float(signal.max(initial=0.0)) for name, signal in of_words.items()}
    if request.vector is not None and not math.isnan(nearest := float(np.fmax.reduce(cosine, initial=np.nan))):
        evidence["cosine"] = nearest
    words = len(request.terms.stems)
    fitted = probability(request.cuts, evidence.get("cosine"), evidence.get("held"), words, passages)
    if fitted is not None:
        evidence["probability"] = fitted
    if rare is not None:
        evidence["rare"] = 1.0
    return evidence


def _rare_match(view: View, request: Request, admits: BoolArray | None) -> tuple[str | None, frozenset[int]]:
    """A word of the query that is spelled like a name and that rare passages hold exactly; and those allowed."""
    for name in request.identifiers if request.legs != "dense" else ():
        posting = view.words.posting(name)
        if posting is None or not is_rare(len(posting.rows), len(view)):
            continue
        rows = posting.rows if admits is None else posting.rows[admits[posting.rows]]
        if len(rows):
            return name, frozenset(rows.tolist())
    return None, frozenset()


def signals_at(request: Request, passages: int, ranking: Ranking, places: Sequence[int]) -> list[Signals]:
    """What was measured for the candidates at these places of the order, in a scope of so many passages."""
    measured = (
        ranking.bm25,
        ranking.coverage,
        ranking.held,
        ranking.cosine,
        ranking.lexical_rank,
        ranking.dense_rank,
    )
    wanted = list(places)
    of_each = zip(*(column[wanted].tolist() for column in measured), strict=True)
    return [_signals(request, passages, *values) for values in of_each]


def signals_of(view: View, request: Request, row: int) -> Signals:
    """The same for a row that is no candidate: measured now, and without ranks."""
    lexical = bm25.score(view, request.terms)
    rows = np.array([row])
    cosine = _unknown(rows) if request.vector is None else dense.cosines(view, request.vector, rows)
    return _signals(
        request,
        len(view),
        float(lexical.scores[row]),
        float(lexical.coverage(rows)[0]),
        float(lexical.held(Candidates.of(rows, view.space))[0]),
        float(cosine[0]),
        math.nan,
        math.nan,
    )


def _signals(
    request: Request,
    passages: int,
    score: float,
    coverage: float,
    held: float,
    cosine: float,
    lexical_rank: float,
    dense_rank: float,
) -> Signals:
    """NaN: not measured, or no rank."""
    known = None if math.isnan(cosine) else cosine
    return Signals(
        bm25=score,
        coverage=coverage,
        cosine=known,
        probability=probability(request.cuts, known, held, len(request.terms.stems), passages),
        lexical_rank=None if math.isnan(lexical_rank) else int(lexical_rank),
        dense_rank=None if math.isnan(dense_rank) else int(dense_rank),
    )
