"""labels.jsonl: what is read, what is refused with its line, and that writing loses nothing."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelled
from wellhead.bench.labels import Label, LabelledQuery, Labels, read_labels, write_labels
from wellhead.errors import UsageError

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook"
FULL = {
    "query_id": "q1",
    "query": "how often?",
    "need": "How often a key is to be rotated.",
    "tags": ["how-to", "near"],
    "answers": [
        {
            "document_id": "keys.md",
            "quote": "once a year",
            "span": [21, 32],
            "grade": 3,
            "rater": "ada",
            "time": "2026-11-30",
        }
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def query(**fields: Any) -> dict[str, Any]:
    return {"query_id": "q1", "answers": [{"document_id": "d", "grade": 1}]} | fields


def answer(**fields: Any) -> dict[str, Any]:
    return query(answers=[{"document_id": "d", "grade": 1} | fields])


def test_every_part_is_read(file: Path) -> None:
    file.write_text(json.dumps(FULL) + "\n")
    (read,) = read_labels(file).queries
    assert (read.query_id, read.query, read.need) == ("q1", "how often?", "How often a key is to be rotated.")
    assert (read.tags, read.unanswerable) == (("how-to", "near"), False)
    assert read.answers == (
        Label(document_id="keys.md", quote="once a year", span=(21, 32), grade=3, rater="ada", time="2026-11-30"),
    )


def test_a_line_is_written_with_its_keys_in_the_order_of_the_page(file: Path) -> None:
    backwards = {key: FULL[key] for key in reversed(FULL)}
    file.write_text(json.dumps(backwards))
    write_labels(file, read_labels(file))
    assert file.read_text(encoding="utf-8") == json.dumps(FULL) + "\n"


def test_the_handbook_is_read_as_it_is(file: Path) -> None:
    for name in (HANDBOOK / "labels.jsonl", HANDBOOK / "first" / "labels.jsonl"):
        labels = read_labels(name)
        assert len(labels.queries) == 40
        assert len(labels) == sum(len(json.loads(line)["answers"]) for line in name.read_text().splitlines())
        assert labels.unanswerable == {one.query_id for one in labels.queries if "unanswerable" in one.tags}


def test_the_grades_of_the_handbook_are_those_of_its_qrels() -> None:
    rows = [line.split("\t") for line in (HANDBOOK / "qrels.tsv").read_text().splitlines()[1:]]
    told = {(query_id, name): int(grade) for query_id, name, grade in rows}
    qrels = read_labels(HANDBOOK / "labels.jsonl").qrels
    assert {(query_id, name): grade for query_id, of in qrels.items() for name, grade in of.items()} == told


@given(labelled.labels())
def test_reading_what_was_written_gives_the_same_and_writing_it_the_same_bytes(labels: Labels) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "labels.jsonl"
        write_labels(file, labels)
        first = file.read_bytes()
        read = read_labels(file)
        write_labels(file, read)
        assert (read, file.read_bytes()) == (labels, first)
        assert first.count(b"\n") == len(labels.queries)


def test_the_order_in_which_answers_were_given_does_not_show() -> None:
    answers = [
        Label(document_id=name, span=span, grade=grade)
        for name, span, grade in (("b", None, 1), ("a", (5, 9), 2), ("a", (0, 3), 1), ("a", None, 3))
    ]
    forward = LabelledQuery(query_id="q", answers=tuple(answers))
    assert forward == LabelledQuery(query_id="q", answers=tuple(reversed(answers)))
    assert [(one.document_id, one.span) for one in forward.answers] == [
        ("a", None),
        ("a", (0, 3)),
        ("a", (5, 9)),
        ("b", None),
    ]
    assert forward.grades == {"a": 3, "b": 1}


def test_no_answers_mean_unanswerable_with_the_word_or_without(file: Path) -> None:
    lines = [
        {"query_id": "q1", "answers": []},
        {"query_id": "q2", "unanswerable": True},
        {"query_id": "q3", "unanswerable": True, "answers": [{"document_id": "d", "grade": 0}]},
        {"query_id": "q4", "answers": [{"document_id": "d", "grade": 0}]},
        {"query_id": "q5", "need": None, "answers": [{"document_id": "d", "grade": 1, "span": None}]},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    labels = read_labels(file)
    assert labels.unanswerable == {"q1", "q2", "q3"}
    assert labels.qrels == {"q3": {"d": 0}, "q4": {"d": 0}, "q5": {"d": 1}}


def test_numbers_serve_as_ids(file: Path) -> None:
    file.write_text(json.dumps({"query_id": 7, "answers": [{"document_id": 12, "grade": 1}]}))
    assert [(name, label.document_id) for name, label in read_labels(file)] == [("7", "12")]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (query(unanswerable=True), "said to be unanswerable"),
        (query(unanswerable=False, answers=[]), "said to be answerable"),
        (query(unanswerable="yes"), "true or false"),
        (answer(grade=4), "grade must be a whole number from 0 to 3"),
        (answer(grade=-1), "grade"),
        (answer(grade=1.5), "grade"),
        (answer(grade=True), "grade"),
        (answer(grade=10**40), "grade"),
        (answer(grade=None), "needs a grade"),
        (answer(span=[3, 3]), "end after it begins"),
        (answer(span=[5, 3]), "end after it begins"),
        (answer(span=[-1, 3]), "begin at 0"),
        (answer(span=[1]), "two whole numbers"),
        (answer(span=[1, 2.5]), "two whole numbers"),
        (answer(span="1-2"), "two whole numbers"),
        (answer(span=[0, 4], quote="three"), "different length"),
        (answer(quote=" \n"), "quote must not be blank"),
        (answer(quote=7), "quote must be text"),
        (answer(document_id=" "), "'document_id' must be a non-blank id"),
        (answer(document_id=True), "'document_id'"),
        (answer(rater=7), "rater must be text"),
        (answer(time="yesterday"), "no time in ISO 8601"),
        (query(query_id=""), "'query_id' must be a non-blank id"),
        (query(answers=None), "answers must be a list"),
        (query(answers={}), "answers must be a list"),
        (query(answers=["d"]), "an answer must be an object"),
        (query(tags="how-to"), "tags must be a list"),
        (query(tags=[7]), "a tag must be text"),
        (query(tags=["a "]), "a tag must not be blank, nor begin"),
        (query(tags=["a", "a"]), "tag 'a' stands there twice"),
        (query(query=["?"]), "query must be text"),
        (query(answers=[{"document_id": "d", "grade": 1}, {"document_id": "d", "grade": 2}]), "stands there twice"),
        (query(query_id="q0"), "query 'q0' stands there twice"),
    ],
)
def test_what_is_refused_is_named_with_file_and_line(file: Path, line: object, what: str) -> None:
    file.write_text(json.dumps(query(query_id="q0")) + "\n\n" + json.dumps(line) + "\n")
    with pytest.raises(UsageError, match=what) as caught:
        read_labels(file)
    assert caught.value.where.startswith(f"{file}, line 3")


_JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=3)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)
_ANSWER = st.dictionaries(st.sampled_from(Label.__struct_fields__), _JSON, max_size=5)
_LINE = st.dictionaries(
    st.sampled_from(LabelledQuery.__struct_fields__), st.one_of(_JSON, st.lists(_ANSWER)), max_size=5
)


@given(st.lists(_LINE, max_size=3))
def test_whatever_stands_in_a_line_it_is_read_or_refused_in_our_words(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "labels.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        where, count = f"{file}, line ", len(rows)
        try:
            count = len(read_labels(file).queries)
        except UsageError as error:
            where = error.where
        assert where.startswith(f"{file}, line ")
        assert count == len(rows)


@pytest.mark.parametrize(
    ("line", "fix"), [(query(unanswerabel=True), "'unanswerable'"), (answer(qoute="x"), "'quote'")]
)
def test_an_unknown_key_is_named_with_the_known_ones(file: Path, line: object, fix: str) -> None:
    file.write_text(json.dumps(line))
    with pytest.raises(UsageError, match="unknown key") as caught:
        read_labels(file)
    assert caught.value.fix.startswith(f"did you mean {fix}")
    assert "known: " in caught.value.fix


@pytest.mark.parametrize("content", [b'{"query_id": ', b"[]", b'{"query_id": "caf\xe9"}', b"[" * 100_000])
def test_a_file_that_is_no_utf8_or_no_json_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_labels(file)
    assert caught.value.where == f"{file}, line 1"


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UsageError, match="surrogate"):
        Label(document_id="\ud800", grade=1)


def test_labels_refuse_one_query_twice() -> None:
    one = LabelledQuery(query_id="q", answers=())
    with pytest.raises(UsageError, match="twice"):
        Labels(queries=(one, one))
