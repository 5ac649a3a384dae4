"""The numbers of terms: looked up, given to new ones, and remembered from one write to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import filterfalse

from wellhead.backends.stores.embedded.among import rows_among
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.counters import count, read_counter
from wellhead.backends.stores.embedded.rows import damaged, shown

__all__ = ["TermNumbers", "delete_terms"]

_MOST = 500_000


class TermNumbers:
    """What one process knows of the vocabulary.

    The counter `term` rises with every term that is written or deleted. So while it is what it was after the last
    write of this process, everything that is known still holds.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._upto = -1

    def of(self, connection: sqlite3.Connection, terms: Iterable[str], where: str) -> Mapping[str, int]:
        """The number of each of these terms, and of others; new terms get the next numbers.

        Whoever undoes the transaction must call `forget`.

        Raises:
            CorruptStore: the vocabulary is damaged.
        """
        if read_counter(connection, "term", where) != self._upto or len(self._known) > _MOST:
            self._known.clear()
        used = dict.fromkeys(terms)
        self._known.update(_stored(connection, list(filterfalse(self._known.__contains__, used)), where))
        self._known.update(_given(connection, list(filterfalse(self._known.__contains__, used)), where))
        self._upto = read_counter(connection, "term", where)
        return self._known

    def forget(self) -> None:
        """Know nothing any more."""
        self._known.clear()
        self._upto = -1


def _stored(connection: sqlite3.Connection, terms: Sequence[str], where: str) -> dict[str, int]:
    """The numbers of those of these terms that are there."""
    rows_found = rows_among(connection, "SELECT word, term FROM terms WHERE word IN", terms)
    found: dict[str, int] = {word.decode(): number for word, number in rows_found}
    # SQLite answers that out of its index alone: a damaged entry would give a word the number of another, or none.
    words = dict(rows_among(connection, "SELECT term, word FROM terms WHERE term IN", list(found.values())))
    for term, number in found.items():
        if (word := words.get(number)) != term.encode():
            damaged("terms", f"the entry of term {number}", where, f"it leads to {shown(word)}")
    return found


def _given(connection: sqlite3.Connection, terms: Sequence[str], where: str) -> dict[str, int]:
    """Write new terms; never under a number that was given before, also not to one that was deleted since."""
    if not terms:
        return {}
    (highest,) = connection.execute("SELECT coalesce(max(term), 0) FROM terms").fetchone()
    given = read_counter(connection, "term", where)
    last = max(highest, given)
    count(connection, "term", where, last + len(terms) - given)
    numbered = dict(zip(terms, range(last + 1, last + 1 + len(terms)), strict=True))
    rows = ((number, word, checksum("terms", number, word)) for word, number in numbered.items())
    connection.executemany("INSERT INTO terms VALUES (?, ?, ?)", rows)
    return numbered


def delete_terms(connection: sqlite3.Connection, numbers: Sequence[int], where: str) -> None:
    """Delete terms; the counter rises, so that no process goes on with what it knows of them."""
    if not numbers:
        return
    connection.executemany("DELETE FROM terms WHERE term = ?", ((number,) for number in numbers))
    count(connection, "term", where)
