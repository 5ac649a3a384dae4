"""Older formats become the current one: a named function a step, all steps in one transaction.

A step reads every row as its own format wrote it, checks it, and writes it anew. Where a row is damaged nothing is
changed: an index that cannot be brought over whole is not brought over.
"""

# ruff: noqa: S608  (the names of tables in statements are constants of this file)
from __future__ import annotations

import hashlib
import sqlite3
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, NoReturn

from wellhead.backends.stores.embedded.advice import REBUILD
from wellhead.backends.stores.embedded.checksum import Value, checksum, checksum_of_format_1
from wellhead.backends.stores.embedded.failpoint import reached
from wellhead.backends.stores.embedded.rows import short, shown
from wellhead.backends.stores.embedded.schema import APPLICATION_ID, FORMAT, create_schema
from wellhead.errors import CorruptStore, StaleIndex

__all__ = ["from_1_to_2", "migrate", "refuse_older"]


def migrate(connection: sqlite3.Connection, where: str) -> None:
    """Bring an index of an older format to the current one; one that is current, newer or not ours stays as it is.

    Args:
        connection: may write, and is in no transaction.

    Raises:
        CorruptStore: a row is damaged, or the tables are not those of that format; nothing is changed then.
    """
    if _next_step(connection) is None:
        return
    connection.execute("PRAGMA foreign_keys = OFF")  # to drop a table would delete what refers to it
    try:
        connection.execute("BEGIN IMMEDIATE")
        while (step := _next_step(connection)) is not None:  # asked again: another process may have been faster
            step(connection, where)
        reached("migrate.before_commit")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise
    finally:
        connection.execute("PRAGMA foreign_keys = ON")


def refuse_older(connection: sqlite3.Connection, where: str) -> None:
    """Refuse an index of an older format where nothing may be written.

    Raises:
        StaleIndex: it must be opened for writing once.
    """
    if _next_step(connection) is not None:
        raise StaleIndex(
            f"the index has format {_number(connection, 'user_version')}, older than this Wellhead reads",
            where=where,
            why=f"format {FORMAT} is read, and to migrate it takes the right to write, which this handle does not have",
            fix="open it for writing once: `wellhead index FOLDER`, or Index.open(...) without read_only in a program",
        )


_Step = Callable[[sqlite3.Connection, str], None]


def _next_step(connection: sqlite3.Connection) -> _Step | None:
    """What takes the index one format further; None where nothing has to be done, or nothing can."""
    if _number(connection, "application_id") != APPLICATION_ID:
        return None
    return _STEPS.get(_number(connection, "user_version"))


def _number(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def from_1_to_2(connection: sqlite3.Connection, where: str) -> None:
    """Rows get another checksum, and counts one at all; passages also know their place in bytes.

    Raises:
        CorruptStore: a row is damaged or gone.
    """
    # The day when there is a format 3, the tables of format 2 are written down here instead of created from `schema`.
    old = _Format1(connection, where)
    old.move_aside()
    create_schema(connection)
    old.copy("settings", "settings")
    old.copy("terms", "vocabulary")
    old.copy("vectors", "vectors")
    old.copy_documents()
    reached("migrate.middle")
    old.count()
    old.drop()


_TABLES_OF_1: Mapping[str, str] = {
    "counters": "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "settings": (
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID"
    ),
    "scopes": """CREATE TABLE scopes (
        scope TEXT PRIMARY KEY, documents INTEGER NOT NULL, passages INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "documents": """CREATE TABLE documents (
        doc INTEGER PRIMARY KEY, scope TEXT NOT NULL, id TEXT NOT NULL, origin TEXT NOT NULL, uri TEXT NOT NULL,
        title TEXT NOT NULL, media_type TEXT NOT NULL, language TEXT, metadata TEXT NOT NULL, digest BLOB NOT NULL,
        incomplete INTEGER NOT NULL, passages INTEGER NOT NULL, checksum BLOB NOT NULL, UNIQUE (scope, id)
    )""",
    "texts": """CREATE TABLE texts (
        doc INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE, checksum BLOB NOT NULL, text TEXT NOT NULL
    )""",
    "passages": """CREATE TABLE passages (
        passage INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        doc INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, ordinal INTEGER NOT NULL,
        start INTEGER NOT NULL, stop INTEGER NOT NULL, heading TEXT NOT NULL, page INTEGER, context TEXT NOT NULL,
        flags TEXT NOT NULL, language TEXT, text_hash BLOB NOT NULL, digest BLOB NOT NULL, vector_key BLOB,
        stems BLOB NOT NULL, words BLOB NOT NULL, checksum BLOB NOT NULL, UNIQUE (doc, ordinal)
    )""",
    "terms": "CREATE TABLE terms (term INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, checksum BLOB NOT NULL)",
    "vectors": "CREATE TABLE vectors (key BLOB PRIMARY KEY, data BLOB NOT NULL, checksum BLOB NOT NULL)",
}
_INDEXES_OF_1: Mapping[str, str] = {
    "documents_by_id": "CREATE INDEX documents_by_id ON documents (id)",
    "passages_by_vector": "CREATE INDEX passages_by_vector ON passages (vector_key) WHERE vector_key IS NOT NULL",
}


class _Document1(NamedTuple):
    doc: int
    scope: bytes
    id: bytes
    origin: bytes
    uri: bytes
    title: bytes
    media_type: bytes
    language: bytes | None
    metadata: bytes
    digest: bytes
    incomplete: int
    passages: int
    checksum: bytes


class _Passage1(NamedTuple):
    passage: int
    id: bytes
    doc: int
    ordinal: int
    start: int
    stop: int
    heading: bytes
    page: int | None
    context: bytes
    flags: bytes
    language: bytes | None
    text_hash: bytes
    digest: bytes
    vector_key: bytes | None
    stems: bytes
    words: bytes
    checksum: bytes


class _Format1:
    """The tables of format 1 under other names, and how their rows come into those of format 2."""

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._connection = connection
        self._where = where

    def move_aside(self) -> None:
        sql = "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        found = {text for (text,) in self._connection.execute(sql)}
        if found != {text.encode() for text in (*_TABLES_OF_1.values(), *_INDEXES_OF_1.values())}:
            self._refuse(
                "its tables are not those that this format has", "other tables, indexes or triggers stand there"
            )
        for name in _INDEXES_OF_1:
            self._connection.execute(f"DROP INDEX {name}")
        for name in _TABLES_OF_1:
            self._connection.execute(f"ALTER TABLE {name} RENAME TO {name}_of_1")

    def drop(self) -> None:
        for name in _TABLES_OF_1:
            self._connection.execute(f"DROP TABLE {name}_of_1")

    def copy(self, table: str, what: str) -> None:
        """The rows of a table whose columns have not changed."""
        places = ", ".join("?" * len(self._columns(table)))
        self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", self._same(table, what))

    def _same(self, table: str, what: str) -> Iterator[tuple[Value, ...]]:
        text = {place for place, kind in enumerate(self._columns(table)) if kind == b"TEXT"}
        for row in self._connection.execute(f"SELECT * FROM {table}_of_1 NOT INDEXED"):
            if checksum_of_format_1(table, *row[:-1]) != row[-1]:
                self._damaged(f"a row of the {what}")
            values = tuple(_text(value) if place in text else value for place, value in enumerate(row[:-1]))
            yield (*values, checksum(table, *values))

    def _columns(self, table: str) -> list[bytes]:
        """The types of the columns."""
        return [kind for _, _, kind, *_ in self._connection.execute(f"PRAGMA table_info({table})")]

    def copy_documents(self) -> None:
        """Each document, its text, and its passages."""
        sql = "SELECT * FROM documents_of_1 NOT INDEXED ORDER BY doc"
        for head in map(_Document1._make, self._connection.execute(sql)):
            if checksum_of_format_1("documents", *head[:-1]) != head.checksum:
                self._damaged(f"document {shown(head.id)}")
            text = self._copy_text(head)
            self._copy_head(head)
            found = self._connection.execute("SELECT * FROM passages_of_1 WHERE doc = ? ORDER BY ordinal", (head.doc,))
            rows = [_Passage1(*row) for row in found]
            if len(rows) != head.passages:
                self._damaged(f"document {shown(head.id)}", f"{len(rows)} of its {head.passages} passages are there")
            self._copy_passages(head, rows, text)
        for table in ("texts", "passages"):
            self._check_nothing_left(table)
        self._check_terms()

    def _check_terms(self) -> None:
        """Every term that passages refer to is in the vocabulary."""
        used: set[int] = set()
        for blobs in self._connection.execute("SELECT stems, words FROM passages"):
            for blob in blobs:
                pairs = array("i", blob)
                if sys.byteorder == "big":
                    pairs.byteswap()
                used.update(pairs[::2])
        if lost := used - {term for (term,) in self._connection.execute("SELECT term FROM terms")}:
            self._damaged("the vocabulary", f"{len(lost)} terms that passages refer to are gone")

    def _copy_head(self, head: _Document1) -> None:
        values = (
            head.doc,
            *map(_text, (head.scope, head.id, head.origin, head.uri, head.title, head.media_type, head.language)),
            _text(head.metadata),
            head.digest,
            b"",  # what file it came from nobody wrote down: the next sync reads it once more
            head.incomplete,
            head.passages,
        )
        self._insert("documents", (*values, checksum("documents", *values)))

    def _copy_text(self, head: _Document1) -> bytes:
        sql = "SELECT checksum, text FROM texts_of_1 WHERE doc = ?"
        stored, text = self._connection.execute(sql, (head.doc,)).fetchone() or (None, None)
        if text is None or checksum_of_format_1("texts", head.doc, text) != stored:
            self._damaged(f"the text of document {shown(head.id)}")
        self._insert("texts", (head.doc, checksum("texts", head.doc, text), text.decode()))
        return bytes(text)

    def _copy_passages(self, head: _Document1, rows: list[_Passage1], text: bytes) -> None:
        characters = text.decode()
        for row in rows:
            what = f"passage {short(row.id)} of document {shown(head.id)}"
            if checksum_of_format_1("passages", *row[1:-1]) != row.checksum:
                self._damaged(what)
            own = characters[row.start : row.stop].encode()
            if hashlib.sha256(own).digest() != row.text_hash:
                self._damaged(what, "the document's text no longer holds what was indexed")
            first_byte = len(characters[: row.start].encode())
            values = (
                row.passage,
                _text(row.id),
                *row[2:6],
                first_byte,
                first_byte + len(own),
                _text(row.heading),
                row.page,
                *map(_text, (row.context, row.flags, row.language)),
                *row[11:-1],
            )
            self._insert("passages", (*values, checksum("passages", *values)))

    def _insert(self, table: str, values: tuple[Value, ...]) -> None:
        self._connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)

    def _check_nothing_left(self, table: str) -> None:
        (there,) = self._connection.execute(f"SELECT count(*) FROM {table}_of_1 NOT INDEXED").fetchone()
        (copied,) = self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        if there != copied:
            self._damaged(f"the list of {table}", f"{there - copied} of them belong to no document")

    def count(self) -> None:
        """The counts, checked against the rows, and the counters."""
        sql = "SELECT scope, count(*), sum(passages) FROM documents NOT INDEXED GROUP BY scope ORDER BY scope"
        there = self._connection.execute(sql).fetchall()
        if there != self._connection.execute("SELECT * FROM scopes_of_1 ORDER BY scope").fetchall():
            self._damaged("the list of documents", "another number is there than was written")
        for scope, *counts in there:
            self._insert("scopes", (_text(scope), *counts, checksum("scopes", scope, *counts)))
        counters = dict(self._connection.execute("SELECT name, value FROM counters_of_1"))
        (last,) = self._connection.execute("SELECT max(passage) FROM passages").fetchone()
        for name, value in (("version", counters.get(b"version", 0)), ("passage", last or 0)):
            if not isinstance(value, int):
                self._damaged(f"counter {name!r}", f"it is {shown(value)}")
            row = (name, value, checksum("counters", name, value))
            self._connection.execute("INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", row)

    def _damaged(self, what: str, why: str = "its bytes do not fit its checksum") -> NoReturn:
        self._refuse(f"{what} is damaged", why)

    def _refuse(self, what: str, why: str) -> NoReturn:
        raise CorruptStore(
            f"the index cannot be brought from format 1 to format 2: {what}",
            where=self._where,
            why=f"{why}; nothing was changed",
            fix=f"{REBUILD}; or open it with the version that wrote it, and mend it there",
        )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


_STEPS: Mapping[int, _Step] = {1: from_1_to_2}
