"""Two saved runs over the same labels, query by query: which is better, by how much, and could it be chance?

Everything reads "B minus A". A difference is called one only when the randomisation test says so (p < 0.05).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from wellhead.bench.evaluate import MAIN_MEASURE, MEASURES, NOTHING
from wellhead.bench.measures import Grades, Measure, parse_measure
from wellhead.bench.pipelines import DEPTH, HEAD, QueryDetail
from wellhead.bench.questions import Question
from wellhead.bench.runs import SavedPipeline, SavedRun
from wellhead.bench.significance import LEVEL, paired, resolves
from wellhead.errors import UsageError
from wellhead.hints import did_you_mean
from wellhead.records import Outcome

__all__ = ["Comparison", "Contrast", "Row", "Shown", "Side", "compare", "to_dict"]

# So many documents of each ranking are shown for a query.
_FIRST = 3


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of both runs.

    Args:
        a, b: the means; for what is counted (`counted`), the counts of queries.
        difference: b - a, with its interval from `low` to `high`. p: 0 to 1, two-sided.
        wins, losses, ties: queries on which B is better, worse, equal.
    """

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float
    wins: int
    losses: int
    ties: int
    counted: bool = False


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a ranking: rank from 1, grade (None: not judged), and the words that it matched, if known."""

    document_id: str
    rank: int
    grade: int | None
    terms: tuple[str, ...] | None = None


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A query on which the two differ.

    Args:
        a, b: its values of the measure that was chosen.
        first_a, first_b: the first three documents of each ranking.
        only_a, only_b: documents that stand among the first ten of one and not of the other.
    """

    query_id: str
    text: str
    tags: tuple[str, ...]
    a: float
    b: float
    first_a: tuple[Shown, ...]
    first_b: tuple[Shown, ...]
    only_a: tuple[Shown, ...]
    only_b: tuple[Shown, ...]

    @property
    def difference(self) -> float:
        return self.b - self.a


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two: its pipeline, medians over all questions, and what its reader must know."""

    pipeline: str
    p50_ms: float
    tokens: float
    warnings: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs compared.

    Args:
        queries: the labelled ones; all means are over them. unanswerable: the others.
        changed: what is not the same in both, as name, A's and B's.
        rows: what is counted and measured; `main` is the one that was chosen.
        resolves: the smallest difference of `main` that so many queries with this spread tell from chance, with
            power 0.8; None where no difference could be told (too few queries, or not one that differs).
        contrasts: the queries that differ most, largest difference first.
    """

    collection: str
    queries: int
    unanswerable: int
    a: Side
    b: Side
    changed: tuple[tuple[str, str, str], ...]
    rows: tuple[Row, ...]
    main: Row
    resolves: float | None
    contrasts: tuple[Contrast, ...]

    @property
    def told(self) -> bool:
        """Whether the difference of `main` is one that these queries can tell from chance."""
        return self.main.p < 1 - LEVEL

    @property
    def better(self) -> str:
        """`A` or `B` where the difference is told, otherwise ""."""
        worse_when_higher = self.main.counted
        return ("B" if (self.main.difference > 0) != worse_when_higher else "A") if self.told else ""


def compare(
    a: SavedRun,
    b: SavedRun,
    *,
    pipeline: str = "blend",
    against: str | None = None,
    measure: str = MAIN_MEASURE,
    show: int = 5,
) -> Comparison:
    """Compare one pipeline of both runs (or two, with `against`) over the queries that they share: all of them.

    Args:
        pipeline: of A, and of B where `against` is None. against: the pipeline of B.
        measure: the one on which a difference is called, as `nDCG@10`; within the first 100.
        show: how many contrasting queries, from 0.

    Raises:
        UsageError: runs of two collections, or of other labels; a pipeline that a run lacks; an unknown measure.
    """
    _check_same(a, b)
    main = _measure(measure)
    if show < 0:
        raise UsageError("a number of queries cannot be negative", why=f"got show={show}", fix="give 0 or more")
    sides = (_pipeline(a, pipeline, "A"), _pipeline(b, pipeline if against is None else against, "B"))
    labelled = [question for question in a.questions if question.grades is not None]
    rows = {str(one): _row(one, sides, labelled) for one in [*map(parse_measure, [NOTHING, *MEASURES]), main]}
    return Comparison(
        collection=a.collection,
        queries=len(labelled),
        unanswerable=len(a.questions) - len(labelled),
        a=_side(sides[0], labelled),
        b=_side(sides[1], labelled),
        changed=tuple(_changed(a, b, sides)),
        rows=(*rows.values(), *_outcome_rows(sides, a.questions)),
        main=rows[str(main)],
        resolves=_resolves(main, sides, labelled),
        contrasts=_contrasts(main, sides, labelled)[:show],
    )


Sides = tuple[SavedPipeline, SavedPipeline]


def _check_same(a: SavedRun, b: SavedRun) -> None:
    if a.collection != b.collection:
        raise UsageError(
            "the two runs are of different collections",
            where=f"A is of {a.collection!r}, B is of {b.collection!r}",
            why="only answers to the same queries can be compared",
            fix="save both runs on one collection",
        )
    if a.labels != b.labels:
        raise UsageError(
            "the two runs were measured with different labels",
            where=f"{a.collection!r}: A has labels {a.labels[:12]}, B has {b.labels[:12]}",
            why=_first_difference(a, b),
            fix="save the older run again, with the labels of today",
        )


def _first_difference(a: SavedRun, b: SavedRun) -> str:
    ours, theirs = ({one.query_id: (one.text, one.grades) for one in run.questions} for run in (a, b))
    differing = sorted(one for one in ours.keys() | theirs.keys() if ours.get(one) != theirs.get(one))
    return f"{len(differing)} of their queries differ in text or grades, first {differing[0]!r}" if differing else ""


def _measure(name: str) -> Measure:
    measure = parse_measure(name)
    if measure.k > DEPTH:
        raise UsageError(f"{name} cannot be measured", why=f"a run holds the first {DEPTH} documents of each ranking")
    return measure


def _pipeline(run: SavedRun, name: str, side: str) -> SavedPipeline:
    found = next((one for one in run.pipelines if one.name == name), None)
    if found is None:
        known = [one.name for one in run.pipelines]
        raise UsageError(
            f"run {side} has no pipeline {name!r}",
            why=f"it has {', '.join(known)}",
            fix=did_you_mean(name, known) or "name one of these",
        )
    return found


def _values(measure: Measure, pipeline: SavedPipeline, labelled: Sequence[Question]) -> list[float]:
    return [measure.of(pipeline.queries[one.query_id].detail.ranking, one.grades or {}) for one in labelled]


def _row(measure: Measure, sides: Sides, labelled: Sequence[Question]) -> Row:
    a, b = (_values(measure, side, labelled) for side in sides)
    return _compared(str(measure), a, b, counted=_is_count(measure))


def _is_count(measure: Measure) -> bool:
    """What is counted is a fault each: fewer are better."""
    return measure.kind == "nothing_relevant"


def _compared(name: str, a: Sequence[float], b: Sequence[float], *, counted: bool) -> Row:
    found = paired(a, b)
    scale = len(a) if counted else 1
    wins, losses = (found.losses, found.wins) if counted else (found.wins, found.losses)
    return Row(
        measure=name,
        a=math.fsum(a) / len(a) * scale,
        b=math.fsum(b) / len(b) * scale,
        difference=found.difference * scale,
        low=found.interval.low * scale,
        high=found.interval.high * scale,
        p=found.p,
        wins=wins,
        losses=losses,
        ties=found.ties,
        counted=counted,
    )


def _outcome_rows(sides: Sides, questions: Sequence[Question]) -> Iterator[Row]:
    """What the default cut does: labelled queries that it refuses, unanswerable ones that it lets through."""
    labelled = [one.query_id for one in questions if one.grades is not None]
    unanswerable = [one.query_id for one in questions if one.grades is None]
    cases: list[tuple[str, list[str], Outcome]] = [
        ("no_match", labelled, "no_match"),
        ("unanswerable with hits", unanswerable, "hits"),
    ]
    for name, ids, outcome in cases:
        found = [[side.queries[one].detail.outcome for one in ids] for side in sides]
        # The baseline has no cut, and no outcome.
        if ids and all(any(each is not None for each in outcomes) for outcomes in found):
            a, b = ([float(each == outcome) for each in outcomes] for outcomes in found)
            yield _compared(name, a, b, counted=True)


def _resolves(measure: Measure, sides: Sides, labelled: Sequence[Question]) -> float | None:
    a, b = (_values(measure, side, labelled) for side in sides)
    differences = [second - first for first, second in zip(a, b, strict=True)]
    found = resolves(differences) * (len(differences) if _is_count(measure) else 1)
    return found if math.isfinite(found) and any(differences) else None


def _side(pipeline: SavedPipeline, labelled: Sequence[Question]) -> Side:
    details = [query.detail for query in pipeline.queries.values()]
    return Side(
        pipeline=pipeline.name,
        p50_ms=_median([detail.ms for detail in details]),
        tokens=_median([detail.tokens for detail in details]),
        warnings=tuple(_warnings(pipeline, labelled)),
    )


def _median(values: Sequence[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]


def _warnings(pipeline: SavedPipeline, labelled: Sequence[Question]) -> Iterator[str]:
    details = [pipeline.queries[one.query_id].detail for one in labelled]
    counts = {
        "returned nothing, counted 0": sum(not one.ranking for one in details),
        "failed": sum(bool(one.failed) for one in details),
        "ran degraded": sum(bool(one.degraded) for one in details),
    }
    yield from (f"{count} of {len(details)} queries {what}" for what, count in counts.items() if count)
    judged = {document_id for one in labelled for document_id in one.grades or {}}
    if any(one.ranking for one in details) and not any(judged.intersection(one.ranking) for one in details):
        yield "no judged document came back for any query: are its document ids those of the labels?"


def _changed(a: SavedRun, b: SavedRun, sides: Sides) -> Iterator[tuple[str, str, str]]:
    ours, theirs = _described(a, sides[0]), _described(b, sides[1])
    for name in [*ours, *(one for one in theirs if one not in ours)]:
        if ours.get(name, "") != theirs.get(name, ""):
            yield name, ours.get(name, ""), theirs.get(name, "")


def _described(run: SavedRun, pipeline: SavedPipeline) -> dict[str, str]:
    return {
        **run.fingerprint,
        "documents": str(run.documents),
        "passages": str(run.passages),
        **{f"option {name}": value for name, value in pipeline.options.items()},
    }


def _contrasts(measure: Measure, sides: Sides, labelled: Sequence[Question]) -> tuple[Contrast, ...]:
    """Every query that differs, largest difference first, equal ones by id."""
    a, b = (_values(measure, side, labelled) for side in sides)
    differing = sorted(
        (-abs(second - first), one.query_id, one, first, second)
        for one, first, second in zip(labelled, a, b, strict=True)
        if first != second
    )
    return tuple(_contrast(one, first, second, sides) for _, _, one, first, second in differing)


def _contrast(question: Question, first: float, second: float, sides: Sides) -> Contrast:
    grades = question.grades or {}
    a, b = (_shown(side.queries[question.query_id].detail, grades) for side in sides)
    return Contrast(
        query_id=question.query_id,
        text=question.text,
        tags=question.tags,
        a=first,
        b=second,
        first_a=a[:_FIRST],
        first_b=b[:_FIRST],
        only_a=_only(a, b),
        only_b=_only(b, a),
    )


def _shown(detail: QueryDetail, grades: Grades) -> tuple[Shown, ...]:
    """The first ten of a ranking, judged."""
    terms: Mapping[str, tuple[str, ...] | None] = {one.document_id: one.terms for one in detail.head}
    return tuple(
        Shown(document_id=document_id, rank=rank, grade=grades.get(document_id), terms=terms.get(document_id))
        for rank, document_id in enumerate(detail.ranking[:HEAD], start=1)
    )


def _only(these: Sequence[Shown], others: Sequence[Shown]) -> tuple[Shown, ...]:
    known = {one.document_id for one in others}
    return tuple(one for one in these if one.document_id not in known)


def to_dict(comparison: Comparison) -> dict[str, object]:
    """Plain data under a versioned schema, ready for JSON; differences are B minus A."""
    plain = msgspec.to_builtins(comparison)
    return {"schema": 1, **plain, "told": comparison.told, "better": comparison.better}
