"""Many rows by their keys, however many."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from wellhead.backends.stores.embedded.among import rows_among


@pytest.mark.parametrize("size", [0, 1, 499, 500, 501, 1200])
def test_every_row_that_is_there_comes_once(size: int) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(0, 1200, 2)))
        found = list(rows_among(connection, "SELECT n FROM t WHERE n IN", list(range(size))))
    assert sorted(found) == [(n,) for n in range(0, size, 2)]
