"""A query becomes hits: ranked (rank.py), judged (threshold.py), delivered.

decide    is anything close enough?
deliver   equal texts become one hit; the caps on documents and tokens are applied; k are kept
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from wellhead.ports import View
from wellhead.records import Coverage, Hit, Hits, Outcome, Passage, Signals, Source, Verdict
from wellhead.search.filters import unmet
from wellhead.search.rank import POOL, Ranking, Request, rank, signals_at
from wellhead.search.threshold import Origin, decide, verdict

__all__ = ["judge", "search", "with_vectors"]


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
        hint = unmet(request.condition, view.column, view.keys())
        why = f"the filters admit 0 of {len(view)} passages{f' ({hint})' if hint else ''}"
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
    """The hits; or no match, where a token budget left out all of them, or all that pass."""
    evidence = delivery.ranking.evidence
    most = delivery.request.max_tokens
    if most is None or any(hit.verdict == "pass" for hit in hits) or (hits and not delivery.has_passing()):
        return Hits(hits=hits, evidence=evidence)
    why = f"passages were found, but none that answers fits into max_tokens={most}"
    return Hits(outcome="no_match", why_empty=why, near_misses=hits, evidence=evidence)


def _no_candidate(request: Request) -> str:
    if request.legs == "lexical" and not request.terms.stems:
        return "the query has no word to look for (only stopwords or signs)"
    return "no passage holds a word of the query"


def _cut_per_hit(delivery: _Delivery, cuts: Mapping[str, float], origin: Origin) -> Hits:
    """What is below goes; with the caller's own threshold also what nothing vouches for, for lack of the signal."""
    kept_verdicts = ("pass",) if origin == "user" else ("pass", "unjudged")
    places = range(len(delivery.ranking.rows))
    kept = [place for place in places if delivery.verdict(place) in kept_verdicts]
    left = set(kept)
    below = [place for place in places if place not in left]
    evidence = delivery.ranking.evidence
    decision = decide(evidence, cuts, origin, delivery.ranking.rare if origin != "user" else None)
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


def judge(request: Request, passages: int, ranking: Ranking, row: int, signals: Signals) -> Verdict:
    """A row's verdict. A rare name that it holds exactly vouches for it, but not against the caller's own threshold."""
    if request.thresholds is None and row in ranking.rare_rows:
        return "pass"
    return verdict(signals, request.judged(passages)[0])


class _Delivery:
    """Turns places of a ranking into hits: one for equal texts, capped by document and tokens."""

    def __init__(self, view: View, request: Request, ranking: Ranking) -> None:
        self.view = view
        self.request = request
        self.ranking = ranking

    def verdict(self, place: int) -> Verdict:
        signals = signals_at(self.request, len(self.view), self.ranking, place)
        return judge(self.request, len(self.view), self.ranking, int(self.ranking.rows[place]), signals)

    def has_passing(self) -> bool:
        """Whether some candidate passes by itself, delivered or not."""
        return any(self.verdict(place) == "pass" for place in range(len(self.ranking.rows)))

    def take(self, places: Sequence[int]) -> tuple[Hit, ...]:
        """The hits at these places, best first, at most k."""
        chosen = self._chosen(places)
        passages = self.view.passages([int(self.ranking.rows[place]) for place in chosen])
        fitting = self._fitting(list(zip(chosen, passages, strict=True)))
        return tuple(self._hit(number, place, passage) for number, (place, passage) in enumerate(fitting, start=1))

    def _chosen(self, places: Sequence[int]) -> list[int]:
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
            signals=signals_at(self.request, len(self.view), self.ranking, place),
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
