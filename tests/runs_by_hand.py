"""Saved runs for tests, made of rankings that a test writes down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wellhead.bench.evaluate import MEASURES, NOTHING
from wellhead.bench.measures import Qrels, measure_run
from wellhead.bench.pipelines import QueryDetail, Ranked
from wellhead.bench.questions import Question, labels_digest
from wellhead.bench.runs import SavedPipeline, SavedQuery, SavedRun

QRELS = {"q1": {"a": 2, "b": 1}, "q2": {"b": 1}, "q3": {"c": 1, "a": 0}}


def detail(ranking: Sequence[str], **changes: Any) -> QueryDetail:
    head = tuple(Ranked(document_id=one, passage_id=f"{one}-0", terms=("key",)) for one in ranking[:10])
    plain: dict[str, Any] = {"ranking": tuple(ranking), "ms": 1.0, "head": head, "outcome": "hits", "tokens": 10}
    return QueryDetail(**{**plain, **changes})


def saved_pipeline(name: str, details: Mapping[str, QueryDetail], qrels: Qrels) -> SavedPipeline:
    run = {query_id: details[query_id].ranking for query_id in qrels}
    scores = measure_run(qrels, run, [*MEASURES, NOTHING])
    measures = {
        query_id: {one: values[query_id] for one, values in scores.per_query.items() if query_id in values}
        for query_id in details
    }
    return SavedPipeline(
        name=name,
        options={},
        measures=scores.values,
        queries={one: SavedQuery(detail=details[one], measures=measures[one]) for one in details},
    )


def saved_run(
    rankings: Mapping[str, Sequence[str] | QueryDetail],
    qrels: Qrels = QRELS,
    *,
    pipeline: str = "blend",
    **changes: Any,
) -> SavedRun:
    """A run of one pipeline; queries that the qrels do not name are unanswerable."""
    details = {
        query_id: given if isinstance(given, QueryDetail) else detail(given) for query_id, given in rankings.items()
    }
    asked = tuple(
        Question(query_id=query_id, text=f"text of {query_id}", grades=qrels.get(query_id))
        for query_id in [*qrels, *sorted(details.keys() - qrels.keys())]
    )
    plain: dict[str, Any] = {
        "kind": "wellhead run",
        "schema": 1,
        "collection": "tiny",
        "labels": labels_digest(asked),
        "fingerprint": {"embedder": "static"},
        "index_version": 1,
        "documents": 3,
        "passages": 3,
        "questions": asked,
        "pipelines": (saved_pipeline(pipeline, details, qrels),),
    }
    return SavedRun(**{**plain, **changes})
