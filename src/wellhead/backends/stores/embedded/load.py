"""Reading a scope into arrays, and single documents and passages; every row is checked on the way."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
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
from wellhead.backends.stores.postings import ArrayField, Postings
from wellhead.errors import CorruptStore, StaleView
from wellhead.ports import DocumentState
from wellhead.records import Document, Passage

__all__ = [
    "load_scope",
    "read_document",
    "read_listing",
    "read_passages",
    "read_settings",
    "read_states",
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


def read_states(connection: sqlite3.Connection, scope: str, where: str) -> dict[str, DocumentState]:
    """Every document of the scope, by id; one that lost a vector counts as incomplete, so that it is written again."""
    blind = _blind(connection, scope)
    rows = _documents_of(connection, scope, where)
    states = {
        row.id.decode(): DocumentState(row.digest, row.origin.decode(), bool(row.incomplete) or row.doc in blind)
        for row in rows
    }
    return dict(sorted(states.items()))


def _blind(connection: sqlite3.Connection, scope: str) -> set[int]:
    """The documents of which some passage lost its vector."""
    sql = """SELECT p.doc, p.vector_key FROM documents d JOIN passages p USING (doc)
             LEFT JOIN vectors v ON v.key = p.vector_key
             WHERE d.scope = ? AND p.vector_key IS NOT NULL AND v.key IS NULL"""
    missing = connection.execute(sql, (scope,)).fetchall()
    there = {key for key, _, _ in _past_the_index(connection, {key for _, key in missing})}
    return {doc for doc, key in missing if key not in there}


def _past_the_index(connection: sqlite3.Connection, keys: Collection[bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Vectors that the index did not find: it may be damaged where the rows are sound."""
    if keys:
        rows = connection.execute("SELECT key, data, checksum FROM vectors NOT INDEXED")
        yield from (row for row in rows if row[0] in keys)


def read_listing(connection: sqlite3.Connection, scope: str, where: str) -> list[str]:
    """The ids of all documents of the scope, ascending."""
    return sorted(row.id.decode() for row in _documents_of(connection, scope, where))


def read_document(connection: sqlite3.Connection, scope: str, document_id: str, where: str) -> Document | None:
    """One document, or None."""
    sql = """SELECT d.*, t.checksum, t.text FROM documents d LEFT JOIN texts t USING (doc)
             WHERE scope = ? AND id = ?"""
    row = connection.execute(sql, (scope, document_id)).fetchone()
    return _document(row, where) if row else None


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
    check_passage(row, where)
    return row


def _owner(connection: sqlite3.Connection, scope: str, doc: int, where: str) -> Document:
    sql = "SELECT d.*, t.checksum, t.text FROM documents d LEFT JOIN texts t USING (doc) WHERE doc = ?"
    found = connection.execute(sql, (doc,)).fetchone()
    if found is None:
        damaged("documents", f"row {doc}", where, "passages refer to it, but it is gone")
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
    heads = [row for row in _documents_of(connection, scope, where) if row.passages]
    rows = _passages_of(connection, scope, where)
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
        vectors=join_vectors(keys, _vectors(connection, dict.fromkeys(keys), where)),
    )


def _documents_of(connection: sqlite3.Connection, scope: str, where: str) -> list[StoredDocument]:
    """The rows of the scope's documents, checked, and checked to be all there."""
    found = connection.execute("SELECT * FROM documents WHERE scope = ?", (scope,))
    rows = [StoredDocument(*row) for row in found]
    for row in rows:
        check_document(row, where)
    if len({row.id for row in rows}) != len(rows):
        damaged("documents", f"the list of documents of scope {scope!r}", where, "an id stands there twice")
    counted = connection.execute("SELECT documents, passages FROM scopes WHERE scope = ?", (scope,)).fetchone()
    there = (len(rows), sum(row.passages for row in rows))
    if there != (counted or (0, 0)):
        why = f"{there[0]} documents with {there[1]} passages, where {counted or (0, 0)} were written"
        damaged("documents", f"the list of documents of scope {scope!r}", where, why)
    return rows


def _passages_of(connection: sqlite3.Connection, scope: str, where: str) -> list[StoredPassage]:
    sql = "SELECT p.* FROM documents d CROSS JOIN passages p USING (doc) WHERE d.scope = ?"
    rows = [StoredPassage(*row) for row in connection.execute(sql, (scope,))]
    for row in rows:
        check_passage(row, where)
    if len({row.id for row in rows}) != len(rows):
        damaged("passages", f"the list of passages of scope {scope!r}", where, "a passage stands there twice")
    return sorted(rows, key=lambda row: row.id)


def _check_counts(heads: Sequence[StoredDocument], documents: NDArray[np.int32], where: str) -> None:
    found = np.bincount(documents, minlength=len(heads)).tolist()
    for head, there in zip(heads, found, strict=True):
        if there != head.passages:
            why = f"{there} of its {head.passages} passages are there"
            damaged("passages", f"document {shown(head.id)}", where, why)


def _vocabulary(connection: sqlite3.Connection, used: NDArray[np.int32], where: str) -> dict[str, int]:
    """The numbers of the terms in use, by term."""
    vocabulary: dict[str, int] = {}
    for number, word, stored in _terms(connection, used):
        if checksum("terms", number, word) != stored:
            damaged("terms", f"term {shown(word)} (row {number})", where)
        vocabulary[word.decode()] = number
    if len(vocabulary) != len(used):
        why = f"{len(used) - len(vocabulary)} terms that passages refer to are gone"
        raise CorruptStore(
            "the vocabulary is damaged", where=where, why=why, fix="index the documents again into an empty folder"
        )
    return vocabulary


def _terms(connection: sqlite3.Connection, used: NDArray[np.int32]) -> Iterator[tuple[int, bytes, bytes]]:
    (last,) = connection.execute("SELECT coalesce(max(term), 0) FROM terms").fetchone()
    if len(used) * _FEW < last:
        sql = "SELECT term, word, checksum FROM terms WHERE term = ?"
        rows = (connection.execute(sql, (number,)).fetchone() for number in used.tolist())
        return (row for row in rows if row is not None)
    wanted = set(used.tolist())
    return (row for row in connection.execute("SELECT term, word, checksum FROM terms") if row[0] in wanted)


def _vectors(connection: sqlite3.Connection, keys: Collection[bytes], where: str) -> dict[bytes, NDArray[np.float32]]:
    """The vectors of `keys`, checked. One that is gone leaves its passages without: `verify` names it, and `states`
    calls its document incomplete, so that the next run makes it anew."""
    sql = "SELECT data, checksum FROM vectors WHERE key = ?"
    found = {key: row for key in keys if key and (row := connection.execute(sql, (key,)).fetchone())}
    lost = set(keys) - found.keys() - {b""}
    found |= {key: (data, stored) for key, data, stored in _past_the_index(connection, lost)}
    for key, (data, stored) in found.items():
        if checksum("vectors", key, data) != stored:
            damaged("vectors", f"vector {key.hex()[:12]}", where)
    return {key: np.frombuffer(data, dtype="<f4") for key, (data, _) in found.items()}
