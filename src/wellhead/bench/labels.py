"""Labels: what answers which query, anchored in the documents, so that cutting them anew leaves every label right.

`labels.jsonl` holds one query a line, with its keys and answers in a fixed order:

    {"query_id": "q1", "query": "...", "need": "...", "tags": ["how-to"], "answers": [
        {"document_id": "keys.md", "quote": "once a year", "span": [21, 32], "grade": 2, "rater": "ada",
         "time": "2026-11-30"}]}

A query that nothing answers says `"unanswerable": true`, or has no answers at all. Where labels stand in the texts of
today is the business of `wellhead.bench.resolve`.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

import msgspec

from wellhead.bench.files import json_objects, write_whole
from wellhead.errors import UsageError
from wellhead.hints import choices

__all__ = [
    "GRADES",
    "Label",
    "LabelledQuery",
    "Labels",
    "Span",
    "labelled_lines",
    "read_labels",
    "told_where",
    "write_labels",
]

GRADES = range(4)
# Characters of a document's text, half open.
Span: TypeAlias = tuple[int, int]
_Value = TypeVar("_Value", bound=Hashable)


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judgement: how well a place in a document answers a query. The order of the fields is that of the file.

    Args:
        document_id: the document. Without quote and span the label means any passage of it.
        quote: what stands there, exactly; "" for none. It finds the place again when the document changes.
        span: where it stood when it was labelled; None when that was not noted.
        grade: 0 (judged, and does not answer) to 3.
        rater: who judged; "" when that was not noted.
        time: when, in ISO 8601; "" when that was not noted.

    Raises:
        UsageError: a blank id, a grade out of range, a span that is empty or backwards or not as long as the quote, a
            time in another form, a field of another type.
    """

    document_id: str
    quote: str = ""
    span: Span | None = None
    grade: int
    rater: str = ""
    time: str = ""

    def __post_init__(self) -> None:
        _check_id(self.document_id, "document_id")
        _check_text(self.rater, "rater")
        _check_grade(self.grade)
        _check_quote(self.quote)
        _check_time(self.time)
        if self.span is not None:
            msgspec.structs.force_setattr(self, "span", _checked_span(self.span, self.quote))

    @property
    def place(self) -> tuple[str, Span, str]:
        """What orders labels, and tells one place from another: document, span, quote."""
        return self.document_id, self.span or (-1, -1), self.quote


class LabelledQuery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query with its judgements. The order of the fields is that of the file.

    Args:
        query_id: its name.
        query: its text; "" where it stands elsewhere (in `queries.jsonl`).
        need: what the asker wants to know, in full sentences, for those who judge; "" for none.
        tags: of which kinds it is.
        unanswerable: no document answers it. True for a query without answers, whatever was given.
        answers: ordered by document, span and quote, whatever their order was.

    Raises:
        UsageError: a blank id or tag, a tag or judgement that stands there twice, an unanswerable query with an
            answer of grade 1 or more, a field of another type.
    """

    query_id: str
    query: str = ""
    need: str = ""
    tags: tuple[str, ...] = ()
    unanswerable: bool = False
    answers: tuple[Label, ...]

    def __post_init__(self) -> None:
        _check_id(self.query_id, "query_id")
        for name in ("query", "need"):
            _check_text(getattr(self, name), name)
        answers = tuple(sorted(self.answers, key=_order))
        msgspec.structs.force_setattr(self, "tags", _checked_tags(self.tags))
        msgspec.structs.force_setattr(self, "answers", answers)
        if not isinstance(self.unanswerable, bool):
            raise UsageError("unanswerable must be true or false", why=f"got {self.unanswerable!r:.80}")
        msgspec.structs.force_setattr(self, "unanswerable", self.unanswerable or not answers)
        _check_answers(self.query_id, self.unanswerable, answers)

    @property
    def grades(self) -> dict[str, int]:
        """Grade by document: the highest of its labels, whoever gave it."""
        grades: dict[str, int] = {}
        for label in self.answers:
            grades[label.document_id] = max(label.grade, grades.get(label.document_id, 0))
        return grades


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """All labels of a collection.

    Args:
        queries: in the order of the file.

    Raises:
        UsageError: one query twice.
    """

    queries: tuple[LabelledQuery, ...]

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "queries", tuple(self.queries))
        twice = _first_twice(query.query_id for query in self.queries)
        if twice is not None:
            raise _query_twice(twice)

    @property
    def unanswerable(self) -> frozenset[str]:
        """The queries that no document answers."""
        return frozenset(query.query_id for query in self.queries if query.unanswerable)

    @property
    def qrels(self) -> dict[str, dict[str, int]]:
        """Grade by document for each query that has a judgement."""
        return {query.query_id: query.grades for query in self.queries if query.answers}

    def __iter__(self) -> Iterator[tuple[str, Label]]:
        """Each judgement with the id of its query."""
        return ((query.query_id, label) for query in self.queries for label in query.answers)

    def __len__(self) -> int:
        """How many judgements there are."""
        return sum(len(query.answers) for query in self.queries)


def read_labels(path: str | Path) -> Labels:
    """Read `labels.jsonl`.

    Raises:
        UsageError: with file and line: whatever the records refuse, an unknown key, a line that does not say whether
            the query has answers, malformed JSON, a file that cannot be read or is not UTF-8.
    """
    return Labels(queries=tuple(query for _where, query in labelled_lines(path)))


def labelled_lines(path: str | Path) -> Iterator[tuple[str, LabelledQuery]]:
    """The query of each line with its place; errors as of `read_labels`."""
    seen: set[str] = set()
    for where, fields in json_objects(Path(path)):
        query = _query(fields, where)
        if query.query_id in seen:
            raise _query_twice(query.query_id, where)
        seen.add(query.query_id)
        yield where, query


def write_labels(path: str | Path, labels: Labels) -> None:
    """Write `labels.jsonl` in one step; reading it gives equal labels, and equal labels give equal bytes.

    Raises:
        UsageError: the folder is not there. StoreError: the file cannot be written; the old one stays.
    """
    lines = [json.dumps(msgspec.to_builtins(query), ensure_ascii=False) + "\n" for query in labels.queries]
    write_whole(Path(path), "".join(lines))


# -- from a line to a record ------------------------------------------------------------------------------------------


def _query(fields: Mapping[str, object], where: str) -> LabelledQuery:
    given = _given(fields)
    query_id = _id_of(given, "query_id", where, 'write {"query_id": "q1", "answers": []}')
    _refuse_unknown(given, LabelledQuery, where)
    answers = _answers(given, where)
    if given.get("unanswerable") is False and not answers:
        raise UsageError(
            f"query {query_id!r} is said to be answerable and has no answer",
            where=where,
            fix="give it an answer, or leave the word unanswerable out",
        )
    with told_where(where):
        return LabelledQuery(**{**given, "query_id": query_id, "answers": answers})  # type: ignore[arg-type]


def _answers(given: Mapping[str, object], where: str) -> tuple[Label, ...]:
    answers = given.get("answers", [] if given.get("unanswerable") is True else None)
    if not isinstance(answers, list):
        raise UsageError(
            "answers must be a list",
            where=where,
            why="it is missing" if answers is None else f"got {answers!r:.80}",
            fix='write "answers": [] for a query that no document answers',
        )
    return tuple(_label(answer, f"{where}, answer {place}") for place, answer in enumerate(answers, start=1))


def _label(answer: object, where: str) -> Label:
    if not isinstance(answer, dict):
        raise UsageError("an answer must be an object", where=where, why=f"got {answer!r:.80}", fix=_ANSWER)
    given = _given(cast("dict[str, object]", answer))
    document_id = _id_of(given, "document_id", where, _ANSWER)
    _refuse_unknown(given, Label, where)
    if "grade" not in given:
        raise UsageError("an answer needs a grade", where=where, why="it is missing", fix=_ANSWER)
    with told_where(where):
        return Label(**{**given, "document_id": document_id})  # type: ignore[arg-type]


_ANSWER = 'write {"document_id": "keys.md", "quote": "once a year", "grade": 2}'


@contextlib.contextmanager
def told_where(where: str) -> Iterator[None]:
    """Tell an error of a record where the record stands."""
    try:
        yield
    except UsageError as error:
        raise type(error)(error.what, where=where, why=error.why, fix=error.fix) from error


def _given(fields: Mapping[str, object]) -> dict[str, object]:
    """What is there: null is as good as nothing."""
    return {key: value for key, value in fields.items() if value is not None}


def _id_of(given: Mapping[str, object], key: str, where: str, fix: str) -> str:
    value = given.get(key)
    # Numbers serve as ids in some collections.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{key!r} must be a non-blank id", where=where, why=f"got {value!r:.80}", fix=fix)
    return value


def _refuse_unknown(given: Mapping[str, object], kind: type[msgspec.Struct], where: str) -> None:
    known = kind.__struct_fields__
    for key in given:
        if key not in known:
            raise UsageError(f"unknown key {key!r}", where=where, fix=choices(key, known))


# -- what a record must hold ------------------------------------------------------------------------------------------


def _check_id(value: object, name: str) -> None:
    _check_text(value, name)
    if not str(value).strip():
        raise UsageError(f"{name} must not be blank", why=f"got {value!r:.80}")


def _check_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text", why=f"got {value!r:.80}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{name} holds half of a surrogate pair", why="it is no character") from error


def _check_grade(value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value not in GRADES:
        raise UsageError(
            "a grade must be a whole number from 0 to 3",
            why=f"got {value!r:.80}",
            fix="0 does not answer, 1 helps, 2 answers, 3 answers perfectly",
        )


def _check_quote(value: object) -> None:
    _check_text(value, "quote")
    if value and not str(value).strip():
        raise UsageError("a quote must not be blank", fix="quote what answers, or leave the quote out")


def _check_time(value: object) -> None:
    _check_text(value, "time")
    if not value:
        return
    try:
        datetime.datetime.fromisoformat(str(value))
    except ValueError as error:
        raise UsageError(
            f"{value!r:.80} is no time in ISO 8601", why=str(error), fix='write "2026-11-30T14:05:00Z"'
        ) from error


def _checked_span(value: object, quote: str) -> Span:
    numbers = list(cast("Sequence[object]", value)) if isinstance(value, (list, tuple)) else []
    if len(numbers) != 2 or any(not isinstance(number, int) or isinstance(number, bool) for number in numbers):
        raise UsageError("a span must be two whole numbers", why=f"got {value!r:.80}", fix="write [start, end]")
    start, end = cast("tuple[int, int]", tuple(numbers))
    if not 0 <= start < end:
        raise UsageError(
            "a span must begin at 0 or later and end after it begins",
            why=f"got [{start}, {end}]",
            fix="it counts characters, and the end is not part of it",
        )
    if quote and end - start != len(quote):
        raise UsageError(
            "quote and span are of different length",
            why=f"the quote has {len(quote)} characters, the span [{start}, {end}] has {end - start}",
            fix="leave the span out: the quote is found without it",
        )
    return start, end


def _checked_tags(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise UsageError("tags must be a list of texts", why=f"got {value!r:.80}")
    tags = tuple(cast("Sequence[str]", value))
    for tag in tags:
        _check_text(tag, "a tag")
        if not tag or tag != tag.strip():
            raise UsageError("a tag must not be blank, nor begin or end with white space", why=f"got {tag!r:.80}")
    twice = _first_twice(tags)
    if twice is not None:
        raise UsageError(f"tag {twice!r:.80} stands there twice", fix="keep one of them")
    return tags


def _check_answers(query_id: str, unanswerable: bool, answers: Sequence[Label]) -> None:
    relevant = next((label for label in answers if label.grade >= 1), None)
    if unanswerable and relevant is not None:
        raise UsageError(
            f"query {query_id!r} is said to be unanswerable and has an answer",
            why=f"{relevant.document_id!r} has grade {relevant.grade}",
            fix="take the answer out, or the word unanswerable",
        )
    twice = _first_twice((*label.place, label.rater, label.time) for label in answers)
    if twice is not None:
        raise UsageError(
            f"one judgement of query {query_id!r} stands there twice",
            why=f"{twice[0]!r}, by the same rater at the same time",
            fix="keep one of them",
        )


def _order(label: Label) -> tuple[object, ...]:
    return (*label.place, label.rater, label.time, -label.grade)


def _first_twice(values: Iterable[_Value]) -> _Value | None:
    seen: set[_Value] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _query_twice(query_id: str, where: str = "") -> UsageError:
    return UsageError(f"query {query_id!r} stands there twice", where=where, fix="keep one of them")
