"""The simple forms in JSON, with ids of documents, of passages, and content hashes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given

import labelled
from wellhead import Document, Index
from wellhead.bench.exchange import read_json, write_json
from wellhead.bench.labels import Label, LabelledQuery, Labels
from wellhead.bench.resolve import resolve_in
from wellhead.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.json"


@pytest.fixture
def index() -> Index:
    opened = Index.open(":memory:", chunker="paragraph")
    shared = "The same paragraph stands in two documents.\n"
    rules = " ".join(f"Rule {number}: rotate a key once a year, or sooner." for number in range(60))
    opened.add(
        [
            Document(id="a.md", text=rules + "\n\n" + shared),
            Document(id="b.md", text=shared),
        ]
    )
    return opened


@given(labelled.labels())
def test_graded_documents_come_back(labels: Labels) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_json(Path(folder) / "some.json", labels)
        back = read_json(Path(folder) / "some.json").labels
        assert {one.query_id: one.grades for one in back.queries} == {
            one.query_id: one.grades for one in labels.queries
        }
        assert {one.query_id for one in labels.queries if not one.answers} <= back.unanswerable


def test_what_the_graded_shape_leaves_out_is_said(file: Path) -> None:
    judged = Label(document_id="a.md", grade=0, time="2026-11-30")
    one = LabelledQuery(query_id="q1", query="?", need="to know", answers=(judged,), unanswerable=True)
    notes = write_json(file, Labels(queries=(one,)))
    assert json.loads(file.read_text()) == {"q1": {"a.md": 0}}
    assert notes == (
        "JSON holds no time: left out of 1 label",
        "JSON holds no query text: left out of 1 query (q1)",
        "JSON holds no need: left out of 1 query (q1)",
        "JSON cannot say unanswerable of a query with judged documents: lost for q1",
    )


def test_the_listed_shape_has_texts_and_what_is_relevant(file: Path) -> None:
    answers = (Label(document_id="a.md", grade=2), Label(document_id="b.md", grade=0))
    queries = (
        LabelledQuery(query_id="x", query="which key?", answers=answers),
        LabelledQuery(query_id="y", query="what?", answers=()),
    )
    notes = write_json(file, Labels(queries=queries), shape="listed")
    assert json.loads(file.read_text()) == {"which key?": ["a.md"], "what?": []}
    assert notes == ("JSON lists ids alone: query ids and grades are left out, and what has grade 0",)
    read = read_json(file)
    assert [(one.query_id, one.query, one.grades) for one in read.labels.queries] == [
        ("q1", "which key?", {"a.md": 1}),
        ("q2", "what?", {}),
    ]
    assert read.labels.unanswerable == {"q2"}
    assert read.notes == ("made up query ids: q1 to q2; and every listed id has grade 1",)


def test_queries_that_their_texts_do_not_name_are_not_listed(file: Path) -> None:
    for texts in (("",), ("same", "same")):
        queries = [LabelledQuery(query_id=f"q{n}", query=text, answers=()) for n, text in enumerate(texts)]
        with pytest.raises(UsageError, match="cannot be named by its text"):
            write_json(file, Labels(queries=tuple(queries)), shape="listed")
    assert not file.exists()


def test_a_passage_goes_by_its_id_the_shown_id_and_its_content_hash(file: Path, index: Index) -> None:
    first = index.passages("a.md")[0]
    for name in (first.id, first.id[:12], first.content_hash):
        file.write_text(json.dumps({"q1": {name: 3}}))
        ((_query, label),) = read_json(file, index).labels
        assert label == Label(document_id="a.md", quote=first.text, span=(first.start, first.end), grade=3)


def test_such_a_label_outlives_the_passage(file: Path, index: Index) -> None:
    first = index.passages("a.md")[0]
    file.write_text(json.dumps({"how often?": [first.content_hash]}))
    labels = read_json(file, index).labels
    other = Index.open(":memory:", chunker="fixed")
    other.add(index.documents())
    assert first.id not in {one.id for one in other.passages("a.md")}
    (found,) = resolve_in(other, labels).in_place
    held = {one.id: one for one in other.passages("a.md")}
    covered = {place for name in found.passages for place in range(held[name].start, held[name].end)}
    assert set(range(first.start, first.end)) <= covered


def test_a_content_hash_names_every_passage_of_that_text(file: Path) -> None:
    index = Index.open(":memory:")
    index.add([Document(id=name, text="The same.") for name in ("a", "b")])
    file.write_text(json.dumps({"q1": {index.passages("a")[0].content_hash: 2}}))
    assert [label.document_id for _query, label in read_json(file, index).labels] == ["a", "b"]


def test_a_document_goes_before_a_passage_and_the_higher_grade_counts(file: Path, index: Index) -> None:
    first = index.passages("a.md")[0]
    file.write_text(json.dumps({"q1": {"a.md": 1, first.id: 1, first.content_hash: 3}}))
    labels = [label for _query, label in read_json(file, index).labels]
    assert [(label.document_id, label.quote, label.grade) for label in labels] == [
        ("a.md", "", 1),
        ("a.md", first.text, 3),
    ]


def test_ids_that_the_index_does_not_hold_are_all_named(file: Path, index: Index) -> None:
    file.write_text(json.dumps({"which?": ["a.md", "gone.md"], "what?": ["0123456789ab"]}))
    with pytest.raises(UsageError, match="does not hold 2 ids") as caught:
        read_json(file, index)
    assert caught.value.why == "'gone.md' of query 'which?'; '0123456789ab' of query 'what?'"


def test_without_an_index_what_looks_like_a_hash_is_doubted(file: Path) -> None:
    file.write_text(json.dumps({"q1": {"0123456789ab": 1, "a.md": 1}}))
    read = read_json(file)
    assert read.labels.qrels == {"q1": {"0123456789ab": 1, "a.md": 1}}
    assert read.notes == (
        "1 id looks like a passage's id or content hash, taken for a document's: give the index to look it up",
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("[1]", "one JSON object"),
        ('{"q": {"d": 1},', "malformed JSON"),
        ('{"q": {"d": NaN}}', "NaN is no JSON"),
        ('{"q": {"d": 1' + "0" * 5000 + "}}", "malformed JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"q": {"d": 1}, "q": {}}', "'q' stands there twice"),
        ('{"q": {"d": 1, "d": 2}}', "'d' stands there twice"),
        ('{"q": {"d": 1}, "which?": ["d"]}', "mixes kinds"),
        ('{"q": 7}', "mixes kinds"),
        ('{"q": ["d", 7]}', "is no text"),
        ('{" ": ["d"]}', "query must not be blank"),
        ('{"q": {"d": 4}}', "0 to 3"),
        ('{"q": {"d": "2"}}', "0 to 3"),
        ('{"q": {" ": 2}}', "document_id must not be blank"),
    ],
)
def test_a_file_that_is_not_in_order_is_refused(file: Path, content: str, what: str) -> None:
    file.write_text(content)
    with pytest.raises(UsageError) as caught:
        read_json(file)
    assert what in str(caught.value)
    assert caught.value.where.startswith(str(file))


def test_an_empty_object_is_no_label(file: Path) -> None:
    file.write_text("{}")
    assert read_json(file).labels == Labels(queries=())
