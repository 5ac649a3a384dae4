"""All labels of a collection, and the table of forms."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellhead.bench.exchange import FORMS, collection_labels, export_labels, import_labels
from wellhead.bench.labels import Labels, read_labels, write_labels
from wellhead.errors import UsageError

HANDBOOK = Path(__file__).parents[4] / "examples" / "handbook"


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection whose labels stand partly in labels.jsonl and partly in the qrels."""
    root = tmp_path / "mine"
    root.mkdir()
    (root / "corpus.jsonl").write_text(lines({"_id": "a", "text": "one"}, {"_id": "b", "text": "two"}))
    (root / "queries.jsonl").write_text(lines(*({"_id": f"q{n}", "text": f"{n}?"} for n in (1, 2, 3))))
    (root / "qrels.tsv").write_text("q1\ta\t1\nq2\tb\t2\n")
    answer = {"document_id": "b", "quote": "two", "grade": 2}
    (root / "labels.jsonl").write_text(
        lines({"query_id": "q3", "answers": []}, {"query_id": "q2", "query": "own?", "answers": [answer]})
    )
    return root


def test_labels_come_first_and_the_qrels_fill_in(folder: Path) -> None:
    held = collection_labels(folder)
    assert [(one.query_id, one.query, one.grades) for one in held.labels.queries] == [
        ("q3", "3?", {}),
        ("q2", "own?", {"b": 2}),
        ("q1", "1?", {"a": 1}),
    ]
    assert held.notes == ()


def test_a_difference_between_the_two_is_told(folder: Path) -> None:
    (folder / "qrels.tsv").write_text("q1\ta\t1\nq2\tb\t1\n")
    held = collection_labels(folder)
    assert held.labels.qrels["q2"] == {"b": 2}
    assert held.notes == ("query q2: the qrels say otherwise than labels.jsonl, which counts here",)


def test_labels_alone_are_enough(folder: Path) -> None:
    (folder / "qrels.tsv").unlink()
    assert collection_labels(folder).labels == read_labels(folder / "labels.jsonl")
    (folder / "labels.jsonl").unlink()
    with pytest.raises(UsageError, match="no labels here"):
        collection_labels(folder)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_brings_the_grades_of_the_handbook_back(tmp_path: Path, form: str) -> None:
    written = export_labels(HANDBOOK, form, tmp_path / "out")  # type: ignore[arg-type]
    read = import_labels(tmp_path / "out", form)  # type: ignore[arg-type]
    assert read.labels.qrels == written.labels.qrels == read_labels(HANDBOOK / "labels.jsonl").qrels
    assert (form == "csv") == (written.notes == ())


def test_csv_brings_the_labels_of_the_handbook_back_whole(tmp_path: Path) -> None:
    export_labels(HANDBOOK, "csv", tmp_path / "out.csv")
    assert import_labels(tmp_path / "out.csv", "csv").labels == read_labels(HANDBOOK / "labels.jsonl")


@given(
    st.sampled_from(["trec", "json", "csv"]),
    st.one_of(st.binary(max_size=40), st.text('q1,"{}[]:0 d\n\r\t', max_size=40)),
)
def test_whatever_a_file_holds_it_is_read_or_refused_in_our_words(form: str, content: bytes | str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "some"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        where, labels = str(file), Labels(queries=())
        try:
            labels = import_labels(file, form).labels  # type: ignore[arg-type]
        except UsageError as error:
            where = error.where
        assert where.startswith(str(file))
        write_labels(file, labels)
        assert read_labels(file) == labels


def test_a_form_that_is_not_known_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="no form named 'tsv'") as caught:
        import_labels(folder, "tsv")  # type: ignore[arg-type]
    assert "did you mean 'csv'?" in caught.value.fix
    with pytest.raises(UsageError, match="no form named 'tsv'"):
        export_labels(folder, "tsv", folder / "x")  # type: ignore[arg-type]
