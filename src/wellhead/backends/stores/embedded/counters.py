"""The counters of an index: they only rise, and each carries a checksum."""

from __future__ import annotations

import sqlite3

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.rows import damaged

__all__ = ["UNFIT", "count", "read_counter"]

UNFIT = "its bytes do not fit its checksum"


def read_counter(connection: sqlite3.Connection, name: str, where: str) -> int:
    """One of `schema.COUNTERS`."""
    row = connection.execute("SELECT value, checksum FROM counters WHERE name = ?", (name,)).fetchone()
    if row is None or checksum("counters", name, row[0]) != row[1]:
        damaged("counters", f"counter {name!r}", where, "it is gone" if row is None else UNFIT)
    return int(row[0])


def count(connection: sqlite3.Connection, name: str, where: str, by: int = 1) -> int:
    """Raise a counter; its new value."""
    value = read_counter(connection, name, where) + by
    connection.execute(
        "INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", (name, value, checksum("counters", name, value))
    )
    return value
