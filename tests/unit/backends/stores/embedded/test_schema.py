"""The named rows follow the tables, and no two rows share the bytes under a checksum."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage, create_schema

values = st.lists(st.none() | st.integers(0, 99) | st.text("0|:1N", max_size=4) | st.binary(max_size=3), max_size=4)


@pytest.mark.parametrize(("table", "row"), [("documents", StoredDocument), ("passages", StoredPassage)])
def test_rows_by_name_follow_the_order_of_the_columns(table, row):
    with closing(sqlite3.connect(":memory:")) as connection:
        create_schema(connection)
        columns = tuple(name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})"))
    assert columns == row._fields


def as_stored(row):
    return tuple(value.encode() if isinstance(value, str) else value for value in row)


@given(values, values)
def test_only_equal_rows_have_equal_checksums(left, right):
    same = as_stored(left) == as_stored(right)
    assert (checksum("t", *left) == checksum("t", *right)) == same
    assert checksum("t", *left) != checksum("u", *left)
    assert checksum("t", *left) == checksum("t", *as_stored(left))
