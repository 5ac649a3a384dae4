"""TREC's forms: qrels (`qid 0 docid grade`) and runs (`qid Q0 docid rank score tag`), white space between."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from wellhead.bench.exchange.left_out import Imported, left_out, some
from wellhead.bench.files import text_lines, write_whole
from wellhead.bench.labels import Label, LabelledQuery, Labels, told_where
from wellhead.bench.measures import Run, unique
from wellhead.errors import UsageError

__all__ = ["ImportedRun", "read_qrels", "read_run", "write_qrels", "write_run"]

_GRADE = re.compile(r"-?[0-9]{1,9}")
_RANK = re.compile(r"[0-9]{1,9}")


class ImportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a file had it.

    Args:
        run: document ids by query, best first.
        notes: where the file leaves the order open, or contradicts itself.
    """

    run: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()


def write_qrels(path: str | Path, labels: Labels) -> tuple[str, ...]:
    """Write qrels: one row for each query and document, in the order of the labels. Returns what was left out.

    Raises:
        UsageError: an id that holds white space. StoreError: the file cannot be written.
    """
    rows = [
        f"{_word(query_id)} 0 {_word(document_id)} {grade}\n"
        for query_id, grades in labels.qrels.items()
        for document_id, grade in grades.items()
    ]
    write_whole(Path(path), "".join(rows))
    return tuple(left_out(labels, (), "TREC"))


def read_qrels(path: str | Path) -> Imported:
    """Read qrels as labels that name documents.

    Raises:
        UsageError: with file and line: a row of another shape, a grade out of range, a document judged twice.
    """
    found: dict[str, dict[str, Label]] = {}
    for where, fields in _rows(path, 4, "qid 0 docid grade"):
        query_id, _iteration, document_id, grade = fields
        if not _GRADE.fullmatch(grade):
            raise UsageError("a grade must be a whole number", where=where, why=f"got {grade!r:.80}")
        if document_id in found.setdefault(query_id, {}):
            raise _twice(query_id, document_id, where)
        with told_where(where):
            found[query_id][document_id] = Label(document_id=document_id, grade=int(grade))
    queries = [LabelledQuery(query_id=name, answers=tuple(labels.values())) for name, labels in found.items()]
    return Imported(labels=Labels(queries=tuple(queries)))


def write_run(path: str | Path, run: Run, *, tag: str = "wellhead") -> tuple[str, ...]:
    """Write a run. Returns what was left out.

    Scores are whole numbers that fall by one from rank to rank, whatever they were: tools order by score and break
    ties in ways of their own, so that equal scores would come back in another order.

    Raises:
        UsageError: an id or tag that holds white space. StoreError: the file cannot be written.
    """
    rows, notes = [], []
    for query_id, ranking in run.items():
        once = unique(ranking)
        if len(once) < len(ranking):
            notes.append(f"query {query_id}: {len(ranking) - len(once)} repeated documents left out")
        if not once:
            notes.append(f"query {query_id} has an empty ranking, which a run in TREC's form cannot say")
        rows += [
            f"{_word(query_id)} Q0 {_word(document_id)} {rank} {len(once) - rank + 1} {_word(tag)}\n"
            for rank, document_id in enumerate(once, start=1)
        ]
    write_whole(Path(path), "".join(rows))
    return tuple(notes)


def read_run(path: str | Path) -> ImportedRun:
    """Read a run, ordered as TREC's tools order it: by score, whatever the ranks say. Equal scores go by rank.

    Raises:
        UsageError: with file and line: a row of another shape, a score that is no finite number, a document twice.
    """
    found: dict[str, list[_Place]] = {}
    seen: set[tuple[str, str]] = set()
    for where, fields in _rows(path, 6, "qid Q0 docid rank score tag"):
        query_id, document_id = fields[0], fields[2]
        if (query_id, document_id) in seen:
            raise _twice(query_id, document_id, where)
        seen.add((query_id, document_id))
        found.setdefault(query_id, []).append(_place(fields, where))
    run = {
        query_id: tuple(place.document_id for place in sorted(places, key=lambda place: (-place.score, place.rank)))
        for query_id, places in found.items()
    }
    return ImportedRun(run=run, notes=tuple(_doubts(found)))


class _Place(NamedTuple):
    document_id: str
    rank: int
    score: float


def _place(fields: list[str], where: str) -> _Place:
    _query_id, _q0, document_id, rank, score, _tag = fields
    if not _RANK.fullmatch(rank):
        raise UsageError("a rank must be a whole number", where=where, why=f"got {rank!r:.80}")
    try:
        number = float(score)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError("a score must be a finite number", where=where, why=f"got {score!r:.80}")
    return _Place(document_id, int(rank), number)


def _doubts(found: Mapping[str, list[_Place]]) -> Iterator[str]:
    """Where the order is open, or ranks and scores contradict each other."""
    tied = [name for name, places in found.items() if len({place.score for place in places}) < len(places)]
    if tied:
        yield f"{some(len(tied), 'query has', 'queries have')} equal scores, first {tied[0]}: ordered by rank there"
    crossed = [name for name, places in found.items() if _crossed(places)]
    if crossed:
        yield (
            f"in {some(len(crossed), 'query', 'queries')}, first {crossed[0]}, the ranks contradict the scores: "
            "ordered by score, as TREC's tools do"
        )


def _crossed(places: list[_Place]) -> bool:
    scores = [place.score for place in sorted(places, key=lambda place: place.rank)]
    return scores != sorted(scores, reverse=True)


def _rows(path: str | Path, width: int, form: str) -> Iterator[tuple[str, list[str]]]:
    for where, line in text_lines(Path(path)):
        # Not `split()`: it would also cut at the white space that an id may hold, such as a no-break space.
        fields = re.split(r"[ \t]+", line.strip(" \t\r"))
        if len(fields) != width:
            raise UsageError(f"a row must be `{form}`", where=where, why=f"it has {len(fields)} fields, not {width}")
        yield where, fields


def _word(value: str) -> str:
    # A byte order mark before the first field would be taken for the file's own.
    if not value or value.startswith("\ufeff") or any(character.isspace() for character in value):
        raise UsageError(
            f"{value!r:.80} cannot stand in TREC's form",
            why="white space separates the fields there",
            fix="export to csv or json, or give ids without white space",
        )
    return value


def _twice(query_id: str, document_id: str, where: str) -> UsageError:
    return UsageError(
        f"document {document_id!r} stands there twice for query {query_id!r}", where=where, fix="keep one of them"
    )
