"""What can still be read of a damaged file: every row for itself, around pages that cannot be read."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.rows import is_sound, to_document
from wellhead.backends.stores.embedded.schema import APPLICATION_ID, FORMAT, StoredDocument
from wellhead.errors import CorruptStore
from wellhead.ports import Kept
from wellhead.records import Refusal

__all__ = ["HOPELESS", "Salvage"]

HOPELESS = "restore a backup, or delete the folder of the index and index the documents again"

_Row = tuple[Any, ...]
_Name = tuple[bytes, bytes]
# Rows that are asked for at once, and how many numbers in a row may give nothing before a table is taken for ended.
_PIECE = 500
_SILENCE = 100_000
# A number beyond this was never given, whatever a damaged row says.
_MOST = 2**48


class Salvage:
    """The sound rows of a damaged file. Only what its checksum vouches for is given.

    Args:
        connection: nobody else may write meanwhile.

    Raises:
        CorruptStore: not even the list of tables can be read, or they are another program's.
    """

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._connection = connection
        self._refuse_foreign(where)
        self.lost: list[Refusal] = []
        self.unnamed = 0
        self.uncounted = False
        self._torn = False

    def _refuse_foreign(self, where: str) -> None:
        try:
            found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            (number,) = self._connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            what, why = "nothing of the index can be read any more", f"its first page is damaged: {error}"
            raise CorruptStore(what, where=where, why=why, fix=HOPELESS) from error
        ours = {b"documents", b"texts", b"passages"} <= {name for (name,) in found}
        if not ours or (application != APPLICATION_ID and number != FORMAT):
            raise CorruptStore(
                "this is no index that can be repaired",
                where=where,
                why="its tables are not those of an index",
                fix="name the folder of an index; the file was left as it is",
            )
        if 0 < number < FORMAT:
            why = f"it has format {number}, and only format {FORMAT} is repaired"
            raise CorruptStore("the index is damaged", where=where, why=why, fix=HOPELESS)

    def settings(self) -> dict[str, str]:
        """What the index was made with, as far as it is sound."""
        sound: dict[str, str] = {}
        with suppress(sqlite3.DatabaseError):
            for name, value, stored in self._connection.execute("SELECT name, value, checksum FROM settings"):
                if checksum("settings", name, value) == stored:
                    sound[name.decode()] = value.decode()
        return sound

    def counters(self) -> dict[str, int]:
        """The version and the highest number of a passage: at least what they were."""
        version = self._highest(
            "SELECT value FROM counters WHERE name = 'version'",
            "SELECT max(version) FROM gone",
            "SELECT max(version) FROM segments",
        )
        passage = self._highest(
            "SELECT value FROM counters WHERE name = 'passage'",
            "SELECT max(passage) FROM passages",
            "SELECT max(passage) FROM gone",
            "SELECT max(last) FROM segments",
        )
        # Where the count of writes is lost: a number that no index has come to by counting.
        return {
            "version": version if self._is_counted("version") else max(version, int(time.time())),
            "passage": passage,
        }

    def _highest(self, *questions: str) -> int:
        found = [0]
        for sql in questions:
            with suppress(sqlite3.DatabaseError):
                found += [value for (value,) in self._connection.execute(sql) if isinstance(value, int)]
        return max(value for value in found if value < _MOST)

    def _is_counted(self, name: str) -> bool:
        sql = "SELECT value, checksum FROM counters WHERE name = ?"
        with suppress(sqlite3.DatabaseError):
            row = self._connection.execute(sql, (name,)).fetchone()
            return row is not None and checksum("counters", name, row[0]) == row[1]
        return False

    def vectors(self) -> Iterator[_Row]:
        """The sound rows of `vectors`."""
        for _, row in self._rows("vectors", "key, data, checksum"):
            if row is not None and checksum("vectors", *row[:-1]) == row[-1]:
                yield row

    def documents(self) -> Iterator[Kept]:
        """Every document of which row and text are sound.

        At the end `lost` names the others, `unnamed` counts those without a name, and `uncounted` says whether there
        may be more.
        """
        names, kept, lost = self._names(), set[_Name](), dict[_Name, str]()
        for doc, row in self._rows("documents", "*"):
            name = names.pop(doc, None if row is None else (_bytes(row[1]), _bytes(row[2])))
            found = "its row cannot be read" if row is None else self._document(StoredDocument(*row))
            if not isinstance(found, str):
                kept.add((found.scope.encode(), found.document.id.encode()))
                yield found
            elif name is not None:
                lost[name] = found
        lost |= dict.fromkeys(names.values(), "its row is gone")
        self.lost = [_refusal(name, lost[name]) for name in sorted(lost.keys() - kept)]
        written = self._written()
        self.unnamed = max(0, (written or 0) - len(kept) - len(self.lost))
        # Without counts a table that can be read from end to end, and its index, vouch for themselves.
        self.uncounted = (written is None or written < len(kept)) and self._torn

    def _document(self, head: StoredDocument) -> Kept | str:
        """A document with its text, or why there is none."""
        if not is_sound(head):
            return "its row is damaged"
        try:
            sql = "SELECT checksum, text FROM texts WHERE doc = ?"
            row = self._connection.execute(sql, (head.doc,)).fetchone()
        except sqlite3.DatabaseError:
            return "its text cannot be read"
        if row is None:
            return "its text is gone"
        if checksum("texts", head.doc, row[1]) != row[0]:
            return "its text is damaged"
        return Kept(to_document(head, row[1]), head.scope.decode(), head.origin.decode())

    def _names(self) -> dict[int, _Name]:
        """Scope and id of every document, as SQLite's own index has them beside the table."""
        names: dict[int, _Name] = {}
        sql = "SELECT doc, scope, id FROM documents INDEXED BY sqlite_autoindex_documents_1"
        try:
            names.update((doc, (_bytes(scope), _bytes(name))) for doc, scope, name in self._connection.execute(sql))
        except sqlite3.DatabaseError:
            self._torn = True
        return names

    def _written(self) -> int | None:
        """How many documents there should be, or None where that cannot be told."""
        try:
            rows = self._connection.execute("SELECT * FROM scopes").fetchall()
        except sqlite3.DatabaseError:
            return None
        sound = [row for row in rows if checksum("scopes", *row[:-1]) == row[-1]]
        return sum(row[1] for row in sound) if len(sound) == len(rows) else None

    def _rows(self, table: str, columns: str) -> Iterator[tuple[int, _Row | None]]:
        """The rows of a table by number; None for each number whose row cannot be read, also where there is none."""
        at: int | None = self._next(table, 1)
        silence = 0
        while at is not None and silence < _SILENCE:
            piece = list(self._some(table, columns, at, at + _PIECE - 1))
            yield from piece
            silence = 0 if any(row is not None for _, row in piece) else silence + _PIECE
            at = self._next(table, at + _PIECE)

    def _next(self, table: str, first: int) -> int | None:
        """The first number from `first` on, or None; `first` itself where that cannot be told."""
        try:
            sql = f"SELECT min(rowid) FROM {table} NOT INDEXED WHERE rowid >= ?"  # noqa: S608 (names of ours)
            (found,) = self._connection.execute(sql, (first,)).fetchone()
        except sqlite3.DatabaseError:
            self._torn = True
            return first
        return found if found is None or first <= found < _MOST else None

    def _some(self, table: str, columns: str, first: int, last: int) -> Iterator[tuple[int, _Row | None]]:
        """The rows of these numbers: in halves, and halves of halves, where a page cannot be read."""
        # To ask for one by "between" would look at the one behind it too.
        which = "rowid = ?1" if first == last else "rowid BETWEEN ?1 AND ?2"
        sql = f"SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE {which} ORDER BY rowid"  # noqa: S608 (as above)
        try:
            rows = self._connection.execute(sql, (first, last)[: which.count("?")]).fetchall()
        except sqlite3.DatabaseError:
            self._torn = True
            if first == last:
                yield first, None
                return
            middle = (first + last) // 2
            yield from self._some(table, columns, first, middle)
            yield from self._some(table, columns, middle + 1, last)
        else:
            yield from ((row[0], row[1:]) for row in rows)


def _bytes(value: object) -> bytes:
    """A stored text, whatever it has become."""
    return value if isinstance(value, bytes) else str(value).encode()


def _refusal(name: _Name, reason: str) -> Refusal:
    scope, document = (part.decode("utf-8", "replace") for part in name)
    return Refusal(id=document, reason=f"{reason} (scope {scope!r})" if scope else reason)
