"""The tags of a collection, and the digest of its labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from wellhead.bench.collection import Collection
from wellhead.bench.questions import Question, labels_digest, questions_of, read_tags, tagged
from wellhead.errors import UsageError


def asked(query_id: str = "q1", text: str = "text", **changes: object) -> Question:
    return Question(**{"query_id": query_id, "text": text, "grades": {"a": 1, "b": 0}, **changes})  # type: ignore[arg-type]


def written(folder: Path, text: str | bytes) -> Path:
    (folder / "labels.jsonl").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_tags_are_read_from_the_labels(tmp_path: Path) -> None:
    lines = '{"query_id": "q1", "tags": ["table", "code"], "answers": []}\n\n{"query_id": 7, "answers": []}\r\n'
    assert read_tags(written(tmp_path, lines)) == {"q1": ("table", "code"), "7": ()}


def test_a_collection_without_labels_has_no_tags(tmp_path: Path) -> None:
    assert read_tags(tmp_path) == {}
    assert read_tags(tmp_path / "nowhere") == {}


@pytest.mark.parametrize(
    "line",
    [
        '{"query_id": "q1", "tags": "table", "answers": []}',
        '{"query_id": "q1", "tags": [1], "answers": []}',
        "{",
        "[]",
        b'{"query_id": "\xff"}',
    ],
)
def test_tags_that_are_none_are_refused_with_their_line(tmp_path: Path, line: str | bytes) -> None:
    first = b'{"query_id": "q0", "answers": []}\n'
    with pytest.raises(UsageError) as caught:
        read_tags(written(tmp_path, first + (line if isinstance(line, bytes) else line.encode())))
    assert caught.value.where.endswith("labels.jsonl, line 2")


def test_labelled_queries_come_first_and_the_unanswerable_by_id() -> None:
    collection = Collection(
        name="tiny",
        queries={"u2": "far", "q2": "two", "q1": "one", "u1": "off", "bare": "unlabelled"},
        qrels={"q2": {"a": 1}, "q1": {"b": 1}},
        unanswerable=frozenset({"u1", "u2"}),
    )
    found = questions_of(collection, {"q1": ("x",)})
    assert [one.query_id for one in found] == ["q2", "q1", "u1", "u2"]
    assert [one.tags for one in found] == [(), ("x",), (), ()]
    assert [one.grades for one in found] == [{"a": 1}, {"b": 1}, None, None]


def test_the_digest_knows_every_label_and_no_order_or_tag() -> None:
    base = labels_digest([asked("q1"), asked("q2")])
    assert labels_digest([asked("q2", grades={"b": 0, "a": 1}, tags=("x",)), asked("q1")]) == base
    others = [
        [asked("q1")],
        [asked("q1"), asked("q3")],
        [asked("q1"), asked("q2", text="another")],
        [asked("q1"), asked("q2", grades={"a": 2, "b": 0})],
        [asked("q1"), asked("q2", grades={"a": 1})],
        [asked("q1"), asked("q2", grades={})],
        [asked("q1"), asked("q2", grades=None)],
    ]
    digests = [labels_digest(other) for other in others]
    assert len({base, *digests}) == len(others) + 1


def test_each_tag_lists_its_labelled_queries_and_those_without_one_stand_last() -> None:
    found = [asked("q1", tags=("b", "a")), asked("q2"), asked("q3", tags=("b",)), asked("q4", tags=("z",), grades=None)]
    assert [*tagged(found)] == [("a", ["q1"]), ("b", ["q1", "q3"]), ("", ["q2"])]
