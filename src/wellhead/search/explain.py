"""Why does a passage rank where it does, or why is it not returned? The search's own arithmetic, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from wellhead.ports import View
from wellhead.records import Explanation, Passage, Signals, Stage, TermMatch, Verdict
from wellhead.search import bm25
from wellhead.search.filters import failing
from wellhead.search.hybrid import judge, search
from wellhead.search.rank import POOL, Request, rank, signals_at, signals_of

__all__ = ["explain"]

_Lost: TypeAlias = tuple[Stage, str]


def _came_to(stage: Stage, reason: str) -> _Lost:
    return stage, reason


def explain(view: View, request: Request, query: str, rows: Sequence[int]) -> list[Explanation]:
    """The explanations of some rows of the view for one request."""
    told = _Told(view, request, query)
    return [told.of(row, passage) for row, passage in zip(rows, view.passages(rows), strict=True)]


class _Told:
    """One search, and what it did with any row."""

    def __init__(self, view: View, request: Request, query: str) -> None:
        self.view = view
        self.request = request
        self.query = query
        self.ranking = rank(view, request)
        self.hits = search(view, request)

    def of(self, row: int, passage: Passage) -> Explanation:
        place = self._place(row)
        signals = self._signals(row, place)
        verdict = judge(self.request, self.request.judged(len(self.view))[0], self.ranking, row, signals)
        terms = tuple(bm25.term_matches(self.view, self.request.terms, row))
        excluded = failing(self.request.condition, passage.metadata)
        hit = next((hit for hit in self.hits.hits if hit.id == passage.id), None)
        if hit is not None:
            stage, reason = _came_to("delivered", f"returned: rank {hit.rank} of {len(self.hits)}")
        elif excluded is not None:
            stage, reason = _came_to("filter", f"the filter leaves it out: {excluded}")
        elif place is None:
            stage, reason = self._not_in_a_pool(signals)
        else:
            stage, reason = self._lost(passage, place, verdict)
        return Explanation(
            query=self.query,
            passage=passage,
            rank=None if place is None else place + 1,
            returned=hit is not None,
            stage=stage,
            reason=reason,
            score=None if place is None else float(self.ranking.scores[place]),
            signals=signals,
            verdict=verdict,
            terms=terms,
            stem_only=_stem_only(terms, self.request.stem_of),
            filter=excluded,
            threshold=self.hits.threshold,
        )

    def _place(self, row: int) -> int | None:
        places = np.flatnonzero(self.ranking.rows == row)
        return int(places[0]) if len(places) else None

    def _signals(self, row: int, place: int | None) -> Signals:
        if place is None:
            return signals_of(self.view, self.request, row)
        return signals_at(self.request, len(self.view), self.ranking, [place])[0]

    def _not_in_a_pool(self, signals: Signals) -> _Lost:
        if self.request.legs == "dense":
            return "dense pool", f"it is not among the {POOL} nearest"
        if not signals.bm25:
            beside = "" if self.request.legs == "lexical" else f", nor is it among the {POOL} nearest"
            return "no terms", f"it holds no word of the query{beside}"
        return "lexical pool", f"it is in the pool of neither leg (each gives its best {POOL})"

    def _lost(self, passage: Passage, place: int, verdict: Verdict) -> _Lost:
        """Why a candidate is not among the hits."""
        request, hits = self.request, self.hits
        if any(source.passage_id == passage.id for hit in hits.hits for source in hit.also_in):
            return _came_to("delivered", "another passage of equal text is returned; this one stands in its also_in")
        if hits.outcome == "no_match":
            # Where it passes by itself, the query was refused for lack of room alone.
            stage: Stage = "token budget" if verdict == "pass" and request.max_tokens is not None else "cut"
            return stage, f"the whole query was answered no_match: {hits.why_empty}"
        if verdict == "below" and (request.cut == "hit" or request.thresholds is not None):
            return "cut", "it is below the cut per hit"
        if len(hits) == request.k and place >= self._last_place():
            return "fusion", f"rank {place + 1}, and k={request.k} are returned"
        most = request.per_document
        if most is not None and sum(hit.passage.document_id == passage.document_id for hit in hits.hits) >= most:
            return "per-document cap", f"per_document={most}, and so many of its document are returned"
        return "token budget", f"it does not fit into what is left of max_tokens={request.max_tokens}"

    def _last_place(self) -> int:
        """Of the last hit in the full order: whatever stands behind it is beyond k, whatever else holds."""
        last = self.view.row(self.hits[-1].id)
        return len(self.ranking.rows) if last is None else self._place(last) or 0


def _stem_only(terms: tuple[TermMatch, ...], stem_of: Mapping[str, str]) -> tuple[str, ...]:
    """Words of the query that the passage does not hold, but whose stem it does."""
    held = {(match.field, match.term) for match in terms if match.passage_count}
    return tuple(word for word, stem in stem_of.items() if ("word", word) not in held and ("stem", stem) in held)
