"""Reading a collection: both layouts, and every mistake named with its file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wellhead.bench.collection import read_collection
from wellhead.errors import UsageError

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook"


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small collection without a mistake."""
    root = tmp_path / "tiny"
    root.mkdir()
    corpus = lines({"_id": "d1", "title": "One", "text": "first"}, {"_id": "d2", "title": "", "text": "second"})
    (root / "corpus.jsonl").write_text(corpus)
    (root / "queries.jsonl").write_text(lines({"_id": "q1", "text": "which?"}, {"_id": "q2", "text": "what?"}))
    (root / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n")
    return root


def test_documents_queries_and_grades_are_read(folder: Path) -> None:
    collection = read_collection(folder)
    assert collection.name == "tiny"
    assert [(document.id, document.title, document.text) for document in collection.documents] == [
        ("d1", "One", "first"),
        ("d2", "", "second"),
    ]
    assert collection.queries == {"q1": "which?", "q2": "what?"}
    assert collection.qrels == {"q1": {"d1": 2, "d2": 0}}
    assert collection.unlabelled == ("q2",)
    assert collection.folder is None


def test_other_fields_become_metadata(folder: Path) -> None:
    row = {"_id": 7, "text": "t", "year": 2020, "open": True, "metadata": {"url": "u"}, "deep": [{"x": 1}], "no": None}
    (folder / "corpus.jsonl").write_text(lines(row))
    (folder / "qrels.tsv").write_text("q1\t7\t1\n")
    (document,) = read_collection(folder).documents
    assert document.id == "7"
    assert document.metadata == {"year": 2020, "open": True, "url": "u"}


def test_qrels_may_lack_the_header_and_may_stand_in_their_own_folder(folder: Path) -> None:
    (folder / "qrels.tsv").unlink()
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("q2\td2\t1\r\n\r\n")
    assert read_collection(folder).qrels == {"q2": {"d2": 1}}


def test_a_mark_at_the_start_and_odd_separators_in_a_text_do_no_harm(folder: Path) -> None:
    row = json.dumps({"_id": "d1", "text": "a\u2028b\x85c"}, ensure_ascii=False)
    (folder / "corpus.jsonl").write_bytes(b"\xef\xbb\xbf" + row.encode() + b"\r\n")
    (folder / "qrels.tsv").write_text("q1\td1\t1\n")
    assert read_collection(folder).documents[0].text == "a\u2028b\x85c"


def test_queries_with_only_grade_zero_are_told_apart(folder: Path) -> None:
    (folder / "qrels.tsv").write_text("q1\td1\t1\nq2\td1\t0\n")
    collection = read_collection(folder)
    assert collection.without_relevant == ("q2",)
    assert collection.unlabelled == ()


def test_unanswerable_queries_are_those_that_the_labels_say(folder: Path) -> None:
    (folder / "labels.jsonl").write_text(
        lines({"query_id": "q2", "answers": []}, {"query_id": "q1", "answers": [{"document_id": "d1", "grade": 2}]})
    )
    collection = read_collection(folder)
    assert collection.unanswerable == {"q2"}
    assert collection.unlabelled == ()


def test_documents_may_be_files(folder: Path) -> None:
    (folder / "corpus.jsonl").unlink()
    (folder / "guides").mkdir()
    (folder / "guides" / "keys.md").write_text("# Keys")
    (folder / "qrels.tsv").write_text("q1\tguides/keys.md\t1\n")
    collection = read_collection(folder)
    assert collection.folder == folder
    assert collection.documents == ()
    assert collection.qrels == {"q1": {"guides/keys.md": 1}}


def test_ids_are_relative_to_docs_where_that_exists(folder: Path) -> None:
    (folder / "corpus.jsonl").unlink()
    (folder / "docs").mkdir()
    (folder / "docs" / "keys.md").write_text("# Keys")
    (folder / "qrels.tsv").write_text("q1\tkeys.md\t1\n")
    assert read_collection(folder).folder == folder / "docs"
    (folder / "qrels.tsv").write_text("q1\tdocs/keys.md\t1\n")
    with pytest.raises(UsageError, match=r"docs/keys\.md"):
        read_collection(folder)


@pytest.mark.parametrize("document_id", ["../secret.md", "./keys.md", "/etc/hostname", "keys.md/", "a\0b", "docs"])
def test_an_id_of_a_file_is_its_plain_path_below_the_folder(folder: Path, document_id: str) -> None:
    (folder / "corpus.jsonl").unlink()
    (folder / "docs").mkdir()
    (folder / "docs" / "keys.md").write_text("# Keys")
    (folder / "secret.md").write_text("secret")
    (folder / "qrels.tsv").write_text(f"q1\t{document_id}\t1\n")
    with pytest.raises(UsageError, match="not in the collection"):
        read_collection(folder)


@pytest.mark.parametrize(
    ("file", "content", "what", "line"),
    [
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}\n{"_id": ', "malformed JSON", 2),
        ("corpus.jsonl", '["d1"]\n', "malformed JSON", 1),
        ("corpus.jsonl", lines({"_id": "d1", "text": "x"}, {"_id": "d1", "text": "y"}), "twice", 2),
        ("corpus.jsonl", lines({"text": "x"}), "'_id'", 1),
        ("corpus.jsonl", lines({"_id": "d1"}), "'text'", 1),
        ("corpus.jsonl", lines({"_id": "d1", "text": "x", "title": 3}), "title", 1),
        ("corpus.jsonl", lines({"_id": "d1", "text": "x", "n": 2**70}), "metadata 'n'", 1),
        ("queries.jsonl", "\n" + lines({"_id": "q1", "text": " "}), "blank", 2),
        ("queries.jsonl", lines({"_id": "q1", "text": "a"}, {"_id": "q1", "text": "a"}), "twice", 2),
        ("qrels.tsv", "q1\td1\t1\nq9\td1\t1\n", "query 'q9'", 2),
        ("qrels.tsv", "q1\td1\t1\n\nq1\td9\t1\n", "document 'd9'", 3),
        ("qrels.tsv", "q1\td1\t1\nq1\td1\t1\n", "twice", 2),
        ("qrels.tsv", "q1\td1\tyes\n", "whole number", 1),
        ("qrels.tsv", "q1 d1 1\n", "tabs", 1),
        ("qrels.tsv", "q1\t0\td1\t1\n", "tabs", 1),
        ("labels.jsonl", lines({"query_id": "q9", "answers": []}), "query 'q9'", 1),
        ("labels.jsonl", lines({"query_id": "q1", "answers": []}), "labels.jsonl", 2),
        ("labels.jsonl", lines({"query_id": "q2", "answers": [{}]}), "document_id", 1),
        ("labels.jsonl", lines({"query_id": "q2", "answers": []}) * 2, "twice", 2),
    ],
)
def test_a_mistake_is_named_with_file_and_line(folder: Path, file: str, content: str, what: str, line: int) -> None:
    (folder / file).write_text(content)
    with pytest.raises(UsageError, match=what) as caught:
        read_collection(folder)
    # A contradiction between the two label files is shown where the grade stands.
    shown = "qrels.tsv" if what == "labels.jsonl" else file
    assert f"{shown}, line {line}" in caught.value.where


@pytest.mark.parametrize(
    ("file", "line", "mend"),
    [
        ("queries.jsonl", {"id": "q1", "text": "which?"}, '{"_id": "q1", "text": "..."}'),
        ("labels.jsonl", {"_id": "q1", "answers": []}, '{"query_id": "q1", "answers": []}'),
    ],
)
def test_an_id_under_another_name_is_mended_with_a_line(folder: Path, file: str, line: object, mend: str) -> None:
    (folder / file).write_text(lines(line))
    with pytest.raises(UsageError, match="non-blank id") as caught:
        read_collection(folder)
    assert caught.value.fix == f"write {mend}"


@pytest.mark.parametrize("file", ["queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(UsageError, match=file) as caught:
        read_collection(folder)
    assert "qrels.tsv" in caught.value.fix


def test_a_collection_without_a_label_is_refused(folder: Path) -> None:
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n")
    with pytest.raises(UsageError, match="no query has a label"):
        read_collection(folder)


def test_an_empty_corpus_is_refused(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("")
    with pytest.raises(UsageError, match="no document"):
        read_collection(folder)


def test_a_place_without_a_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no collection"):
        read_collection(tmp_path / "nowhere")


def test_the_handbook_is_a_collection() -> None:
    collection = read_collection(HANDBOOK)
    assert (len(collection.queries), len(collection.qrels), len(collection.unanswerable)) == (40, 32, 8)
    assert collection.unlabelled == ()
    assert collection.folder == HANDBOOK / "docs"
