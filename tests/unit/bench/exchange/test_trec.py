"""TREC's qrels and runs: there and back, and every row that is not in order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelled
from wellhead.bench.exchange import read_qrels, read_run, write_qrels, write_run
from wellhead.bench.labels import Label, LabelledQuery, Labels
from wellhead.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some.trec"


@given(labelled.labels(labelled.WORDS))
def test_queries_documents_and_grades_come_back(labels: Labels) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_qrels(Path(folder) / "some.qrels", labels)
        assert read_qrels(Path(folder) / "some.qrels").labels.qrels == labels.qrels


def test_qrels_are_four_fields_and_the_rest_is_said_to_be_left_out(file: Path) -> None:
    places = [
        Label(document_id="a.md", quote="one", grade=1, rater="ada"),
        Label(document_id="a.md", span=(3, 5), grade=3),
        Label(document_id="b.md", grade=0),
    ]
    queries = [
        LabelledQuery(query_id="q1", query="?", answers=tuple(places), tags=("x",)),
        LabelledQuery(query_id="q2", answers=()),
    ]
    notes = write_qrels(file, Labels(queries=tuple(queries)))
    assert file.read_text() == "q1 0 a.md 3\nq1 0 b.md 0\n"
    assert notes == (
        "TREC holds no quote: left out of 1 label",
        "TREC holds no span: left out of 1 label",
        "TREC holds no rater: left out of 1 label",
        "TREC holds no query text: left out of 1 query (q1)",
        "TREC holds no tags: left out of 1 query (q1)",
        "TREC cannot say unanswerable: left out of 1 query (q2)",
        "TREC holds one grade a document: 1 label joined with a higher or equal one",
    )


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\u00a0b", "a\nb", "\ufeffa"])
def test_an_id_that_would_be_read_as_something_else_is_not_written(file: Path, name: str) -> None:
    one = LabelledQuery(query_id="q", answers=(Label(document_id=name, grade=1),))
    with pytest.raises(UsageError, match="cannot stand in TREC's form"):
        write_qrels(file, Labels(queries=(one,)))
    with pytest.raises(UsageError, match="cannot stand in TREC's form"):
        write_run(file, {"q": [name]})
    assert not file.exists()


def test_tabs_runs_of_blanks_and_odd_white_space_in_ids_are_read(file: Path) -> None:
    file.write_text("q1\t0\ta.md\t2\r\n\nq1  Q0  b\u00a0c  0\n", encoding="utf-8")
    assert read_qrels(file).labels.qrels == {"q1": {"a.md": 2, "b\u00a0c": 0}}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("q1 0 b", "it has 3 fields, not 4"),
        ("q1 0 b 1 x", "it has 5 fields"),
        ("q1 0 b yes", "whole number"),
        ("q1 0 b 4", "0 to 3"),
        ("q1 0 b -1", "0 to 3"),
        ("q1 0 a 1", "twice"),
    ],
)
def test_a_row_of_qrels_that_is_not_in_order_is_named(file: Path, row: str, what: str) -> None:
    file.write_text("q1 0 a 1\n" + row)
    with pytest.raises(UsageError) as caught:
        read_qrels(file)
    assert what in str(caught.value)
    assert caught.value.where == f"{file}, line 2"


@given(st.dictionaries(labelled.WORDS, st.lists(labelled.WORDS, min_size=1, max_size=8, unique=True), max_size=4))
def test_a_run_comes_back_in_its_order_and_its_scores_always_fall(run: dict[str, list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "some.run"
        assert write_run(file, run) == ()
        read = read_run(file)
        assert (read.run, read.notes) == ({name: tuple(ranking) for name, ranking in run.items()}, ())
        last: dict[str, float] = {}
        for row in file.read_text(encoding="utf-8").splitlines():
            query_id, score = row.split(" ")[0], float(row.split(" ")[4])
            assert score < last.get(query_id, float("inf"))
            last[query_id] = score


def test_a_run_is_six_fields_and_says_what_it_leaves_out(file: Path) -> None:
    notes = write_run(file, {"q1": ["b", "a", "b"], "q2": []}, tag="mine")
    assert file.read_text() == "q1 Q0 b 1 2 mine\nq1 Q0 a 2 1 mine\n"
    assert notes == (
        "query q1: 1 repeated documents left out",
        "query q2 has an empty ranking, which a run in TREC's form cannot say",
    )


def test_a_foreign_run_is_ordered_by_score_and_its_doubts_are_told(file: Path) -> None:
    file.write_text("q1 Q0 a 1 0.5 x\nq1 Q0 b 2 0.9 x\nq2 Q0 z 2 1e-3 x\nq2 Q0 y 1 1e-3 x\n")
    read = read_run(file)
    assert read.run == {"q1": ("b", "a"), "q2": ("y", "z")}
    assert read.notes == (
        "1 query has equal scores, first q2: ordered by rank there",
        "in 1 query, first q1, the ranks contradict the scores: ordered by score, as TREC's tools do",
    )


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("q1 Q0 b 2 0.1", "5 fields, not 6"),
        ("q1 Q0 b two 0.1 x", "rank must be a whole number"),
        ("q1 Q0 b 2 nan x", "finite"),
        ("q1 Q0 b 2 -inf x", "finite"),
        ("q1 Q0 b 2 high x", "finite"),
        ("q1 Q0 a 2 0.1 x", "twice"),
    ],
)
def test_a_row_of_a_run_that_is_not_in_order_is_named(file: Path, row: str, what: str) -> None:
    file.write_text("q1 Q0 a 1 0.5 x\n" + row)
    with pytest.raises(UsageError) as caught:
        read_run(file)
    assert what in str(caught.value)
    assert caught.value.where == f"{file}, line 2"
