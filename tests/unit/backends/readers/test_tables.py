"""CSV and TSV as pipe tables."""

from __future__ import annotations

import csv

import pytest

from wellhead.backends.readers.tables import pipe_table, read_csv


def table(source: str) -> list[str]:
    reading = read_csv(source.encode(), "a.csv")
    assert reading.media_type == "text/markdown"
    return reading.text.splitlines()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [["name", "price, net", "n"], ["a", "1", "2"], ["b", "3", "4"]]
    source = "\r\n".join(delimiter.join(f'"{cell}"' if "," in cell else cell for cell in row) for row in rows)
    assert table(source) == [
        "| name | price, net | n |",
        "| --- | --- | --- |",
        "| a | 1 | 2 |",
        "| b | 3 | 4 |",
    ]


def test_decimal_commas_do_not_hide_the_semicolon() -> None:
    assert table("a;b;c\n1,5;2,5;3\n1,7;2;3\n")[2] == "| 1,5 | 2,5 | 3 |"


def test_ragged_rows_keep_every_cell() -> None:
    assert table("a,b\n1\n1,2,3\n\n") == ["| a | b |  |", "| --- | --- | --- |", "| 1 |  |  |", "| 1 | 2 | 3 |"]


def test_bars_and_line_breaks_in_cells() -> None:
    assert table('a,b\n"x|y","one\ntwo, ""three"""\n')[2] == '| x\\|y | one two, "three" |'


def test_unbalanced_quotes_swallow_nothing() -> None:
    assert table('a,b\n"5 inch,x\n7 inch,y\n') == ["| a | b |", "| --- | --- |", '| "5 inch | x |', "| 7 inch | y |"]


def test_one_column_and_no_row() -> None:
    assert table("word\none\n") == ["| word |", "| --- |", "| one |"]
    assert pipe_table([]) == ""


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_cell_may_be_as_long_as_its_file(quote: str) -> None:
    """The csv module refuses more than 131,072 characters unless told otherwise; afterwards it is as it was."""
    before = csv.field_size_limit()
    long = "x" * 200_000
    assert table(f"a,b\n{quote}{long}{quote},y\n")[2] == f"| {long} | y |"
    assert csv.field_size_limit() == before
