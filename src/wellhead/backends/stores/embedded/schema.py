"""The tables of `wellhead.sqlite`, their rows by name, and the format number."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from wellhead.backends.stores.embedded.advice import REBUILD
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.errors import CorruptStore, StaleIndex

__all__ = [
    "APPLICATION_ID",
    "COUNTERS",
    "FORMAT",
    "StoredDocument",
    "StoredPassage",
    "StoredSegment",
    "check_schema",
    "create_schema",
    "is_empty",
]

APPLICATION_ID = 0x57454C4C  # "WELL", in the file's header: tells our files from other programs'
FORMAT = 2

# documents.passages and scopes say how many rows there should be: a checksum cannot notice a row that is gone.
# Texts stand apart, so that reading the metadata of a scope does not read its texts.
# vectors has a rowid: without one, a vector of 1 kB would need a 4 kB overflow page of its own.
# A number of a passage is never given again: segments know their rows by it. `gone` holds those that were deleted and
# may still lie in a segment, or in the memory of a reader; `version` is that of the write that deleted them.
_TABLES = (
    """CREATE TABLE counters (
        name TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum BLOB NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE scopes (
        scope TEXT PRIMARY KEY, documents INTEGER NOT NULL, passages INTEGER NOT NULL, checksum BLOB NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE documents (
        doc INTEGER PRIMARY KEY, scope TEXT NOT NULL, id TEXT NOT NULL, origin TEXT NOT NULL, uri TEXT NOT NULL,
        title TEXT NOT NULL, media_type TEXT NOT NULL, language TEXT, metadata TEXT NOT NULL, digest BLOB NOT NULL,
        source BLOB NOT NULL, incomplete INTEGER NOT NULL, passages INTEGER NOT NULL, checksum BLOB NOT NULL,
        UNIQUE (scope, id)
    )""",
    "CREATE INDEX documents_by_id ON documents (id)",
    """CREATE TABLE texts (
        doc INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE, checksum BLOB NOT NULL, text TEXT NOT NULL
    )""",
    """CREATE TABLE passages (
        passage INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
        doc INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE, ordinal INTEGER NOT NULL,
        start INTEGER NOT NULL, stop INTEGER NOT NULL, first_byte INTEGER NOT NULL, last_byte INTEGER NOT NULL,
        heading TEXT NOT NULL, page INTEGER, context TEXT NOT NULL, flags TEXT NOT NULL, language TEXT,
        text_hash BLOB NOT NULL, digest BLOB NOT NULL, vector_key BLOB, stems BLOB NOT NULL, words BLOB NOT NULL,
        checksum BLOB NOT NULL, UNIQUE (doc, ordinal)
    )""",
    "CREATE INDEX passages_by_vector ON passages (vector_key) WHERE vector_key IS NOT NULL",
    "CREATE TABLE terms (term INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, checksum BLOB NOT NULL)",
    "CREATE TABLE vectors (key BLOB PRIMARY KEY, data BLOB NOT NULL, checksum BLOB NOT NULL)",
    "CREATE TABLE gone (passage INTEGER PRIMARY KEY, version INTEGER NOT NULL, checksum BLOB NOT NULL)",
    "CREATE INDEX gone_by_version ON gone (version)",
    """CREATE TABLE segments (
        name TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, rows INTEGER NOT NULL,
        version INTEGER NOT NULL, digest BLOB NOT NULL, checksum BLOB NOT NULL
    ) WITHOUT ROWID""",
)


# Of writes; the highest number of a passage and of a term that was given; of changes of the list of segments; and how
# often everything derived began anew.
COUNTERS = ("version", "passage", "term", "layout", "epoch")


class StoredDocument(NamedTuple):
    """A row of `documents`, in the order of its columns; text as UTF-8 bytes."""

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
    source: bytes
    incomplete: int
    passages: int
    checksum: bytes


class StoredPassage(NamedTuple):
    """A row of `passages`, in the order of its columns; text as UTF-8 bytes.

    `start`, `stop` count characters of the document's text, `first_byte`, `last_byte` bytes of its UTF-8 form.
    `stems` and `words` are int32 pairs (term, count); `vector_key` is None for a passage without a vector.
    """

    passage: int
    id: bytes
    doc: int
    ordinal: int
    start: int
    stop: int
    first_byte: int
    last_byte: int
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


class StoredSegment(NamedTuple):
    """A row of `segments`: a file that holds the rows numbered `first` to `last` as they were live at `version`."""

    name: bytes
    first: int
    last: int
    rows: int
    version: int
    digest: bytes
    checksum: bytes


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the database holds no tables yet."""
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def create_schema(connection: sqlite3.Connection) -> None:
    """Create the tables, inside the caller's transaction."""
    for statement in _TABLES:
        connection.execute(statement)
    # They begin at 0 and are never deleted: one that is missing is lost.
    rows = ((name, 0, checksum("counters", name, 0)) for name in COUNTERS)
    connection.executemany("INSERT INTO counters VALUES (?, ?, ?)", rows)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def check_schema(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a database that is not ours, or not of this format.

    Raises:
        CorruptStore: another program's database, or tables that Wellhead did not write.
        StaleIndex: a format newer than this version of Wellhead knows.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (number,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise CorruptStore(
            "this database is not a Wellhead index",
            where=where,
            why=f"its header names application {application:#x}, not {APPLICATION_ID:#x}",
            fix="choose another folder for the index; the file was left as it is",
        )
    if number > FORMAT:
        raise StaleIndex(
            f"the index has format {number}, newer than this Wellhead reads",
            where=where,
            why=f"this version reads formats up to {FORMAT}",
            fix="upgrade: pip install -U wellhead",
        )
    found = connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'")
    if number < FORMAT or {sql for (sql,) in found} != {sql.encode() for sql in _TABLES}:
        raise CorruptStore(
            "the tables of the index are not those that Wellhead writes",
            where=where,
            why=f"format {number}, but other tables, indexes or triggers than that format has",
            fix=REBUILD,
        )
