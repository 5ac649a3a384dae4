"""Reading a scope into arrays, and single documents and passages; every row is checked on the way."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.arrays import ScopeRows, codes, join_vectors
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.connection import Database
from wellhead.backends.stores.embedded.rows import (
    check_document,
    check_passage,
    check_text,
    damaged,
    metadata_of,
    shown,
    to_document,
    to_passage,
)
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.vectors import read_vectors
from wellhead.backends.stores.postings import ArrayField, Postings
from wellhead.errors import StaleView
from wellhead.records import Document, Passage

__all__ = [
    "check_listing",
    "documents_of",
    "load_scope",
    "read_document",
    "read_listing",
    "read_passages",
    "read_settings",
    "read_version",
]

_FEW = 8  # under a share of 1/8, looking numbers up one by one beats reading the whole vocabulary


def read_version(connection: sqlite3.Connection) -> int:
    """How often the store was written to."""
    row = connection.execute("SELECT value FROM counters WHERE name = 'version'").fetchone()
    return row[0] if row else 0


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
    """One document, or None.

    A damaged index of SQLite finds nothing where there is something, so a miss is looked up once more without it.
    """
    sql = """SELECT d.*, t.checksum, t.text FROM documents d LEFT JOIN texts t USING (doc)
             WHERE scope = ? AND id = ?"""
    row = connection.execute(sql, (scope, document_id)).fetchone()
    if row is None:
        sql = "SELECT 1 FROM documents NOT INDEXED WHERE scope = ? AND id = ?"
        if connection.execute(sql, (scope, document_id)).fetchone() is not None:
            damaged(
                "documents",
                f"the entry of document {document_id!r}",
                where,
                "it is gone from SQLite's index",
                document_id,
            )
        return None
    document = _document(row, where)
    if document.id != document_id:
        damaged(
            "documents", f"the entry of document {document_id!r}", where, f"it leads to {document.id!r}", document_id
        )
    return document


def _document(row: Sequence[object], where: str) -> Document:
    head = StoredDocument(*row[:-2])  # type: ignore[arg-type]
    check_document(head, where)
    return to_document(head, check_text(head, row[-1], row[-2], where))  # type: ignore[arg-type]


def read_passages(database: Database, scope: str, ids: Sequence[str]) -> list[Passage]:
    """The passages of these ids, in this order.

    Raises:
        CorruptStore: stored bytes are not those that were written.
        StaleView: one of them is not in the scope any more.
    """
    with database.read() as connection:
        rows = {passage_id: _passage_row(connection, passage_id, database.where) for passage_id in dict.fromkeys(ids)}
        documents = {
            doc: _owner(connection, scope, doc, database.where) for doc in dict.fromkeys(r.doc for r in rows.values())
        }
        passages = {passage_id: to_passage(row, documents[row.doc], database.where) for passage_id, row in rows.items()}
    return [passages[passage_id] for passage_id in ids]


def _passage_row(connection: sqlite3.Connection, passage_id: str, where: str) -> StoredPassage:
    found = connection.execute("SELECT * FROM passages WHERE id = ?", (passage_id,)).fetchone()
    if found is None:
        _refuse_stale(passage_id, where)
    row = StoredPassage(*found)
    owner = connection.execute("SELECT id FROM documents WHERE doc = ?", (row.doc,)).fetchone()
    check_passage(row, owner[0] if owner else None, where)
    return row


def _owner(connection: sqlite3.Connection, scope: str, doc: int, where: str) -> Document:
    sql = "SELECT d.*, t.checksum, t.text FROM documents d LEFT JOIN texts t USING (doc) WHERE doc = ?"
    found = connection.execute(sql, (doc,)).fetchone()
    if found is None:
        damaged("scopes", f"row {doc} of documents", where, "passages refer to it, but it is gone")
    document = _document(found, where)
    if found[1] != scope.encode():
        _refuse_stale(document.id, where)
    return document


def _refuse_stale(what: str, where: str) -> NoReturn:
    raise StaleView(
        f"{what[:12]} was deleted meanwhile",
        where=where,
        why="the index was written to after this view of it was taken",
        fix="search again",
    )


def load_scope(connection: sqlite3.Connection, scope: str, where: str) -> ScopeRows:
    """All rows of a scope, by passage id.

    Raises:
        CorruptStore: a row is damaged or missing.
    """
    heads = [row for row in _sound_documents_of(connection, scope, where) if row.passages]
    rows = _passages_of(connection, scope, heads, where)
    place_of = {row.doc: place for place, row in enumerate(heads)}
    documents = np.array([place_of[row.doc] for row in rows], dtype=np.int32)
    _check_counts(heads, documents, where)
    stems, words = Postings([row.stems for row in rows]), Postings([row.words for row in rows])
    vocabulary = _vocabulary(connection, np.union1d(stems.terms, words.terms), where)
    keys = [row.vector_key or b"" for row in rows]
    return ScopeRows(
        ids=[row.id.decode() for row in rows],
        document_ids=[row.id.decode() for row in heads],
        metadata=[metadata_of(row) for row in heads],
        documents=documents,
        ordinals=np.array([row.ordinal for row in rows], dtype=np.int32),
        contents=codes(row.text_hash for row in rows)[0],
        languages=[(row.language or b"").decode() for row in rows],
        stems=ArrayField(stems, vocabulary),
        words=ArrayField(words, vocabulary),
        vectors=join_vectors(keys, read_vectors(connection, set(filter(None, keys)), where)),
    )


def documents_of(connection: sqlite3.Connection, scope: str) -> list[StoredDocument]:
    """The rows of the scope's documents as they are, unchecked."""
    # Found by the index, read from the table: otherwise scope and id would be those of the index, sound or not.
    sql = "SELECT d.* FROM documents d WHERE doc IN (SELECT doc FROM documents WHERE scope = ?)"
    return [StoredDocument(*row) for row in connection.execute(sql, (scope,))]


def check_listing(connection: sqlite3.Connection, scope: str, rows: Sequence[StoredDocument], where: str) -> None:
    """Raise CorruptStore unless sound rows are those that were written, each once: none says that another is gone."""
    what = f"the list of documents of scope {scope!r}"
    if len({row.id for row in rows}) != len(rows):
        damaged("scopes", what, where, "an id stands there twice")
    counted = connection.execute("SELECT documents, passages FROM scopes WHERE scope = ?", (scope,)).fetchone()
    there = (len(rows), sum(row.passages for row in rows))
    if there != (counted or (0, 0)):
        why = f"{there[0]} documents with {there[1]} passages, where {counted or (0, 0)} were written"
        damaged("scopes", what, where, why)


def _sound_documents_of(connection: sqlite3.Connection, scope: str, where: str) -> list[StoredDocument]:
    rows = documents_of(connection, scope)
    for row in rows:
        check_document(row, where)
    check_listing(connection, scope, rows, where)
    return rows


def _passages_of(
    connection: sqlite3.Connection, scope: str, heads: Sequence[StoredDocument], where: str
) -> list[StoredPassage]:
    sql = "SELECT p.* FROM documents d CROSS JOIN passages p USING (doc) WHERE d.scope = ?"
    rows = [StoredPassage(*row) for row in connection.execute(sql, (scope,))]
    id_of = {head.doc: head.id for head in heads}
    for row in rows:
        check_passage(row, id_of.get(row.doc), where)
    if len({row.id for row in rows}) != len(rows):
        damaged("scopes", f"the list of passages of scope {scope!r}", where, "a passage stands there twice")
    return sorted(rows, key=lambda row: row.id)


def _check_counts(heads: Sequence[StoredDocument], documents: NDArray[np.int32], where: str) -> None:
    found = np.bincount(documents, minlength=len(heads)).tolist()
    for head, there in zip(heads, found, strict=True):
        if there != head.passages:
            why = f"{there} of its {head.passages} passages are there"
            damaged("passages", f"document {shown(head.id)}", where, why, head.id)


def _vocabulary(connection: sqlite3.Connection, used: NDArray[np.int32], where: str) -> dict[str, int]:
    """The numbers of the terms in use, by term."""
    vocabulary: dict[str, int] = {}
    for number, word, stored in _terms(connection, used):
        if checksum("terms", number, word) != stored:
            damaged("terms", f"term {shown(word)} (row {number})", where)
        vocabulary[word.decode()] = number
    if len(vocabulary) != len(used):
        why = f"{len(used) - len(vocabulary)} terms that passages refer to are gone"
        damaged("terms", "the vocabulary", where, why)
    return vocabulary


def _terms(connection: sqlite3.Connection, used: NDArray[np.int32]) -> Iterator[tuple[int, bytes, bytes]]:
    (last,) = connection.execute("SELECT coalesce(max(term), 0) FROM terms").fetchone()
    if len(used) * _FEW < last:
        sql = "SELECT term, word, checksum FROM terms WHERE term = ?"
        rows = (connection.execute(sql, (number,)).fetchone() for number in used.tolist())
        return (row for row in rows if row is not None)
    wanted = set(used.tolist())
    return (row for row in connection.execute("SELECT term, word, checksum FROM terms") if row[0] in wanted)
