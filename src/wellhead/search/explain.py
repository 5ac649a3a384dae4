"""Why does this passage rank where it does, or why is it not returned? The search's own arithmetic, for one row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wellhead.ports import View
from wellhead.records import Explanation, Hits, Passage, TermMatch
from wellhead.search import bm25
from wellhead.search.filters import failing
from wellhead.search.hybrid import judge, search
from wellhead.search.rank import POOL, Request, rank, signals_at, signals_of

__all__ = ["explain"]


def explain(view: View, request: Request, query: str, row: int) -> Explanation:
    """The explanation of one row of the view for a request."""
    passage = view.passages([row])[0]
    ranking = rank(view, request)
    hits = search(view, request)
    places = np.flatnonzero(ranking.rows == row)
    place = int(places[0]) if len(places) else None
    signals = signals_of(view, request, row) if place is None else signals_at(request, len(view), ranking, [place])[0]
    terms = tuple(bm25.term_matches(view, request.terms, row))
    excluded = failing(request.condition, passage.metadata)
    hit = next((hit for hit in hits.hits if hit.id == passage.id), None)
    said = judge(request, request.judged(len(view))[0], ranking, row, signals)
    return Explanation(
        query=query,
        passage=passage,
        rank=None if place is None else place + 1,
        returned=hit is not None,
        reason=(
            f"returned: rank {hit.rank} of {len(hits)}"
            if hit
            else _reason(request, hits, passage, place, excluded, said == "below")
        ),
        score=None if place is None else float(ranking.scores[place]),
        signals=signals,
        verdict=said,
        terms=terms,
        stem_only=_stem_only(terms, request.stem_of),
        filter=excluded,
        threshold=hits.threshold,
    )


def _reason(
    request: Request, hits: Hits, passage: Passage, place: int | None, excluded: str | None, below: bool
) -> str:
    """Why a passage is not among the hits."""
    if excluded is not None:
        return f"the filter leaves it out: {excluded}"
    if place is None:
        return f"it is in the pool of neither leg (each gives its best {POOL}), or holds no word of the query"
    if any(source.passage_id == passage.id for hit in hits.hits for source in hit.also_in):
        return "another passage of equal text is returned; this one stands in its also_in"
    if hits.outcome == "no_match":
        return f"the whole query was answered no_match: {hits.why_empty}"
    if below and (request.cut == "hit" or request.thresholds is not None):
        return "it is below the cut per hit"
    if len(hits) == request.k:
        return f"rank {place + 1}, and k={request.k} are returned"
    return "a cap left it out: per_document or max_tokens"


def _stem_only(terms: tuple[TermMatch, ...], stem_of: Mapping[str, str]) -> tuple[str, ...]:
    """Words of the query that the passage does not hold, but whose stem it does."""
    held = {(match.field, match.term) for match in terms if match.passage_count}
    return tuple(word for word, stem in stem_of.items() if ("word", word) not in held and ("stem", stem) in held)
