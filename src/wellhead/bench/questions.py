"""What a run was asked: the queries with their tags and grades, and a digest by which two runs know their labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from wellhead.bench.collection import Collection
from wellhead.bench.labels import read_labels

__all__ = ["Question", "Tags", "labels_digest", "questions_of", "read_tags", "tagged"]

Tags = Mapping[str, tuple[str, ...]]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One query that counts.

    Args:
        grades: by document id, as in the qrels; None for a query that no document answers.
        tags: of which kind it is ("identifier", "paraphrase"), as its labels say.
    """

    query_id: str
    text: str
    grades: Mapping[str, int] | None
    tags: tuple[str, ...] = ()


def read_tags(path: str | Path) -> dict[str, tuple[str, ...]]:
    """The tags by query id in the `labels.jsonl` of a collection's folder; empty where there is no such file.

    Raises:
        UsageError: as `read_labels`.
    """
    file = Path(path) / "labels.jsonl"
    return {query.query_id: query.tags for query in read_labels(file).queries} if file.is_file() else {}


def questions_of(collection: Collection, tags: Tags) -> tuple[Question, ...]:
    """The labelled queries in the order of the qrels, then the unanswerable ones by id."""
    asked = [*collection.qrels, *sorted(collection.unanswerable)]
    return tuple(
        Question(
            query_id=query_id,
            text=collection.queries[query_id],
            grades=collection.qrels.get(query_id),
            tags=tags.get(query_id, ()),
        )
        for query_id in asked
    )


def labels_digest(questions: Sequence[Question]) -> str:
    """A digest of the ids, texts and grades, whatever their order; the tags have no part in it."""
    rows = sorted(
        (question.query_id, question.text, question.grades is None, sorted((question.grades or {}).items()))
        for question in questions
    )
    return hashlib.sha256(msgspec.json.encode(rows)).hexdigest()


def tagged(questions: Sequence[Question]) -> Iterator[tuple[str, list[str]]]:
    """Each tag by name with the ids of its labelled queries; "" stands last, for those without a tag."""
    labelled = [question for question in questions if question.grades is not None]
    names = sorted({tag for question in labelled for tag in question.tags})
    for name in names:
        yield name, [question.query_id for question in labelled if name in question.tags]
    bare = [question.query_id for question in labelled if not question.tags]
    if bare:
        yield "", bare
