"""Labels as CSV: there and back, and every row that is not in order."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given

import labelled
from wellhead.bench.exchange import read_csv, write_csv
from wellhead.bench.exchange.table import COLUMNS
from wellhead.bench.labels import Label, LabelledQuery, Labels
from wellhead.errors import UsageError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


@given(labelled.labels())
def test_all_but_the_needs_comes_back(labels: Labels) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "labels.csv"
        notes = write_csv(file, labels)
        without = tuple(msgspec.structs.replace(one, need="") for one in labels.queries)
        assert read_csv(file).labels == Labels(queries=without)
        needs = [note for note in notes if "formula" not in note]
        assert bool(needs) == any(one.need for one in labels.queries)
        assert all(note.startswith("CSV holds no need") for note in needs)


@given(labelled.labels())
def test_another_reader_of_csv_reads_the_same_cells(labels: Labels) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "labels.csv"
        write_csv(file, labels)
        with file.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
    judged = [(row["query_id"], row["document_id"], row["quote"], row["grade"]) for row in rows if row["document_id"]]
    assert judged == [(name, one.document_id, one.quote, str(one.grade)) for name, one in labels]


def test_a_table_as_a_person_writes_it(file: Path) -> None:
    file.write_bytes(
        b"\xef\xbb\xbfgrade,document_id,query_id,query,tags,quote\r\n"
        b'2,keys.md,q1,"how often, please?",how-to; near,"once ""a"" year"\r\n'
        b'0,fees.md,q1,"how often, please?",how-to; near,\r\n'
        b"\r\n,,q2,what?,,\r\n"
    )
    first, second = read_csv(file).labels.queries
    assert (first.query_id, first.query, first.tags) == ("q1", "how often, please?", ("how-to", "near"))
    assert first.answers == (
        Label(document_id="fees.md", grade=0),
        Label(document_id="keys.md", quote='once "a" year', grade=2),
    )
    assert (second.query_id, second.unanswerable) == ("q2", True)


def test_what_a_spreadsheet_might_run_is_told_and_kept_as_it_is(file: Path) -> None:
    label = Label(document_id="d", quote='=HYPERLINK("x")', grade=1)
    labels = Labels(queries=(LabelledQuery(query_id="q1", query="?", answers=(label,)),))
    assert write_csv(file, labels) == ("1 cell begins as a formula does: let a spreadsheet read it as text",)
    assert read_csv(file).labels == labels


def test_a_tag_that_would_become_two_is_not_written(file: Path) -> None:
    one = LabelledQuery(query_id="q1", tags=("a;b",), answers=())
    with pytest.raises(UsageError, match="semicolon"):
        write_csv(file, Labels(queries=(one,)))
    assert not file.exists()


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ("query_id,document,grade", "unknown column 'document'"),
        ("query_id,document_id", "the header lacks grade"),
        ("query_id,document_id,grade,grade", "column 'grade' stands there twice"),
        ("", "the header lacks query_id, document_id, grade"),
    ],
)
def test_a_header_that_is_not_in_order_is_refused(file: Path, header: str, what: str) -> None:
    file.write_text(header + "\nq1,d,1\n")
    with pytest.raises(UsageError, match=what) as caught:
        read_csv(file)
    assert caught.value.where == f"{file}, line 1"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("q1,?,d2,,,,1", "7 cells, not 10"),
        ("q1,?,d2,,,,,,,", "grade must be a whole number"),
        ("q1,?,d2,,,,4,,,", "0 to 3"),
        ("q1,?,d2,,3,,1,,,", "start and end must be there together"),
        ("q1,?,d2,,x,5,1,,,", "start must be a whole number"),
        ("q1,?,d2,,5,5,1,,,", "end after it begins"),
        ("q1,?,d2,abc,0,5,1,,,", "different length"),
        ("q1,other?,d2,,,,1,,,", "another 'query'"),
        ("q1,?,d2,,,,1,,,x", "another 'tags'"),
        ("q1,?,d1,,,,2,,,", "stands there twice"),
        ("q1,?,,,,,,,,", "said to be unanswerable"),
        ("q1,?,,,,,1,,,", "a row without a document has a grade"),
        (" ,?,d2,,,,1,,,", "query_id must not be blank"),
        ("q1,?,d2,,,,1,,now,", "ISO 8601"),
        ("q2,?,d2,,,,1,,,a;;b", "tag must not be blank"),
        ('q1,?,d2,"open,,,1,,,', "malformed CSV"),
    ],
)
def test_a_row_that_is_not_in_order_is_named(file: Path, row: str, what: str) -> None:
    file.write_text(",".join(COLUMNS) + "\nq1,?,d1,,,,1,,,\n" + row + "\n")
    with pytest.raises(UsageError) as caught:
        read_csv(file)
    assert what in str(caught.value)
    assert caught.value.where.startswith(f"{file}, line ")
    assert what == "malformed CSV" or caught.value.where == f"{file}, line 3"
