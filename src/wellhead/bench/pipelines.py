"""The pipelines that an evaluation compares: how each is asked, and what it delivered for one query."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from wellhead.agent.fitting import tokens_at_most
from wellhead.bench.measures import unique
from wellhead.bench.substring import SubstringSearch
from wellhead.errors import BackendError
from wellhead.records import Hit, Hits, Outcome, Passage

if TYPE_CHECKING:
    from wellhead.index import Index

__all__ = [
    "BASELINE",
    "DEPTH",
    "HEAD",
    "PIPELINES",
    "Ask",
    "Look",
    "QueryDetail",
    "Ranked",
    "asker",
    "looker",
    "options_of",
]

DEPTH = 100
# Of so many documents at the head of a ranking the passages and their signals are kept.
HEAD = 10
# For so many of these it is told, when asked for, which words of the query they hold.
EXPLAINED = 3
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


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A document at the head of a ranking, and the passage that brought it there.

    Args:
        passage_id: of the document's best passage.
        score: what ordered the ranking; None for the baseline.
        signals: those that were measured, by name, as in `Signals`.
        terms: words of the query that the passage holds, the weightiest first, and after them those that it holds in
            another form only; None where nobody looked.
    """

    document_id: str
    passage_id: str
    score: float | None = None
    signals: Mapping[str, float] = {}
    terms: tuple[str, ...] | None = None


class QueryDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What one pipeline did with one query.

    Args:
        ranking: document ids, best first, each once, to rank 100 with the cut off.
        ms: wall time of that search in milliseconds.
        head: the first ten of the ranking with their passages.
        outcome: of the search with the default cut and k=10; None for the baseline, which has no cut.
        delivered: the document ids of that search, best first.
        tokens: of the passages of that search (the baseline: of its first ten), at most: an estimate that is the same
            for every embedder.
        degraded: why the search was worse than asked; "" when it was not.
        failed: why there was no search; "" when there was one.
    """

    ranking: tuple[str, ...]
    ms: float
    head: tuple[Ranked, ...] = ()
    outcome: Outcome | None = None
    delivered: tuple[str, ...] = ()
    tokens: int = 0
    degraded: str = ""
    failed: str = ""


Ask: TypeAlias = Callable[[str], QueryDetail]
# Told a query and a passage id: the words of the query that the passage holds, as in `Ranked.terms`.
Look: TypeAlias = Callable[[str, str], tuple[str, ...]]


def options_of(name: str) -> dict[str, str]:
    """The options that a pipeline gives to `Index.search`; none for the baseline."""
    return {option: str(value) for option, value in _OPTIONS.get(name, {}).items()}


def asker(name: str, index: Index, documents: Sequence[str], *, look: Look | None = None) -> Ask:
    """The function that asks one query of a pipeline.

    Args:
        documents: the ids in the order of the corpus, by which the baseline breaks its ties.
        look: tells which words of the query the first documents hold; None to leave that out.
    """
    if name == BASELINE:
        return _baseline([passage for document_id in documents for passage in index.passages(document_id)])
    ask = _search(index, _OPTIONS[name])
    return ask if look is None else _explained(ask, look)


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
        ranked = _ranked(deep)
        return QueryDetail(
            ranking=tuple(one.document_id for one in ranked),
            ms=ms,
            head=tuple(ranked[:HEAD]),
            outcome=usual.outcome,
            delivered=tuple(one.document_id for one in _ranked(usual)),
            tokens=_tokens(hit.text for hit in usual),
            degraded="; ".join(f"{part.leg}: {part.why}" for part in deep.degraded),
        )

    return ask


def _explained(ask: Ask, look: Look) -> Ask:
    """Asks as before, and then looks which words the first documents hold; the time of the search is not touched."""

    def ask_and_look(query: str) -> QueryDetail:
        detail = ask(query)
        head = [
            msgspec.structs.replace(one, terms=look(query, one.passage_id)) if place < EXPLAINED else one
            for place, one in enumerate(detail.head)
        ]
        return msgspec.structs.replace(detail, head=tuple(head))

    return ask_and_look


def looker(index: Index) -> Look:
    """Looks once for each query and passage, whatever pipelines ask: words are the same in all of them."""

    @functools.cache
    def look(query: str, passage_id: str) -> tuple[str, ...]:
        # The lexical leg alone has no need to embed the query again.
        explanation = index.explain(query, passage_id, mode="lexical")
        exact = [term.term for term in explanation.terms if term.field == "word" and term.passage_count]
        return tuple(unique([*exact, *explanation.stem_only]))

    return look


def _baseline(passages: Sequence[Passage]) -> Ask:
    baseline = SubstringSearch(passages)

    def ask(query: str) -> QueryDetail:
        began = time.perf_counter()
        # Within its own limit of ten passages there would be no R@100, and fewer than ten documents.
        found = baseline.search(query, limit=None)
        ms = _since(began)
        ranked = _each_once(Ranked(document_id=passage.document_id, passage_id=passage.id) for passage in found)
        return QueryDetail(
            ranking=tuple(one.document_id for one in ranked),
            ms=ms,
            head=tuple(ranked[:HEAD]),
            tokens=_tokens(passage.text for passage in found[:10]),
        )

    return ask


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


def _tokens(texts: Iterable[str]) -> int:
    return sum(tokens_at_most(text) for text in texts)


def _ranked(hits: Hits) -> list[Ranked]:
    """The documents of the hits. A hit stands for every document that holds its text, its own first."""
    return _each_once(one for hit in hits for one in _places(hit))


def _places(hit: Hit) -> Iterator[Ranked]:
    signals = {name: value for name, value in msgspec.structs.asdict(hit.signals).items() if value is not None}
    for document_id, passage_id in (
        (hit.passage.document_id, hit.passage.id),
        *((source.document_id, source.passage_id) for source in hit.also_in),
    ):
        yield Ranked(document_id=document_id, passage_id=passage_id, score=hit.score, signals=signals)


def _each_once(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Each document at its first place, to rank 100."""
    first: dict[str, Ranked] = {}
    for one in ranked:
        first.setdefault(one.document_id, one)
    return [*first.values()][:DEPTH]
