"""The documents of a collection's folder: as rows of a corpus, and as texts by id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wellhead.bench.documents import corpus_rows, document_texts
from wellhead.errors import DocumentError, UsageError


def test_rows_of_a_corpus_are_handed_on_as_they_are(tmp_path: Path) -> None:
    rows = [{"_id": "a", "title": "A", "text": "x", "metadata": {"deep": [1]}}, {"_id": 7, "text": "y", "year": 2020}]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(corpus_rows(tmp_path)) == [rows[0], {**rows[1], "_id": "7"}]
    assert document_texts(tmp_path, ["7", "b"]) == {"7": "y", "b": None}


def test_files_become_rows_and_the_labels_beside_them_are_none(tmp_path: Path) -> None:
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "keys.md").write_text("# Keys\n\nRotate them.\n")
    (tmp_path / "labels.jsonl").write_text('{"query_id": "q", "answers": []}\n')
    (tmp_path / "blank.md").write_text(" \n")
    (row,) = corpus_rows(tmp_path)
    assert (row["_id"], row["title"], row["text"]) == ("guides/keys.md", "Keys", "# Keys\n\nRotate them.\n")
    assert row["metadata"] == {"area": "guides"}
    texts = document_texts(tmp_path, ["guides/keys.md", "blank.md", "labels.jsonl", "../keys.md"])
    assert texts == {"guides/keys.md": row["text"], "blank.md": None, "labels.jsonl": None, "../keys.md": None}


def test_ids_are_paths_below_docs_where_that_exists(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "keys.md").write_text("Rotate them.")
    assert document_texts(tmp_path, ["keys.md", "docs/keys.md"]) == {"keys.md": "Rotate them.", "docs/keys.md": None}


def test_a_labelled_document_that_cannot_be_read_is_told_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("good")
    (tmp_path / "bad.ipynb").write_text("{")
    assert document_texts(tmp_path, ["good.md"]) == {"good.md": "good"}
    with pytest.raises(DocumentError):
        document_texts(tmp_path, ["bad.ipynb"])


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"text": "x"}, "an id and a text"),
        ({"_id": " ", "text": "x"}, "an id and a text"),
        ({"_id": "b"}, "an id and a text"),
        ({"_id": "a", "text": "again"}, "twice"),
    ],
)
def test_a_mistake_in_a_corpus_is_named_with_its_line(tmp_path: Path, row: object, what: str) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text(json.dumps({"_id": "a", "text": "x"}) + "\n" + json.dumps(row))
    with pytest.raises(UsageError, match=what) as caught:
        list(corpus_rows(tmp_path))
    assert caught.value.where == f"{file}, line 2"


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no collection"):
        document_texts(tmp_path / "none", ["a"])
