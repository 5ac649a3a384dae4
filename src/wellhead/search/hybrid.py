"""A query becomes hits: two legs, a pool, one score, two decisions, k passages.

gather    each leg ranks the allowed rows and gives its best 300; both signals are computed for every candidate
order     the fusion scores the candidates; ties go by passage id
decide    is anything close enough? (threshold.py)
deliver   equal texts become one hit; the caps on documents and tokens are applied; k are kept
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from wellhead.ports import View
from wellhead.records import (
    Coverage,
    Degraded,
    Hit,
    Hits,
    Outcome,
    Passage,
    Signals,
    Source,
    Terms,
)
from wellhead.search import bm25, dense, fuse
from wellhead.search.filters import Condition, select
from wellhead.search.threshold import Cuts, Origin, decide, is_rare, probability, verdict

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, DoubleArray, FloatArray, RowArray

__all__ = ["POOL", "Ranking", "Request", "rank", "search", "with_vectors"]

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
    vector: object | None
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
        lexical_rank, dense_rank: from 1, NaN where the leg did not return the row.
        evidence: the best of each signal over all allowed rows; `rare` (1.0) where `rare` below matched.
        rare: a word of the query that is spelled like a name, and that a rare passage holds exactly; or None.
        allowed: how many rows passed the filter, or None without one.
    """

    rows: RowArray
    scores: DoubleArray
    bm25: DoubleArray
    coverage: DoubleArray
    cosine: DoubleArray
    lexical_rank: DoubleArray
    dense_rank: DoubleArray
    evidence: Mapping[str, float]
    rare: str | None
    admits: BoolArray | None


def rank(view: View, request: Request) -> Ranking:
    """Gather the candidates of both legs and put them in order."""
    admits = select(request.condition, view.column, len(view))
    lexical = bm25.score(view, request.terms)
    vector: FloatArray | None = request.vector  # type: ignore[assignment]
    by_words = _lexical_pool(lexical.scores, admits) if request.legs != "dense" else _nothing()
    by_meaning = dense.pool(view, vector, admits, POOL) if vector is not None else _nothing()
    rows = np.union1d(by_words, by_meaning)
    scores = lexical.scores[rows]
    coverage = scores / lexical.most if lexical.most > 0.0 else np.zeros_like(scores)
    cosine = dense.cosines(view, vector, rows) if vector is not None else np.full(len(rows), np.nan)
    lexical_rank, dense_rank = fuse.ranks_within(rows, by_words), fuse.ranks_within(rows, by_meaning)
    yardstick = fuse.yardstick(float(lexical.scores.max(initial=0.0)), lexical.most)
    fused = _fused(request, scores, yardstick, cosine, lexical_rank, dense_rank)
    order = np.lexsort((rows, -fused))
    rare = _rare_match(view, request, admits)
    return Ranking(
        rows=rows[order],
        scores=fused[order],
        bm25=scores[order],
        coverage=coverage[order],
        cosine=cosine[order],
        lexical_rank=lexical_rank[order],
        dense_rank=dense_rank[order],
        evidence=_evidence(request, len(view), coverage, cosine, rare),
        rare=rare,
        admits=admits,
    )


def _nothing() -> RowArray:
    return np.zeros(0, dtype=np.intp)


def _lexical_pool(scores: DoubleArray, admits: BoolArray | None) -> RowArray:
    """The 300 best rows that hold a word of the query, best first, ties by row."""
    rows = np.flatnonzero(scores > 0.0 if admits is None else (scores > 0.0) & admits)
    if len(rows) > POOL:
        bound = np.partition(scores[rows], len(rows) - POOL)[len(rows) - POOL]
        rows = rows[scores[rows] >= bound]
    ranked: RowArray = rows[np.lexsort((rows, -scores[rows]))][:POOL]
    return ranked


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
    request: Request, passages: int, coverage: DoubleArray, cosine: DoubleArray, rare: str | None
) -> dict[str, float]:
    evidence: dict[str, float] = {}
    if request.legs != "dense":
        evidence["coverage"] = float(coverage.max(initial=0.0))
    if request.vector is not None and not np.isnan(cosine).all():
        evidence["cosine"] = float(np.nanmax(cosine))
    words = len(request.terms.stems)
    fitted = probability(request.cuts, evidence.get("cosine"), evidence.get("coverage"), words, passages)
    if fitted is not None:
        evidence["probability"] = fitted
    if rare is not None:
        evidence["rare"] = 1.0
    return evidence


def with_vectors(view: View) -> int:
    """How many passages the dense leg sees."""
    return int((view.vectors.of >= 0).sum()) if len(view) else 0


def search(view: View, request: Request) -> Hits:
    """The answer to one request over one view."""
    started = time.perf_counter()
    coverage = Coverage(passages=len(view), with_vectors=with_vectors(view))
    if not len(view):
        return _empty(view, request, coverage, "empty_index", "nothing is indexed here yet")
    ranking = rank(view, request)
    ranked = time.perf_counter()
    if ranking.admits is not None and not ranking.admits.any():
        why = f"the filters admit 0 of {len(view)} passages"
        return _empty(view, request, coverage, "filtered_out", why)
    hits = _decided(view, request, ranking)
    finished = time.perf_counter()
    return msgspec.structs.replace(
        hits,
        coverage=coverage,
        degraded=request.degraded,
        index_version=view.version,
        timings={"rank": (ranked - started) * 1e3, "deliver": (finished - ranked) * 1e3},
    )


def _empty(view: View, request: Request, coverage: Coverage, outcome: Outcome, why: str) -> Hits:
    return Hits(
        outcome=outcome, why_empty=why, coverage=coverage, degraded=request.degraded, index_version=view.version
    )


def _decided(view: View, request: Request, ranking: Ranking) -> Hits:
    cuts, origin = request.judged(len(view))
    delivery = _Delivery(view, request, ranking)
    if not len(ranking.rows):
        return Hits(outcome="no_match", why_empty=_no_candidate(request), evidence=ranking.evidence)
    if request.cut == "off" and request.thresholds is None:
        return _found(delivery, delivery.take(range(len(ranking.rows))))
    if request.cut == "hit" or request.thresholds is not None:
        return _cut_per_hit(delivery, cuts, origin)
    decision = decide(ranking.evidence, cuts, origin, ranking.rare)
    found = delivery.take(range(len(ranking.rows)))
    if decision.answered:
        return msgspec.structs.replace(_found(delivery, found), threshold=decision.threshold)
    return Hits(
        outcome="no_match",
        why_empty=decision.reason,
        near_misses=found,
        threshold=decision.threshold,
        evidence=ranking.evidence,
    )


def _found(delivery: _Delivery, hits: tuple[Hit, ...]) -> Hits:
    evidence = delivery.ranking.evidence
    if hits:
        return Hits(hits=hits, evidence=evidence)
    why = f"passages were found, but none fits into max_tokens={delivery.request.max_tokens}"
    return Hits(outcome="no_match", why_empty=why, evidence=evidence)


def _no_candidate(request: Request) -> str:
    if request.legs == "lexical" and not request.terms.stems:
        return "the query has no word to look for (only stopwords or signs)"
    return "no passage holds a word of the query"


def _cut_per_hit(delivery: _Delivery, cuts: Mapping[str, float], origin: Origin) -> Hits:
    verdicts = [delivery.verdict(place) for place in range(len(delivery.ranking.rows))]
    kept = [place for place, said in enumerate(verdicts) if said != "below"]
    below = [place for place, said in enumerate(verdicts) if said == "below"]
    evidence = delivery.ranking.evidence
    decision = decide(evidence, cuts, origin, None)
    if kept:
        hits = _found(delivery, delivery.take(kept))
        return msgspec.structs.replace(hits, near_misses=delivery.take(below), threshold=decision.threshold)
    return Hits(
        outcome="no_match",
        why_empty=decision.reason,
        near_misses=delivery.take(below),
        threshold=decision.threshold,
        evidence=evidence,
    )


def _rare_match(view: View, request: Request, admits: BoolArray | None) -> str | None:
    """A word of the query that is spelled like a name and that a rare passage among those allowed holds exactly."""
    if request.legs == "dense":
        return None
    for name in request.identifiers:
        posting = view.words.posting(name)
        if posting is None or not is_rare(len(posting.rows), len(view)):
            continue
        if admits is None or admits[posting.rows].any():
            return name
    return None


class _Delivery:
    """Turns places of a ranking into hits: one for equal texts, capped by document and tokens."""

    def __init__(self, view: View, request: Request, ranking: Ranking) -> None:
        self.view = view
        self.request = request
        self.ranking = ranking
        self._cuts = request.judged(len(view))[0]

    def signals(self, place: int) -> Signals:
        ranking = self.ranking
        coverage = _known(ranking.coverage[place]) if self.request.legs != "dense" else None
        cosine = _known(ranking.cosine[place])
        return Signals(
            bm25=_known(ranking.bm25[place]),
            coverage=coverage,
            cosine=cosine,
            probability=probability(self.request.cuts, cosine, coverage, len(self.request.terms.stems), len(self.view)),
            lexical_rank=_rank(ranking.lexical_rank[place]),
            dense_rank=_rank(ranking.dense_rank[place]),
        )

    def verdict(self, place: int) -> Literal["pass", "below", "unjudged"]:
        return verdict(self.signals(place), self._cuts)

    def take(self, places: range | list[int]) -> tuple[Hit, ...]:
        """The hits at these places, best first, at most k."""
        chosen = self._chosen(places)
        passages = self.view.passages([int(self.ranking.rows[place]) for place in chosen])
        fitting = self._fitting(list(zip(chosen, passages, strict=True)))
        return tuple(self._hit(number, place, passage) for number, (place, passage) in enumerate(fitting, start=1))

    def _chosen(self, places: range | list[int]) -> list[int]:
        # With a token budget what does not fit is skipped, so more than k may have to be looked at.
        most = self.request.k if self.request.max_tokens is None else POOL
        rows, view = self.ranking.rows, self.view
        seen: set[int] = set()
        by_document: dict[int, int] = {}
        chosen: list[int] = []
        for place in places:
            content, document = int(view.contents[rows[place]]), int(view.documents[rows[place]])
            if content in seen or by_document.get(document, 0) == self.request.per_document:
                continue
            seen.add(content)
            by_document[document] = by_document.get(document, 0) + 1
            chosen.append(place)
            if len(chosen) == most:
                break
        return chosen

    def _fitting(self, found: list[tuple[int, Passage]]) -> list[tuple[int, Passage]]:
        if self.request.max_tokens is None:
            return found
        left = self.request.max_tokens
        kept: list[tuple[int, Passage]] = []
        for place, passage in found:
            size = self.request.count_tokens(passage.text)
            if size <= left and len(kept) < self.request.k:
                left -= size
                kept.append((place, passage))
        return kept

    def _hit(self, number: int, place: int, passage: Passage) -> Hit:
        return Hit(
            rank=number,
            score=float(self.ranking.scores[place]),
            passage=passage,
            signals=self.signals(place),
            verdict=self.verdict(place),
            also_in=self._also_in(int(self.ranking.rows[place])),
        )

    def _also_in(self, row: int) -> tuple[Source, ...]:
        same = self.view.contents == self.view.contents[row]
        if self.ranking.admits is not None:
            same &= self.ranking.admits
        others = [int(other) for other in np.flatnonzero(same) if other != row]
        return tuple(_source(passage) for passage in self.view.passages(others)) if others else ()


def _source(passage: Passage) -> Source:
    return Source(
        passage_id=passage.id,
        document_id=passage.document_id,
        uri=passage.uri,
        title=passage.title,
        heading=passage.heading,
        page=passage.page,
        metadata=passage.metadata,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _rank(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
