"""What a form cannot hold is counted, and named."""

from __future__ import annotations

from wellhead.bench.exchange.left_out import left_out, some
from wellhead.bench.labels import Label, LabelledQuery, Labels


def test_what_a_form_holds_is_not_mentioned() -> None:
    label = Label(document_id="d", quote="x", span=(0, 1), grade=1, rater="r", time="2026-11-30")
    query = LabelledQuery(query_id="q1", query="?", need="n", tags=("t",), answers=(label,))
    labels = Labels(queries=(query, LabelledQuery(query_id="q2", answers=())))
    parts = {"quote", "span", "rater", "time", "text", "need", "tags", "unanswerable", "places"}
    assert left_out(labels, parts, "X") == []
    for part in parts - {"places"}:
        (note,) = left_out(labels, parts - {part}, "X")
        assert note.startswith("X cannot say unanswerable" if part == "unanswerable" else "X holds no ")
        assert part in note


def test_many_queries_are_counted_and_the_first_named() -> None:
    queries = [LabelledQuery(query_id=f"q{number}", need="n", answers=()) for number in range(7)]
    (note,) = left_out(Labels(queries=tuple(queries)), {"unanswerable"}, "X")
    assert note == "X holds no need: left out of 7 queries (q0, q1, q2, q3, q4, ...)"


def test_labels_of_one_document_are_joined_and_counted() -> None:
    places = [Label(document_id="d", span=(start, start + 1), grade=1) for start in range(3)]
    labels = Labels(queries=(LabelledQuery(query_id="q1", answers=(*places, Label(document_id="e", grade=1))),))
    assert left_out(labels, {"span"}, "X") == [
        "X holds one grade a document: 2 labels joined with a higher or equal one"
    ]
    assert left_out(labels, {"span", "places"}, "X") == []


def test_one_and_many() -> None:
    assert (some(1, "query", "queries"), some(0, "query", "queries")) == ("1 query", "0 queries")
