"""A saved run: one JSON file that holds an evaluation whole, so that a later one can be compared with it.

It holds the questions with their grades, and for each pipeline and question the ranking (to rank 100), the passages
and signals at its head, the outcome, the time, and the measures. What is read is checked against itself: the digest
against the questions, the measures against the rankings.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wellhead.bench.evaluate import MEASURES, NOTHING, Evaluation, PipelineScores
from wellhead.bench.measures import measure_run
from wellhead.bench.pipelines import QueryDetail, options_of
from wellhead.bench.questions import Question, labels_digest
from wellhead.errors import UsageError

__all__ = ["SavedPipeline", "SavedQuery", "SavedRun", "as_run", "check_place", "load_run", "save_run"]

SCHEMA = 1
_KIND = "wellhead run"
_MAKE = "make one with: wellhead eval COLLECTION --save FILE"


class SavedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One question under one pipeline: what was delivered, and the measures by name (none if it is unanswerable)."""

    detail: QueryDetail
    measures: Mapping[str, float]


class SavedPipeline(msgspec.Struct, frozen=True, kw_only=True):
    """One pipeline: the options that `Index.search` got, the means by measure, and every question by id."""

    name: str
    options: Mapping[str, str]
    measures: Mapping[str, float]
    queries: Mapping[str, SavedQuery]


class SavedRun(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluation as it lies in a file.

    Args:
        collection: the name of its folder. labels: the digest of the questions and their grades.
        fingerprint: what the stored numbers depend on, by name. index_version: of the index that was searched.
        documents, passages: as indexed.
        questions: the labelled queries, then the unanswerable ones.
        warnings: what the evaluation warned of.
    """

    kind: str
    schema: int
    collection: str
    labels: str
    fingerprint: Mapping[str, str]
    index_version: int
    documents: int
    passages: int
    questions: tuple[Question, ...]
    pipelines: tuple[SavedPipeline, ...]
    warnings: tuple[str, ...] = ()


class _Head(msgspec.Struct):
    """What tells a saved run from any other JSON."""

    kind: str
    schema: int


def as_run(evaluation: Evaluation) -> SavedRun:
    """An evaluation in the form in which it is saved."""
    return SavedRun(
        kind=_KIND,
        schema=SCHEMA,
        collection=evaluation.collection,
        labels=labels_digest(evaluation.questions),
        fingerprint=dict(evaluation.fingerprint),
        index_version=evaluation.index_version,
        documents=evaluation.documents,
        passages=evaluation.passages,
        questions=evaluation.questions,
        pipelines=tuple(_saved(row, evaluation.questions) for row in evaluation.pipelines),
        warnings=evaluation.warnings,
    )


def _saved(row: PipelineScores, questions: tuple[Question, ...]) -> SavedPipeline:
    return SavedPipeline(
        name=row.name,
        options=options_of(row.name),
        measures={**row.measures, NOTHING: float(len(row.nothing_relevant))},
        queries={
            question.query_id: SavedQuery(
                detail=row.details[question.query_id],
                measures={
                    name: values[question.query_id]
                    for name, values in row.per_query.items()
                    if question.query_id in values
                },
            )
            for question in questions
        },
    )


def save_run(path: str | Path, evaluation: Evaluation) -> None:
    """Write an evaluation to a file, whole or not at all.

    Raises:
        UsageError: the place cannot be written, or holds a file that is no saved run.
    """
    file = Path(path)
    check_place(file)
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        fresh.write_bytes(msgspec.json.encode(as_run(evaluation)) + b"\n")
        fresh.replace(file)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            fresh.unlink(missing_ok=True)
        raise _no_place(file, str(error)) from error


def check_place(path: str | Path) -> None:
    """Refuse a place where no run can be saved, or where something else would be overwritten.

    Raises:
        UsageError: the folder is not there, or the file is there and is no saved run.
    """
    file = Path(path)
    try:
        there, folder = file.exists(), file.parent.is_dir()
    except (OSError, ValueError) as error:
        raise _no_place(file, str(error)) from error
    if not folder:
        raise _no_place(file, "there is no such folder")
    if not there:
        return
    try:
        msgspec.json.decode(_bytes(file), type=_Head)
    except (msgspec.DecodeError, UsageError) as error:
        raise UsageError(
            "the run would overwrite what is no saved run",
            where=str(file),
            why="something else is there already",
            fix="name another file",
        ) from error


def _no_place(file: Path, why: str) -> UsageError:
    return UsageError("cannot save the run", where=repr(str(file))[:200], why=why, fix="name another file")


def load_run(path: str | Path) -> SavedRun:
    """Read a saved run.

    Raises:
        UsageError: a file that is damaged, or no saved run, or one of a later schema.
    """
    file = Path(path)
    raw = _bytes(file)
    try:
        head = msgspec.json.decode(raw, type=_Head)
        if head.kind != _KIND:
            raise UsageError("this is no saved run", where=str(file), why=f"it is a {head.kind!r:.60}", fix=_MAKE)
        if head.schema != SCHEMA:
            raise UsageError(
                f"the saved run has schema {head.schema}",
                where=str(file),
                why=f"this version reads schema {SCHEMA}",
                fix="use the version of Wellhead that saved it, or save it again",
            )
        run = msgspec.json.decode(raw, type=SavedRun)
    except msgspec.DecodeError as error:
        raise UsageError(
            "this is no saved run, or it is damaged", where=str(file), why=str(error), fix=_MAKE
        ) from error
    _check(run, str(file))
    return run


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError("cannot read the run", where=str(file), why=str(error), fix=_MAKE) from error


def _check(run: SavedRun, where: str) -> None:
    """Hold a run against itself: a number that was changed by hand or by a fault must not be compared."""
    if labels_digest(run.questions) != run.labels:
        raise _damaged(where, "its questions and grades are not those of its digest")
    ids = [question.query_id for question in run.questions]
    if len(set(ids)) != len(ids) or not any(question.grades is not None for question in run.questions):
        raise _damaged(where, "a question stands there twice, or none has a grade")
    names = [pipeline.name for pipeline in run.pipelines]
    if not names or len(set(names)) != len(names):
        raise _damaged(where, "it has no pipeline, or one of them twice")
    for pipeline in run.pipelines:
        _check_pipeline(pipeline, run, where)


def _check_pipeline(pipeline: SavedPipeline, run: SavedRun, where: str) -> None:
    if set(pipeline.queries) != {question.query_id for question in run.questions}:
        raise _damaged(where, f"{pipeline.name} does not hold each question once")
    qrels = {question.query_id: question.grades for question in run.questions if question.grades is not None}
    scores = measure_run(
        qrels, {query_id: pipeline.queries[query_id].detail.ranking for query_id in qrels}, [*MEASURES, NOTHING]
    )
    if not _near(scores.values, pipeline.measures):
        raise _damaged(where, f"the means of {pipeline.name} are not those of its rankings")
    for query_id in qrels:
        computed = {name: scores.per_query[name][query_id] for name in scores.values}
        if not _near(computed, pipeline.queries[query_id].measures):
            raise _damaged(where, f"the measures of {query_id!r} under {pipeline.name} are not those of its ranking")


def _near(computed: Mapping[str, float], saved: Mapping[str, float]) -> bool:
    """Whether both name the same measures, with values that differ by rounding at most."""
    return computed.keys() == saved.keys() and all(abs(saved[name] - value) < 1e-9 for name, value in computed.items())


def _damaged(where: str, why: str) -> UsageError:
    return UsageError("the saved run is damaged", where=where, why=why, fix="save it again: wellhead eval --save FILE")
