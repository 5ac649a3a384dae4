"""An evaluation for people (a table) and for programs (plain data under a versioned schema)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from wellhead.bench.evaluate import MEASURES, Evaluation, PipelineScores
from wellhead.bench.pipelines import BASELINE, DEPTH

__all__ = ["show", "to_dict", "to_text"]

_NONE = "-"


def to_dict(evaluation: Evaluation) -> dict[str, object]:
    """Plain data, ready for JSON. `nothing_relevant` is a count at 10; times are in milliseconds."""
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
        "p50_ms": row.p50_ms,
        "p95_ms": row.p95_ms,
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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_aligned(row, widths) for row in rows]
    return "\n".join([*_preamble(evaluation), "", *lines, "", *_notes(evaluation)])


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = [
        cell.ljust(width) if place == 0 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join([name, *numbers]).rstrip()


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
    headings = ["pipeline", "nothing relevant", *MEASURES, "p50 ms", "p95 ms", "no_match"]
    return [*headings, "unanswerable with hits"] if evaluation.unanswerable else headings


def _cells(row: PipelineScores, evaluation: Evaluation) -> list[str]:
    cells = [
        row.name,
        str(len(row.nothing_relevant)),
        *(f"{row.measures[name]:.4f}" for name in MEASURES),
        f"{row.p50_ms:.2f}",
        f"{row.p95_ms:.2f}",
        _counted(row.no_match),
    ]
    return [*cells, _counted(row.unanswerable_with_hits)] if evaluation.unanswerable else cells


def _counted(count: int | None) -> str:
    return _NONE if count is None else str(count)


def _notes(evaluation: Evaluation) -> list[str]:
    notes = [
        "nothing relevant: queries without a relevant document in the first 10",
        f"p50, p95: wall time of one search to rank {DEPTH}, of this process on this machine",
        "no_match: labelled queries that the default cut answers with no_match (0 is best)",
    ]
    if evaluation.unanswerable:
        notes.append("unanswerable with hits: unanswerable queries that the default cut lets through (0 is best)")
    if any(row.name == BASELINE for row in evaluation.pipelines):
        notes.append(f"{BASELINE}: a poor scorer, for scale; its own limit of 10 is lifted for R@100")
    return [*notes, *(f"warning: {warning}" for warning in evaluation.warnings)]
