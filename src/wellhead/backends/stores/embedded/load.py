"""Reading documents, passages and parts out of the tables; every row is checked on the way."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from wellhead.backends.stores.embedded.among import rows_among
from wellhead.backends.stores.embedded.body import pack_passage
from wellhead.backends.stores.embedded.build import LoadedRow, build_part, merge_parts
from wellhead.backends.stores.embedded.checksum import checksum, checksum_as_read
from wellhead.backends.stores.embedded.connection import Database
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.part import Part
from wellhead.backends.stores.embedded.rows import (
    check_document,
    check_passage,
    check_text,
    damaged,
    metadata_of,
    short,
    shown,
    to_document,
    to_passage,
)
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.vectors import read_vectors
from wellhead.errors import CorruptStore, StaleView
from wellhead.records import Document, Metadata

__all__ = [
    "Fault",
    "TableLookup",
    "check_count",
    "check_listing",
    "documents_of",
    "load_part",
    "load_sound",
    "read_document",
    "read_listing",
    "read_scope_count",
    "read_settings",
]

_UNSOUND = "its text no longer is what was indexed"
# Rows that are held as rows at one time.
_AT_ONCE = 10_000


def read_scope_count(connection: sqlite3.Connection, scope: str, where: str) -> tuple[int, int]:
    """How many documents and passages were written to a scope."""
    row = connection.execute("SELECT documents, passages, checksum FROM scopes WHERE scope = ?", (scope,)).fetchone()
    if row is None:
        return 0, 0
    if checksum("scopes", scope, row[0], row[1]) != row[2]:
        damaged("scopes", f"the counts of scope {scope!r}", where)
    return row[0], row[1]


def read_settings(connection: sqlite3.Connection, where: str) -> dict[str, str]:
    """All settings, checked."""
    settings = {}
    for name, value, stored in connection.execute("SELECT name, value, checksum FROM settings"):
        if checksum("settings", name, value) != stored:
            damaged("settings", f"setting {shown(name)}", where)
        settings[name.decode()] = value.decode()
    return settings


def read_listing(connection: sqlite3.Connection, scope: str, where: str) -> list[str]:
    """The ids of all documents of the scope, ascending."""
    return sorted(row.id.decode() for row in _sound_documents_of(connection, scope, where))


def read_document(connection: sqlite3.Connection, scope: str, document_id: str, where: str) -> Document | None:
    """One document, or None."""
    head = find_document(connection, scope, document_id, where)
    if head is None:
        return None
    text, stored = connection.execute("SELECT text, checksum FROM texts WHERE doc = ?", (head.doc,)).fetchone() or (
        None,
        None,
    )
    return to_document(head, check_text(head, text, stored, where))


def find_document(connection: sqlite3.Connection, scope: str, document_id: str, where: str) -> StoredDocument | None:
    """The row of a document, checked, or None.

    A damaged index of SQLite finds nothing, or something else, where there is something: so what it finds is compared,
    and a miss is looked up once more without it.
    """
    what = f"the entry of document {document_id!r}"
    found = connection.execute("SELECT * FROM documents WHERE scope = ? AND id = ?", (scope, document_id)).fetchone()
    if found is None:
        sql = "SELECT 1 FROM documents NOT INDEXED WHERE scope = ? AND id = ?"
        if connection.execute(sql, (scope, document_id)).fetchone() is not None:
            damaged("documents", what, where, "it is gone from SQLite's index", document_id)
        return None
    head = StoredDocument(*found)
    check_document(head, where)
    if (head.scope, head.id) != (scope.encode(), document_id.encode()):
        damaged("documents", what, where, f"it leads to {shown(head.id)}", document_id)
    return head


class TableLookup:
    """What a view asks the tables (`view.Lookup`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def refuse_closed(self) -> None:
        """Raise UsageError where the store is closed."""
        self._database.refuse_closed()

    def refuse_passage(self, number: int, passage_id: bytes) -> NoReturn:
        """Raise CorruptStore for a passage whose bytes are damaged, naming its document where the tables know it."""
        where = self._database.where
        sql = "SELECT d.id FROM passages p JOIN documents d ON d.doc = p.doc WHERE p.passage = ?"
        with self._database.read() as connection:
            (name,) = connection.execute(sql, (number,)).fetchone() or (None,)
        damaged("passages", f"passage {short(passage_id)} of document {shown(name)}", where, _UNSOUND, name)

    def document(self, scope: str, document_id: str, version: int) -> int | None:
        """The number of a document, or None.

        Raises:
            StaleView: the index was written to since `version`.
        """
        where = self._database.where
        with self._database.read() as connection:
            if read_counter(connection, "version", where) != version:
                raise StaleView(
                    f"document {document_id!r} cannot be looked up any more",
                    where=where,
                    why="the index was written to after this view of it was taken",
                    fix="search again",
                )
            head = find_document(connection, scope, document_id, where)
        return None if head is None else head.doc


def load_part(connection: sqlite3.Connection, first: int, last: int, where: str) -> Part:
    """The passages numbered `first` to `last` that are there, whatever their scope, as a part.

    Raises:
        CorruptStore: a row is damaged or missing.
    """
    pieces = [
        _load_piece(connection, start, min(start + _AT_ONCE - 1, last), where)
        for start in range(first, last + 1, _AT_ONCE)
    ]
    if len(pieces) == 1:
        return pieces[0]
    return merge_parts(pieces, [None] * len(pieces)) if pieces else build_part([], {})


class Fault(NamedTuple):
    """A row that could not be read: of which scope, as far as that can be said, and what is wrong with it."""

    scope: str | None
    error: CorruptStore


def load_sound(connection: sqlite3.Connection, first: int, last: int, where: str) -> tuple[Part, tuple[Fault, ...]]:
    """As `load_part`, of what can be read: a damaged row of one scope must not stop the others."""
    faults: list[Fault] = []
    parts = list(_sound_parts(connection, first, last, where, faults))
    return parts[0] if len(parts) == 1 else merge_parts(parts, [None] * len(parts)), tuple(faults)


def _sound_parts(
    connection: sqlite3.Connection, first: int, last: int, where: str, faults: list[Fault]
) -> Iterator[Part]:
    try:
        yield load_part(connection, first, last, where)
    except CorruptStore as error:
        if first == last:
            sql = "SELECT d.scope FROM passages p JOIN documents d ON d.doc = p.doc WHERE p.passage = ?"
            (scope,) = connection.execute(sql, (first,)).fetchone() or (None,)
            faults.append(Fault(None if scope is None else scope.decode("utf-8", "replace"), error))
            return
        middle = (first + last) // 2
        yield from _sound_parts(connection, first, middle, where, faults)
        yield from _sound_parts(connection, middle + 1, last, where, faults)


def _load_piece(connection: sqlite3.Connection, first: int, last: int, where: str) -> Part:
    sql = "SELECT * FROM passages WHERE passage BETWEEN ? AND ? ORDER BY passage"
    rows = [StoredPassage(*row) for row in connection.execute(sql, (first, last))]
    heads = _heads(connection, list(dict.fromkeys(row.doc for row in rows)), where)
    for row in rows:
        check_passage(row, heads[row.doc].id, where)
    vectors = read_vectors(connection, {row.vector_key for row in rows if row.vector_key is not None}, where)
    metadata = {doc: metadata_of(head) for doc, head in heads.items()}
    # Whether a text is sound, the passages' hashes tell.
    texts = dict(rows_among(connection, "SELECT doc, CAST(text AS BLOB) FROM texts WHERE doc IN", list(heads)))
    loaded = [
        LoadedRow(
            scope=heads[row.doc].scope.decode(),
            number=row.passage,
            doc=row.doc,
            id=row.id,
            text_hash=row.text_hash,
            language=(row.language or b"").decode(),
            metadata=metadata[row.doc],
            stems=row.stems,
            words=row.words,
            vector=None if row.vector_key is None else vectors.get(row.vector_key),
            body=_body(row, heads[row.doc], metadata[row.doc], texts.get(row.doc) or b"", where),
        )
        for row in rows
    ]
    return build_part(loaded, _words(connection, rows, where))


def _body(row: StoredPassage, head: StoredDocument, metadata: Metadata, text: bytes, where: str) -> bytes:
    """Nothing where the text is damaged: only who asks for this passage is told so."""
    try:
        return pack_passage(to_passage(row, head, metadata, text[row.first_byte : row.last_byte], where))
    except CorruptStore:
        return b""


def _heads(connection: sqlite3.Connection, docs: Sequence[int], where: str) -> dict[int, StoredDocument]:
    """The rows of documents, checked."""
    found = {
        row[0]: StoredDocument(*row) for row in rows_among(connection, "SELECT * FROM documents WHERE doc IN", docs)
    }
    for doc in docs:
        if doc not in found:
            damaged("scopes", f"row {doc} of documents", where, "passages refer to it, but it is gone")
        check_document(found[doc], where)
    return found


def _words(connection: sqlite3.Connection, rows: Sequence[StoredPassage], where: str) -> dict[int, bytes]:
    """The word of each term that these passages use."""
    packed = b"".join(blob for row in rows for blob in (row.stems, row.words))
    used = np.unique(np.frombuffer(packed, dtype="<i4")[::2])
    words: dict[int, bytes] = {}
    for number, word, stored in rows_among(connection, "SELECT * FROM terms WHERE term IN", used.tolist()):
        if checksum_as_read("terms", (number, word)) != stored:
            damaged("terms", f"term {shown(word)} (row {number})", where)
        words[number] = word
    if len(words) < len(used):
        lost = min(set(used.tolist()) - words.keys())
        damaged("terms", "the vocabulary", where, f"term {lost}, which passages refer to, is gone")
    if len(set(words.values())) < len(words):
        damaged("terms", "the vocabulary", where, "a word stands there twice")
    return words


def check_count(connection: sqlite3.Connection, scope: str, there: int, where: str) -> None:
    """Raise CorruptStore unless a scope has as many passages as were written."""
    counted = read_scope_count(connection, scope, where)
    if counted[1] != there:
        what = f"the list of passages of scope {scope!r}"
        damaged("scopes", what, where, f"{there} passages, where {counted[1]} were written")


def documents_of(connection: sqlite3.Connection, scope: str) -> list[StoredDocument]:
    """The rows of the scope's documents as they are, unchecked."""
    # Found by the index, read from the table: otherwise scope and id would be those of the index, sound or not.
    sql = "SELECT d.* FROM documents d WHERE doc IN (SELECT doc FROM documents WHERE scope = ?)"
    return [StoredDocument(*row) for row in connection.execute(sql, (scope,))]


def check_listing(connection: sqlite3.Connection, scope: str, rows: Sequence[StoredDocument], where: str) -> None:
    """Raise CorruptStore unless sound rows are those that were written, each once: none says that another is gone."""
    what = f"the list of documents of scope {scope!r}"
    if any(row.scope != scope.encode() for row in rows):
        damaged("scopes", what, where, "it leads into another scope")
    if len({row.id for row in rows}) != len(rows):
        damaged("scopes", what, where, "an id stands there twice")
    counted = read_scope_count(connection, scope, where)
    there = (len(rows), sum(row.passages for row in rows))
    if there != counted:
        why = f"{there[0]} documents with {there[1]} passages, where {counted[0]} with {counted[1]} were written"
        damaged("scopes", what, where, why)


def _sound_documents_of(connection: sqlite3.Connection, scope: str, where: str) -> list[StoredDocument]:
    rows = documents_of(connection, scope)
    for row in rows:
        check_document(row, where)
    check_listing(connection, scope, rows, where)
    return rows
