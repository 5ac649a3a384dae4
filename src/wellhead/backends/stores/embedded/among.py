"""Many rows by their keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["rows_among"]

_AT_ONCE = 500


def rows_among(
    connection: sqlite3.Connection, sql: str, values: Sequence[int | str | bytes]
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query that ends in "IN", for these values: a few hundred at a time, far quicker than one by one."""
    for first in range(0, len(values), _AT_ONCE):
        some = values[first : first + _AT_ONCE]
        yield from connection.execute(f"{sql} ({', '.join('?' * len(some))})", some)
