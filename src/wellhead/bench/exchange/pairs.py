"""The simple forms in JSON: `{query: [ids]}`, and `{query_id: {id: grade}}`.

An id is a document's. Over an index it may also be a passage's (all of it, or the 12 characters that are shown) or a
passage's content hash: what it names is then written down as the place in the document, which outlives the passage.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, cast

from wellhead.bench.exchange.left_out import Imported, left_out, some
from wellhead.bench.files import read_text, write_whole
from wellhead.bench.labels import Label, LabelledQuery, Labels, told_where
from wellhead.errors import UsageError
from wellhead.records import Passage

if TYPE_CHECKING:
    from wellhead.index import Index

__all__ = ["Shape", "read_json", "write_json"]

Shape: TypeAlias = Literal["graded", "listed"]

_HASH = re.compile(r"[0-9a-f]{12}|[0-9a-f]{64}")
_SHOWN = 12
_SHAPES = 'write {"which key?": ["keys.md"]}, or {"q1": {"keys.md": 2}}'


def write_json(path: str | Path, labels: Labels, *, shape: Shape = "graded") -> tuple[str, ...]:
    """Write labels of documents. Returns what was left out.

    Args:
        shape: "graded" for `{query_id: {document_id: grade}}`; "listed" for `{query: [document_id]}`, the documents
            of grade 1 or more.

    Raises:
        UsageError: "listed", and a query has no text, or two have the same. StoreError: the disk failed.
    """
    if shape == "graded":
        held: Mapping[str, object] = {query.query_id: query.grades for query in labels.queries}
        notes = left_out(labels, {"unanswerable"}, "JSON")
        zero = [query.query_id for query in labels.queries if query.unanswerable and query.answers]
        if zero:
            notes.append(f"JSON cannot say unanswerable of a query with judged documents: lost for {', '.join(zero)}")
    else:
        held, notes = _listed(labels), left_out(labels, {"text", "unanswerable"}, "JSON")
        notes.append("JSON lists ids alone: query ids and grades are left out, and what has grade 0")
    write_whole(Path(path), json.dumps(held, ensure_ascii=False, indent=1) + "\n")
    return tuple(notes)


def read_json(path: str | Path, index: Index | None = None) -> Imported:
    """Read either shape. Listed ids get grade 1, and their queries the ids q1, q2, ...

    Args:
        index: what the ids are looked up in; None takes all of them for documents' ids.

    Raises:
        UsageError: with the file: malformed JSON, another shape, a query twice, a grade out of range, and every id
            that the index does not hold.
    """
    file = Path(path)
    found = _object(file)
    kinds = {type(value) for value in found.values()}
    if not kinds <= {list} and not kinds <= {dict}:
        raise UsageError("the file has another shape", where=str(file), why="it mixes kinds of values", fix=_SHAPES)
    graded = kinds == {dict}
    notes = [] if graded or not found else [f"made up query ids: q1 to q{len(found)}; and every listed id has grade 1"]
    ids = _Ids(index)
    queries = []
    for place, (name, value) in enumerate(found.items(), start=1):
        with told_where(f"{file}, query {name!r:.60}"):
            queries.append(_query(place, name, value, graded, ids))
    _refuse_missing(ids.missing, file)
    return Imported(labels=Labels(queries=tuple(queries)), notes=(*notes, *ids.notes))


def _listed(labels: Labels) -> dict[str, list[str]]:
    listed: dict[str, list[str]] = {}
    for query in labels.queries:
        if not query.query.strip() or query.query in listed:
            why = "another query has the same" if query.query.strip() else "it has none"
            raise UsageError(
                f"query {query.query_id!r} cannot be named by its text", why=why, fix="export the graded shape"
            )
        listed[query.query] = [name for name, grade in query.grades.items() if grade >= 1]
    return listed


def _query(place: int, name: str, value: object, graded: bool, ids: _Ids) -> LabelledQuery:
    if graded:
        grades = cast("Mapping[str, int]", value)
        return LabelledQuery(query_id=name, answers=_answers(name, grades, ids))
    listed = cast("Sequence[object]", value)
    for one in listed:
        if not isinstance(one, str):
            raise UsageError(f"an id of query {name!r:.80} is no text", why=f"got {one!r:.80}", fix=_SHAPES)
    if not name.strip():
        raise UsageError("a query must not be blank", fix=_SHAPES)
    answers = _answers(name, dict.fromkeys(cast("Sequence[str]", listed), 1), ids)
    return LabelledQuery(query_id=f"q{place}", query=name, answers=answers)


def _answers(query: str, grades: Mapping[str, int], ids: _Ids) -> tuple[Label, ...]:
    """The labels that the ids name; where two name one place the higher grade stands."""
    best: dict[object, Label] = {}
    for given, grade in grades.items():
        for label in ids.labels(query, given, grade):
            if label.place not in best or best[label.place].grade < label.grade:
                best[label.place] = label
    return tuple(best.values())


class _Ids:
    """What the ids of a file name, in an index where there is one; keeps those that name nothing."""

    def __init__(self, index: Index | None) -> None:
        self._index = index
        self._documents = {one.id for one in index.summaries()} if index is not None else set[str]()
        self._places: Mapping[str, list[Passage]] | None = None
        self._looks_like_a_hash = 0
        self.missing: list[str] = []

    @property
    def notes(self) -> list[str]:
        """What was taken on trust."""
        if not self._looks_like_a_hash:
            return []
        count = some(self._looks_like_a_hash, "id looks", "ids look")
        return [f"{count} like a passage's id or content hash, taken for a document's: give the index to look it up"]

    def labels(self, query: str, given: str, grade: int) -> list[Label]:
        if self._index is None:
            self._looks_like_a_hash += bool(_HASH.fullmatch(given))
            return [Label(document_id=given, grade=grade)]
        if given in self._documents:
            return [Label(document_id=given, grade=grade)]
        if self._places is None:
            self._places = _places(self._index, sorted(self._documents))
        passages = self._places.get(given, [])
        if not passages:
            self.missing.append(f"{given!r:.80} of query {query!r:.60}")
        return [_at(passage, grade) for passage in passages]


def _places(index: Index, documents: Sequence[str]) -> Mapping[str, list[Passage]]:
    """The passages by each name that they go by: id, shown id, content hash."""
    places: defaultdict[str, list[Passage]] = defaultdict(list)
    for document_id in documents:
        for passage in index.passages(document_id):
            for name in {passage.id, passage.id[:_SHOWN], passage.content_hash}:
                places[name].append(passage)
    return places


def _at(passage: Passage, grade: int) -> Label:
    return Label(document_id=passage.document_id, quote=passage.text, span=(passage.start, passage.end), grade=grade)


def _refuse_missing(missing: Sequence[str], file: Path) -> None:
    if missing:
        raise UsageError(
            f"the index does not hold {some(len(missing), 'id', 'ids')}",
            where=str(file),
            why="; ".join(missing),
            fix="give the index that the ids came from, or take them out",
        )


def _object(file: Path) -> dict[str, object]:
    text = read_text(file)
    with told_where(str(file)):
        found = _parsed(text)
    if not isinstance(found, dict):
        raise UsageError("the file must hold one JSON object", where=str(file), fix=_SHAPES)
    return cast("dict[str, object]", found)


def _parsed(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_number)
    except UsageError:
        raise
    except json.JSONDecodeError as error:
        raise UsageError("malformed JSON", why=f"line {error.lineno}: {error.msg}", fix=_SHAPES) from error
    except (RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError("malformed JSON", why=why, fix=_SHAPES) from error


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    held: dict[str, object] = {}
    for key, value in pairs:
        if key in held:
            raise UsageError(f"{key!r:.80} stands there twice", fix="keep one of them")
        held[key] = value
    return held


def _no_number(name: str) -> NoReturn:
    raise UsageError(f"{name} is no JSON", fix=_SHAPES)
