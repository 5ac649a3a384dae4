"""Labels as a table in CSV, one row a label, for spreadsheets.

The header names the columns, in any order; `document_id` may be blank in a row that says a query is unanswerable.
Several tags stand in one cell with semicolons between.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from wellhead.bench.exchange.left_out import Imported, left_out, some
from wellhead.bench.files import read_text, write_whole
from wellhead.bench.labels import Label, LabelledQuery, Labels, told_where
from wellhead.errors import UsageError
from wellhead.hints import choices

__all__ = ["COLUMNS", "read_csv", "write_csv"]

COLUMNS = ("query_id", "query", "document_id", "quote", "start", "end", "grade", "rater", "time", "tags")
_NEEDED = ("query_id", "document_id", "grade")
_BETWEEN_TAGS = ";"
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_TO_BE_QUOTED = re.compile(r'[",\r\n]')
_FORMULA = ("=", "+", "-", "@")
_HELD = frozenset({"quote", "span", "rater", "time", "text", "tags", "unanswerable", "places"})


def write_csv(path: str | Path, labels: Labels) -> tuple[str, ...]:
    """Write the table. Returns what was left out, and whether a spreadsheet might run what a quote holds.

    Raises:
        UsageError: a tag that holds a semicolon. StoreError: the file cannot be written.
    """
    rows = [COLUMNS, *(row for query in labels.queries for row in _rows_of(query))]
    write_whole(Path(path), "".join(",".join(map(_cell, row)) + "\n" for row in rows))
    return (*left_out(labels, _HELD, "CSV"), *_formulas(rows))


def read_csv(path: str | Path) -> Imported:
    """Read the table.

    Raises:
        UsageError: with file and line: a column that is unknown, missing or there twice, a row of another width, rows
            of one query that contradict each other, whatever the records of labels refuse.
    """
    found: dict[str, _Query] = {}
    for where, row in _rows(Path(path)):
        with told_where(where):
            query_id = row["query_id"]
            known = found.setdefault(query_id, _Query(text=row.get("query", ""), tags=row.get("tags", "")))
            known.check(query_id, row)
            known.add(row)
            # Built at every row, so that what it refuses is told with its line.
            known.made = LabelledQuery(
                query_id=query_id,
                query=known.text,
                tags=_tags(known.tags),
                unanswerable=known.unanswerable,
                answers=tuple(known.answers),
            )
    return Imported(labels=Labels(queries=tuple(query.made for query in found.values() if query.made)))


class _Query(msgspec.Struct):
    """What the rows of one query have said so far."""

    text: str
    tags: str
    unanswerable: bool = False
    answers: list[Label] = []
    made: LabelledQuery | None = None

    def check(self, query_id: str, row: Mapping[str, str]) -> None:
        for column, first in (("query", self.text), ("tags", self.tags)):
            if row.get(column, "") != first:
                raise UsageError(
                    f"two rows of query {query_id!r} have another {column!r}",
                    why=f"{first!r:.80} and {row.get(column, '')!r:.80}",
                    fix="make all rows of a query say the same",
                )

    def add(self, row: Mapping[str, str]) -> None:
        if row["document_id"]:
            self.answers.append(_label(row))
            return
        filled = next((name for name in COLUMNS[3:9] if row.get(name)), None)
        if filled is not None:
            raise UsageError(
                f"a row without a document has a {filled}",
                why="a blank document_id says that nothing answers the query",
                fix="name the document, or leave the rest blank",
            )
        self.unanswerable = True


def _rows_of(query: LabelledQuery) -> Iterator[tuple[str, ...]]:
    for tag in query.tags:
        if _BETWEEN_TAGS in tag:
            raise UsageError(
                f"tag {tag!r} of query {query.query_id!r} holds a semicolon", why="semicolons separate tags in CSV"
            )
    tags = _BETWEEN_TAGS.join(query.tags)
    if query.unanswerable:
        yield (query.query_id, query.query, *[""] * 7, tags)
    for label in query.answers:
        start, end = ("", "") if label.span is None else map(str, label.span)
        place = (label.document_id, label.quote, start, end)
        yield (query.query_id, query.query, *place, str(label.grade), label.rater, label.time, tags)


def _formulas(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A quote is a document's text, and whoever wrote the document may have meant it for a spreadsheet."""
    count = sum(cell.startswith(_FORMULA) for row in rows for cell in row)
    if count:
        yield f"{some(count, 'cell begins', 'cells begin')} as a formula does: let a spreadsheet read it as text"


def _cell(text: str) -> str:
    """A cell, in quotes where it needs them."""
    return '"' + text.replace('"', '""') + '"' if _TO_BE_QUOTED.search(text) else text


def _rows(file: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    # Line breaks stay as they are: those in quotes belong to the text.
    reader = csv.reader(io.StringIO(read_text(file), newline=""), strict=True)
    try:
        header = next(reader, [])
        _check_header(header, f"{file}, line 1")
        for cells in reader:
            where = f"{file}, line {reader.line_num}"
            if cells and len(cells) != len(header):
                raise UsageError(
                    "a row is not as wide as the header", where=where, why=f"{len(cells)} cells, not {len(header)}"
                )
            if any(cells):
                yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise UsageError("malformed CSV", where=f"{file}, line {reader.line_num}", why=str(error)) from error


def _check_header(header: Sequence[str], where: str) -> None:
    for name in header:
        if name not in COLUMNS:
            raise UsageError(f"unknown column {name!r:.80}", where=where, fix=choices(name, COLUMNS))
        if header.count(name) > 1:
            raise UsageError(f"column {name!r} stands there twice", where=where, fix="keep one of them")
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        raise UsageError(
            f"the header lacks {', '.join(missing)}", where=where, fix=f"the columns are {', '.join(COLUMNS)}"
        )


def _label(row: Mapping[str, str]) -> Label:
    start, end = row.get("start", ""), row.get("end", "")
    if bool(start) != bool(end):
        raise UsageError("start and end must be there together", why=f"got {start!r:.20} and {end!r:.20}")
    return Label(
        document_id=row["document_id"],
        quote=row.get("quote", ""),
        span=(_number(start, "start"), _number(end, "end")) if start else None,
        grade=_number(row["grade"], "grade"),
        rater=row.get("rater", ""),
        time=row.get("time", ""),
    )


def _number(text: str, column: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"{column} must be a whole number", why=f"got {text!r:.80}")
    return int(text)


def _tags(cell: str) -> tuple[str, ...]:
    return tuple(tag.strip() for tag in cell.split(_BETWEEN_TAGS)) if cell.strip() else ()
