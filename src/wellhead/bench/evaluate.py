"""Search a collection with every pipeline and measure what was delivered.

A document is judged by its best passage (`per_document=1`), a ranking is taken to rank 100 with the cut off, and
beside it every query is asked once more as an agent asks (`k=10`, the default cut), to see what the cut refuses.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from wellhead.bench.collection import LABEL_FILES, Collection
from wellhead.bench.measures import measure_run
from wellhead.bench.pipelines import BASELINE, PIPELINES, Ask, QueryDetail, asker, looker
from wellhead.bench.questions import Question, Tags, questions_of
from wellhead.bench.significance import Interval, bootstrap, paired
from wellhead.errors import BackendError, UsageError
from wellhead.index import Index
from wellhead.records import Outcome

if TYPE_CHECKING:
    from wellhead.ports import Embedder

__all__ = [
    "MAIN_MEASURE",
    "MEASURES",
    "NOTHING",
    "Evaluation",
    "PipelineScores",
    "Progress",
    "evaluate",
    "fill",
    "main_pipeline",
    "percentile",
]

MEASURES = ("nDCG@10", "R@10", "R@100", "RR@10")
MAIN_MEASURE = "nDCG@10"
NOTHING = "nothing_relevant@10"

# What each stage is made of, or is meant to be better than. The fusion that searches use by default is blamed when one
# part beats it; any other stage when all of its parts do.
_MADE_OF = {
    "bm25": (BASELINE,),
    "dense": (BASELINE,),
    "blend": ("bm25", "dense"),
    "rrf": ("bm25", "dense"),
    "convex": ("bm25", "dense"),
}
_DEFAULT = "blend"

# Told (what is going on, done, total): "index", then each pipeline.
Progress: TypeAlias = Callable[[str, int, int], None]


class PipelineScores(msgspec.Struct, frozen=True, kw_only=True):
    """One pipeline over the labelled queries.

    Args:
        measures: mean by name, each 0 to 1.
        interval: of the mean of nDCG@10, by bootstrap over the queries.
        per_query: value by measure and by labelled query; `nothing_relevant@10` is 1.0 or 0.0.
        nothing_relevant: queries without a relevant document in the first ten.
        returned_nothing: queries with an empty ranking; they count 0 in every mean.
        p50_ms, p95_ms: wall time of a search to rank 100, in milliseconds.
        tokens: of the passages that one search delivers, the median over all queries (see `QueryDetail`).
        no_match: labelled queries that the default cut answers with `no_match`; None for the baseline.
        unanswerable_with_hits: unanswerable queries that get hits with the default cut; None for the baseline and
            for a collection without such queries.
        details: by query id, unanswerable queries included.
    """

    name: str
    measures: Mapping[str, float]
    interval: Interval
    per_query: Mapping[str, Mapping[str, float]]
    nothing_relevant: tuple[str, ...]
    returned_nothing: tuple[str, ...]
    p50_ms: float
    p95_ms: float
    tokens: int
    no_match: int | None
    unanswerable_with_hits: int | None
    details: Mapping[str, QueryDetail]


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A collection measured.

    Args:
        documents, passages: as indexed. queries: the labelled ones; all means are over them.
        unlabelled: queries without a label, left out of the means.
        unanswerable: how many queries no document answers; left out of the means.
        embedder: its name, as the index has it. fingerprint: what the stored numbers depend on, by name.
        index_version: of the index that was searched.
        questions: what was asked, the labelled queries first.
        warnings: what the reader of the table must know.
    """

    collection: str
    documents: int
    passages: int
    queries: int
    unlabelled: tuple[str, ...]
    unanswerable: int
    embedder: str
    fingerprint: Mapping[str, str]
    index_version: int
    questions: tuple[Question, ...]
    pipelines: tuple[PipelineScores, ...]
    warnings: tuple[str, ...]


def evaluate(
    collection: Collection,
    *,
    embedder: str | Embedder | None = None,
    index: Index | None = None,
    pipelines: Sequence[str] = PIPELINES,
    tags: Tags = MappingProxyType({}),
    terms: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Index the collection in memory (or use `index`, which must hold it) and measure the pipelines over it.

    Args:
        embedder: as in `Index.open`; None for its default.
        pipelines: of `PIPELINES`, in the order of the rows.
        tags: of the queries, by id.
        terms: whether to look which words of the query the first documents hold, as a saved run shows them.
        progress: called as `progress(stage, done, total)`; the stages are "index" and the pipelines.

    Raises:
        UsageError: an unknown pipeline, both `embedder` and `index`, or a labelled document that is not indexed.
        BackendError: a pipeline that could not answer a single query.
    """
    _check(pipelines, embedder, index)
    tell = progress if progress is not None else _silent
    if index is not None:
        return _measure(collection, index, _Plan(pipelines, tags, terms, ()), tell)
    with Index.open(":memory:", embedder=embedder) as built:
        notes = fill(built, collection, tell)
        return _measure(collection, built, _Plan(pipelines, tags, terms, notes), tell)


def _check(pipelines: Sequence[str], embedder: object, index: object) -> None:
    unknown = [name for name in pipelines if name not in PIPELINES]
    if unknown or not pipelines:
        raise UsageError(
            f"no pipeline is named {unknown[0]!r}" if unknown else "no pipeline was named",
            fix=f"choose from {', '.join(PIPELINES)}",
        )
    if embedder is not None and index is not None:
        raise UsageError("an index has its embedder already", fix="give either embedder= or index=")


def _silent(_stage: str, _done: int, _total: int) -> None:
    """Nobody listens."""


def fill(index: Index, collection: Collection, tell: Progress) -> list[str]:
    """Index the documents; what could not be taken, as warnings."""

    def progress(done: int, total: int, _document_id: str) -> None:
        tell("index", done, max(total, len(collection.documents)))

    if collection.folder is None:
        report = index.add(collection.documents, progress=progress)
    else:
        report = index.sync(collection.folder, exclude=LABEL_FILES, progress=progress)
    return [f"not indexed: {item.id}: {item.reason}" for item in (*report.refused, *report.failed)]


class _Plan(NamedTuple):
    """What is measured, and what was to be said before that."""

    pipelines: Sequence[str]
    tags: Tags
    terms: bool
    warnings: Sequence[str]


def _measure(collection: Collection, index: Index, plan: _Plan, tell: Progress) -> Evaluation:
    ids = _indexed_ids(collection, index)
    look = looker(index) if plan.terms else None
    rows = []
    for name in plan.pipelines:
        ask = asker(name, index, ids, look=look)
        details = _ask_all(ask, collection, functools.partial(tell, name))
        rows.append(_scores(name, details, collection, frozenset(ids)))
    stats = index.stats()
    return Evaluation(
        collection=collection.name,
        documents=stats.documents,
        passages=stats.passages,
        queries=len(collection.qrels),
        unlabelled=collection.unlabelled,
        unanswerable=len(collection.unanswerable),
        embedder=stats.fingerprint.get("embedder", ""),
        fingerprint=stats.fingerprint,
        index_version=stats.index_version,
        questions=questions_of(collection, plan.tags),
        pipelines=tuple(rows),
        warnings=(*plan.warnings, *_collection_warnings(collection), *_pipeline_warnings(rows)),
    )


def _indexed_ids(collection: Collection, index: Index) -> list[str]:
    """The ids that the index holds, in the order of the corpus (of their paths, when they are files)."""
    held = {document.id for document in index.documents()}
    missing = sorted({one for grades in collection.qrels.values() for one in grades} - held)
    if missing:
        raise UsageError(
            f"{len(missing)} labelled documents are not in the index, first {missing[0]!r}",
            where=collection.name,
            why="they could never be found, and every measure would count them as missed",
            fix="give the index that holds this collection, or mend the documents that could not be read",
        )
    given = [document.id for document in collection.documents if document.id in held]
    return [*given, *sorted(held.difference(given))]


def _ask_all(ask: Ask, collection: Collection, tell: Callable[[int, int], None]) -> dict[str, QueryDetail]:
    """Ask the labelled and the unanswerable queries; the first is asked twice, so that none pays for loading."""
    queries = [*collection.qrels, *sorted(collection.unanswerable)]
    ask(collection.queries[queries[0]])
    details = {}
    for done, query_id in enumerate(queries, start=1):
        details[query_id] = ask(collection.queries[query_id])
        tell(done, len(queries))
    return details


def _scores(
    name: str, details: Mapping[str, QueryDetail], collection: Collection, ids: frozenset[str]
) -> PipelineScores:
    if all(detail.failed for detail in details.values()):
        raise BackendError(f"{name} could not answer a single query", why=next(iter(details.values())).failed)
    run = {query_id: details[query_id].ranking for query_id in collection.qrels}
    scores = measure_run(collection.qrels, run, [*MEASURES, NOTHING], documents=ids)
    times = sorted(detail.ms for detail in details.values())
    counts = name != BASELINE
    return PipelineScores(
        name=name,
        measures={measure: scores.values[measure] for measure in MEASURES},
        interval=bootstrap([*scores.per_query[MAIN_MEASURE].values()]),
        per_query=scores.per_query,
        nothing_relevant=tuple(query_id for query_id, value in scores.per_query[NOTHING].items() if value),
        returned_nothing=scores.returned_nothing,
        p50_ms=percentile(times, 50),
        p95_ms=percentile(times, 95),
        tokens=int(percentile(sorted(detail.tokens for detail in details.values()), 50)),
        no_match=_count(details, collection.qrels, "no_match") if counts else None,
        unanswerable_with_hits=(
            _count(details, collection.unanswerable, "hits") if counts and collection.unanswerable else None
        ),
        details=details,
    )


def _count(details: Mapping[str, QueryDetail], queries: Iterable[str], outcome: Outcome) -> int:
    return sum(details[query_id].outcome == outcome for query_id in queries)


def main_pipeline(rows: Sequence[PipelineScores]) -> PipelineScores:
    """The one that searches use by default, or else the last."""
    return next((row for row in rows if row.name == _DEFAULT), rows[-1])


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The nearest rank: the smallest value that at least `percent` % of the values do not exceed."""
    return ascending[max(math.ceil(len(ascending) * percent / 100), 1) - 1]


def _collection_warnings(collection: Collection) -> list[str]:
    warnings = []
    if collection.unlabelled:
        warnings.append(f"{_listed(collection.unlabelled)} without a label, left out of the means")
    if collection.without_relevant:
        warnings.append(f"{_listed(collection.without_relevant)} with no relevant document, counted 0 in the means")
    return warnings


def _pipeline_warnings(rows: Sequence[PipelineScores]) -> list[str]:
    warnings = []
    for row in rows:
        if row.returned_nothing:
            warnings.append(f"{row.name} returned nothing for {_listed(row.returned_nothing)}, counted 0 in the means")
        for kind, why in (("failed", "failed"), ("degraded", "ran degraded")):
            found = {query_id: getattr(one, kind) for query_id, one in row.details.items() if getattr(one, kind)}
            if found:
                warnings.append(f"{row.name} {why} on {_listed([*found])}: {next(iter(found.values()))}")
    return warnings + _beaten(rows)


def _beaten(rows: Sequence[PipelineScores]) -> list[str]:
    """A stage that is worse than what it is made of costs time and loses answers."""
    named = {row.name: row for row in rows}
    warnings = []
    for stage, parts in _MADE_OF.items():
        measured = [named[part] for part in parts if part in named]
        if stage not in named or not measured:
            continue
        better = [part for part in measured if _value(part) > _value(named[stage])]
        if better and (stage == _DEFAULT or len(better) == len(parts)):
            warnings += [_beats(part, named[stage]) for part in better]
    return warnings


def _value(row: PipelineScores) -> float:
    return row.measures[MAIN_MEASURE]


def _beats(part: PipelineScores, stage: PipelineScores) -> str:
    first, second = ([*row.per_query[MAIN_MEASURE].values()] for row in (stage, part))
    return (
        f"{part.name} alone beats {stage.name} on {MAIN_MEASURE}: {_value(part):.4f} > {_value(stage):.4f} "
        f"(p = {paired(first, second).p:.4f})"
    )


def _listed(queries: Sequence[str]) -> str:
    """`2 queries (q7, q9)`; of many, the first ten."""
    names = ", ".join(queries[:10]) + (", ..." if len(queries) > 10 else "")
    return f"{len(queries)} {'query' if len(queries) == 1 else 'queries'} ({names})"
