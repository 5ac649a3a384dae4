"""BEIR's folder: there and back, and what it cannot hold."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import labelled
from wellhead.bench.collection import read_collection
from wellhead.bench.exchange import read_beir, write_beir
from wellhead.bench.labels import Label, LabelledQuery, Labels
from wellhead.errors import StoreError, UsageError


def corpus(*names: str) -> list[dict[str, object]]:
    return [{"_id": name, "title": f"Title of {name}", "text": f"Text of {name}."} for name in names]


def query(query_id: str = "q1", text: str = "which?", **fields: Any) -> LabelledQuery:
    given = {"answers": (Label(document_id="a", grade=2), Label(document_id="b", grade=0))} | fields
    return LabelledQuery(query_id=query_id, query=text, **given)


@given(labelled.labels(labelled.WORDS))
def test_texts_documents_and_grades_come_back(labels: Labels) -> None:
    if not labels.qrels:
        return
    names = sorted({name for grades in labels.qrels.values() for name in grades})
    with tempfile.TemporaryDirectory() as folder:
        write_beir(Path(folder) / "beir", labels, corpus(*names))
        back = read_beir(Path(folder) / "beir").labels
        assert back.qrels == labels.qrels
        kept = {one.query_id: one.query for one in labels.queries if one.answers}
        assert {one.query_id: one.query for one in back.queries} == kept


def test_what_is_written_is_a_collection(tmp_path: Path) -> None:
    notes = write_beir(tmp_path / "beir", Labels(queries=(query(), query("q2", "what?", answers=()))), corpus("a", "b"))
    read = read_collection(tmp_path / "beir")
    assert [(one.id, one.title, one.text) for one in read.documents] == [
        ("a", "Title of a", "Text of a."),
        ("b", "Title of b", "Text of b."),
    ]
    assert (read.queries, read.qrels) == ({"q1": "which?", "q2": "what?"}, {"q1": {"a": 2, "b": 0}})
    assert notes == ("BEIR cannot say unanswerable: left out of 1 query (q2)",)


def test_queries_without_a_judgement_are_left_out_and_counted(tmp_path: Path) -> None:
    write_beir(tmp_path / "beir", Labels(queries=(query(), query("q2", "what?", answers=()))), corpus("a", "b"))
    read = read_beir(tmp_path / "beir")
    assert [one.query_id for one in read.labels.queries] == ["q1"]
    assert read.notes == ("1 query without a judgement left out, first q2",)


def test_unanswerable_queries_of_a_labels_file_come_along(tmp_path: Path) -> None:
    write_beir(tmp_path / "beir", Labels(queries=(query(), query("q2", "what?", answers=()))), corpus("a", "b"))
    (tmp_path / "beir" / "labels.jsonl").write_text('{"query_id": "q2", "answers": []}\n')
    read = read_beir(tmp_path / "beir")
    assert (read.labels.unanswerable, read.notes) == ({"q2"}, ())


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (query(text=""), "has no text"),
        (query(answers=(Label(document_id="c", grade=1),)), "not in the corpus, 'c'"),
        (query("q\t1"), "cannot stand in BEIR's qrels"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, one: LabelledQuery, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        write_beir(tmp_path / "beir", Labels(queries=(one,)), corpus("a", "b"))
    assert not (tmp_path / "beir").exists()


@pytest.mark.parametrize("name", ["qrels.tsv", "labels.jsonl"])
def test_a_folder_with_other_labels_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(UsageError, match="other labels"):
        write_beir(tmp_path, Labels(queries=(query(),)), corpus("a", "b"))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot make"):
        write_beir(tmp_path / "none" / "beir", Labels(queries=(query(),)), corpus("a", "b"))


def test_a_grade_out_of_range_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "a", "text": "x"}))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "x"}))
    (tmp_path / "qrels.tsv").write_text("q1\ta\t9\n")
    with pytest.raises(UsageError, match="0 to 3") as caught:
        read_beir(tmp_path)
    assert caught.value.where == str(tmp_path)
