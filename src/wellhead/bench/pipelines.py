"""The pipelines that an evaluation compares: how each is asked, and what it delivered for one query."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from wellhead.bench.measures import unique
from wellhead.bench.substring import SubstringSearch
from wellhead.errors import BackendError
from wellhead.records import Hits, Outcome, Passage

if TYPE_CHECKING:
    from wellhead.index import Index

__all__ = ["BASELINE", "DEPTH", "PIPELINES", "Ask", "QueryDetail", "asker"]

DEPTH = 100
BASELINE = "substring"

# How `Index.search` is asked for each pipeline. The baseline is not among them: no index can run it.
_OPTIONS: dict[str, dict[str, Any]] = {
    "bm25": {"mode": "lexical"},
    "dense": {"mode": "dense"},
    "blend": {"mode": "hybrid", "fusion": "blend"},
    "rrf": {"mode": "hybrid", "fusion": "rrf"},
    "convex": {"mode": "hybrid", "fusion": "convex"},
}
PIPELINES = (BASELINE, *_OPTIONS)


class QueryDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What one pipeline did with one query.

    Args:
        ranking: document ids, best first, each once, to rank 100 with the cut off.
        ms: wall time of that search in milliseconds.
        outcome: of the search with the default cut and k=10; None for the baseline, which has no cut.
        delivered: the document ids of that search, best first.
        degraded: why the search was worse than asked; "" when it was not.
        failed: why there was no search; "" when there was one.
    """

    ranking: tuple[str, ...]
    ms: float
    outcome: Outcome | None = None
    delivered: tuple[str, ...] = ()
    degraded: str = ""
    failed: str = ""


Ask: TypeAlias = Callable[[str], QueryDetail]


def asker(name: str, index: Index, documents: Sequence[str]) -> Ask:
    """The function that asks one query of a pipeline.

    Args:
        documents: the ids in the order of the corpus, by which the baseline breaks its ties.
    """
    if name == BASELINE:
        return _baseline([passage for document_id in documents for passage in index.passages(document_id)])
    return _search(index, _OPTIONS[name])


def _search(index: Index, options: dict[str, Any]) -> Ask:
    def ask(query: str) -> QueryDetail:
        began = time.perf_counter()
        try:
            deep = index.search(query, k=DEPTH, per_document=1, cut="off", **options)
        except BackendError as error:
            # One query that cannot be embedded must not end an evaluation; it counts 0 and is told.
            return QueryDetail(ranking=(), ms=_since(began), failed=f"{error.what}: {error.why}")
        ms = _since(began)
        usual = index.search(query, **options)
        return QueryDetail(
            ranking=_documents(deep),
            ms=ms,
            outcome=usual.outcome,
            delivered=_documents(usual),
            degraded="; ".join(f"{part.leg}: {part.why}" for part in deep.degraded),
        )

    return ask


def _baseline(passages: Sequence[Passage]) -> Ask:
    baseline = SubstringSearch(passages)

    def ask(query: str) -> QueryDetail:
        began = time.perf_counter()
        # Within its own limit of ten passages there would be no R@100, and fewer than ten documents.
        found = baseline.search(query, limit=None)
        ms = _since(began)
        return QueryDetail(ranking=tuple(unique([passage.document_id for passage in found])[:DEPTH]), ms=ms)

    return ask


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


def _documents(hits: Hits) -> tuple[str, ...]:
    """The documents of the hits. A hit stands for every document that holds its text, its own first."""
    ids = [
        document_id
        for hit in hits
        for document_id in (hit.passage.document_id, *(source.document_id for source in hit.also_in))
    ]
    return tuple(unique(ids)[:DEPTH])
