"""An evaluation for people (a table) and for programs (plain data under a versioned schema)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TextIO

from wellhead.bench.evaluate import MAIN_MEASURE, MEASURES, NOTHING, Evaluation, PipelineScores, main_pipeline
from wellhead.bench.pipelines import BASELINE, DEPTH
from wellhead.bench.questions import tagged

__all__ = ["aligned", "per_query_text", "per_tag_text", "show", "to_dict", "to_text"]

_NONE = "-"
_UNTAGGED = "(no tag)"
_TAG_MEASURES = ("nDCG@10", "R@10")


def to_dict(evaluation: Evaluation, *, per_tag: bool = False, per_query: bool = False) -> dict[str, object]:
    """Plain data, ready for JSON. `nothing_relevant` is a count at 10; times are in milliseconds.

    Args:
        per_tag: with `tags`: the rows of the main pipeline. per_query: with the values of each query and pipeline.
    """
    plain = _plain(evaluation)
    if per_tag:
        plain["tags"] = [_tag_row(row) for row in _tags(evaluation)]
    if per_query:
        plain["per_query"] = {row.name: row.per_query for row in evaluation.pipelines}
    return plain


def _plain(evaluation: Evaluation) -> dict[str, object]:
    return {
        "schema": 1,
        "collection": evaluation.collection,
        "documents": evaluation.documents,
        "passages": evaluation.passages,
        "queries": evaluation.queries,
        "embedder": evaluation.embedder,
        "pipelines": [_pipeline(row) for row in evaluation.pipelines],
        "warnings": list(evaluation.warnings),
    }


def _pipeline(row: PipelineScores) -> dict[str, object]:
    return {
        "name": row.name,
        "measures": {**row.measures, "nothing_relevant": len(row.nothing_relevant)},
        "interval": {
            "measure": MAIN_MEASURE,
            "level": row.interval.level,
            "low": row.interval.low,
            "high": row.interval.high,
        },
        "p50_ms": row.p50_ms,
        "p95_ms": row.p95_ms,
        "tokens": row.tokens,
        "no_match": row.no_match,
    }


def show(evaluation: Evaluation, stream: TextIO) -> None:
    """Write the table: drawn on a terminal, plain columns elsewhere."""
    if stream.isatty():
        _draw(evaluation, stream)
    else:
        stream.write(to_text(evaluation) + "\n")


def to_text(evaluation: Evaluation) -> str:
    """The table in plain columns, with what was measured above it and the warnings below."""
    rows = [_headings(evaluation), *(_cells(row, evaluation) for row in evaluation.pipelines)]
    return "\n".join([*_preamble(evaluation), "", *aligned(rows), "", *_notes(evaluation)])


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Cells in plain columns: those at the places of `left` begin together, all others end together."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def per_tag_text(evaluation: Evaluation) -> str:
    """A row for each tag, of the main pipeline; a query with two tags counts in both rows."""
    heads = ["tag", "queries", "nothing relevant", *_TAG_MEASURES]
    rows = [
        [row.tag or _UNTAGGED, str(row.queries), str(row.nothing), *(f"{value:.4f}" for value in row.measures.values())]
        for row in _tags(evaluation)
    ]
    return "\n".join([f"{main_pipeline(evaluation.pipelines).name}, by tag", "", *aligned([heads, *rows])])


def per_query_text(evaluation: Evaluation) -> str:
    """nDCG@10 of each labelled query by pipeline, those that the main pipeline answers worst first."""
    main = main_pipeline(evaluation.pipelines).per_query[MAIN_MEASURE]
    labelled = [question for question in evaluation.questions if question.grades is not None]
    worst_first = sorted(labelled, key=lambda question: (main[question.query_id], question.query_id))
    rows = [
        [
            question.query_id,
            *(f"{row.per_query[MAIN_MEASURE][question.query_id]:.4f}" for row in evaluation.pipelines),
            " ".join(question.text.split())[:80],
        ]
        for question in worst_first
    ]
    heads = ["query", *(row.name for row in evaluation.pipelines), "text"]
    return "\n".join([f"{MAIN_MEASURE} of each query", "", *aligned([heads, *rows], left=(0, len(heads) - 1))])


class _TagRow(NamedTuple):
    """One tag over the main pipeline: how many labelled queries, for how many nothing relevant came back, means."""

    tag: str
    queries: int
    nothing: int
    measures: dict[str, float]


def _tags(evaluation: Evaluation) -> list[_TagRow]:
    values = main_pipeline(evaluation.pipelines).per_query
    return [
        _TagRow(
            tag,
            len(ids),
            int(sum(values[NOTHING][query_id] for query_id in ids)),
            {name: math.fsum(values[name][query_id] for query_id in ids) / len(ids) for name in _TAG_MEASURES},
        )
        for tag, ids in tagged(evaluation.questions)
    ]


def _tag_row(row: _TagRow) -> dict[str, object]:
    return {"tag": row.tag, "queries": row.queries, "nothing_relevant": row.nothing, "measures": row.measures}


def _draw(evaluation: Evaluation, stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(_headings(evaluation)):
        table.add_column(heading, justify="right" if place else "left")
    for row in evaluation.pipelines:
        table.add_row(*_cells(row, evaluation))
    for line in [*_preamble(evaluation), ""]:
        console.print(line, soft_wrap=True)
    console.print(table)
    for line in ["", *_notes(evaluation)]:
        console.print(line, soft_wrap=True)


def _preamble(evaluation: Evaluation) -> list[str]:
    documents, passages = _some(evaluation.documents, "document"), _some(evaluation.passages, "passage")
    labelled = "labelled query" if evaluation.queries == 1 else "labelled queries"
    counts = f"{documents}, {passages}, {evaluation.queries} {labelled}"
    if evaluation.unanswerable:
        counts += f", {evaluation.unanswerable} unanswerable"
    return [
        f"{evaluation.collection}: {counts}; embedder {evaluation.embedder or 'none'}",
        "judged by each document's best passage (per_document=1), rankings with cut off",
    ]


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _headings(evaluation: Evaluation) -> list[str]:
    first, *others = MEASURES
    headings = ["pipeline", "nothing relevant", first, "95 %", *others, "p50 ms", "p95 ms", "tokens", "no_match"]
    return [*headings, "unanswerable with hits"] if evaluation.unanswerable else headings


def _cells(row: PipelineScores, evaluation: Evaluation) -> list[str]:
    first, *others = (f"{row.measures[name]:.4f}" for name in MEASURES)
    cells = [
        row.name,
        str(len(row.nothing_relevant)),
        first,
        f"{row.interval.low:.3f}-{row.interval.high:.3f}",
        *others,
        f"{row.p50_ms:.2f}",
        f"{row.p95_ms:.2f}",
        str(row.tokens),
        _counted(row.no_match),
    ]
    return [*cells, _counted(row.unanswerable_with_hits)] if evaluation.unanswerable else cells


def _counted(count: int | None) -> str:
    return _NONE if count is None else str(count)


def _notes(evaluation: Evaluation) -> list[str]:
    notes = [
        "nothing relevant: queries without a relevant document in the first 10",
        f"95 %: where the mean {MAIN_MEASURE} of all such queries lies, by bootstrap over these",
        f"p50, p95: wall time of one search to rank {DEPTH}, of this process on this machine",
        "tokens: of the passages that one search delivers, the median; an estimate that no embedder changes",
        "no_match: labelled queries that the default cut answers with no_match (0 is best)",
    ]
    if evaluation.unanswerable:
        notes.append("unanswerable with hits: unanswerable queries that the default cut lets through (0 is best)")
    if any(row.name == BASELINE for row in evaluation.pipelines):
        notes.append(f"{BASELINE}: a poor scorer, for scale; its own limit of 10 is lifted for R@100")
    return [*notes, *(f"warning: {warning}" for warning in evaluation.warnings)]
