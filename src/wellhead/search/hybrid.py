"""A query becomes hits: ranked (rank.py), judged (threshold.py), delivered.

decide    is anything close enough?
deliver   equal texts become one hit; the caps on documents and tokens are applied; k are kept
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from wellhead.ports import View
from wellhead.records import Coverage, Hit, Hits, Outcome, Passage, Signals, Source, Verdict
from wellhead.search.filters import unmet
from wellhead.search.rank import POOL, Ranking, Request, rank, signals_at
from wellhead.search.threshold import Origin, decide, verdict

__all__ = ["judge", "search"]

# Candidates looked at together.
_AT_ONCE = 16


def search(view: View, request: Request) -> Hits:
    """The answer to one request over one view."""
    started = time.perf_counter()
    coverage = Coverage(passages=len(view), with_vectors=view.with_vectors)
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
    delivery = _Delivery(view, request, ranking, cuts)
    if not len(ranking.rows):
        return Hits(outcome="no_match", why_empty=_no_candidate(request), evidence=ranking.evidence)
    if request.cut == "off" and request.thresholds is None:
        return _found(delivery, delivery.take(range(len(ranking.rows))))
    if request.cut == "hit" or request.thresholds is not None:
        return _cut_per_hit(delivery, origin)
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


def _cut_per_hit(delivery: _Delivery, origin: Origin) -> Hits:
    """What is below goes; with the caller's own threshold also what nothing vouches for, for lack of the signal."""
    kept_verdicts = ("pass",) if origin == "user" else ("pass", "unjudged")
    verdicts = delivery.verdicts()
    kept = [place for place, said in enumerate(verdicts) if said in kept_verdicts]
    below = [place for place, said in enumerate(verdicts) if said not in kept_verdicts]
    evidence = delivery.ranking.evidence
    decision = decide(evidence, delivery.cuts, origin, delivery.ranking.rare if origin != "user" else None)
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


def judge(request: Request, cuts: Mapping[str, float], ranking: Ranking, row: int, signals: Signals) -> Verdict:
    """A row's verdict. A rare name that it holds exactly vouches for it, but not against the caller's own threshold."""
    if request.thresholds is None and row in ranking.rare_rows:
        return "pass"
    return verdict(signals, cuts)


class _Delivery:
    """Turns places of a ranking into hits: one for equal texts, capped by document and tokens."""

    def __init__(self, view: View, request: Request, ranking: Ranking, cuts: Mapping[str, float]) -> None:
        self.view = view
        self.request = request
        self.ranking = ranking
        self.cuts = cuts

    def verdicts(self) -> list[Verdict]:
        """Of all candidates, delivered or not."""
        return [said for _, _, said in self._judged(range(len(self.ranking.rows)))]

    def has_passing(self) -> bool:
        """Whether some candidate passes by itself, delivered or not."""
        return "pass" in self.verdicts()

    def _judged(self, places: Sequence[int]) -> list[tuple[float, Signals, Verdict]]:
        """For each of these places its score, what was measured, and the verdict."""
        wanted = list(places)
        rows, scores = self.ranking.rows[wanted].tolist(), self.ranking.scores[wanted].tolist()
        measured = signals_at(self.request, len(self.view), self.ranking, wanted)
        return [
            (score, signals, judge(self.request, self.cuts, self.ranking, row, signals))
            for row, score, signals in zip(rows, scores, measured, strict=True)
        ]

    def take(self, places: Sequence[int]) -> tuple[Hit, ...]:
        """The hits at these places, best first, at most k."""
        chosen = self._chosen(places)
        passages = self.view.passages([int(self.ranking.rows[place]) for place in chosen])
        fitting = self._fitting(list(zip(chosen, passages, strict=True)))
        kept = [place for place, _ in fitting]
        found = zip(fitting, self._judged(kept), self._also_in(kept), strict=True)
        return tuple(
            Hit(rank=number, score=score, passage=passage, signals=signals, verdict=said, also_in=also_in)
            for number, ((_, passage), (score, signals, said), also_in) in enumerate(found, start=1)
        )

    def _chosen(self, places: Sequence[int]) -> list[int]:
        # With a token budget what does not fit is skipped, so more than k may have to be looked at.
        most = self.request.k if self.request.max_tokens is None else POOL
        seen: set[bytes] = set()
        by_document: Counter[int] = Counter()
        chosen: list[int] = []
        for first in range(0, len(places), _AT_ONCE):
            some = places[first : first + _AT_ONCE]
            rows = self.ranking.rows[list(some)]
            for place, content, document in zip(some, self.view.contents(rows), self.view.documents(rows), strict=True):
                if content in seen or by_document[document] == self.request.per_document:
                    continue
                seen.add(content)
                by_document[document] += 1
                chosen.append(place)
                if len(chosen) == most:
                    return chosen
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

    def _also_in(self, places: Sequence[int]) -> list[tuple[Source, ...]]:
        """For each place where else its text stands, as far as the filter admits it."""
        admits, rows = self.ranking.admits, self.ranking.rows[list(places)]
        others = [
            [other for other in same if other != row and (admits is None or admits[other])]
            for row, same in zip(rows.tolist(), self.view.same_texts(rows), strict=True)
        ]
        return [tuple(map(_source, self.view.passages(some))) if some else () for some in others]


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
