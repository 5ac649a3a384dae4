"""Writing documents and vectors, inside one transaction that the caller holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.rows import document_values, is_sound, passage_values
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.vectors import dims_of_vectors, known_keys
from wellhead.backends.stores.rules import check_keys, check_owners, check_vectors
from wellhead.records import DocumentRow, Terms

__all__ = ["count_write", "delete_documents", "put_documents", "write_settings"]

_DELETE_ROWS = (
    "DELETE FROM passages WHERE doc = ?",
    "DELETE FROM texts WHERE doc = ?",
    "DELETE FROM documents WHERE doc = ?",
)
_LAST_NUMBERS = ("SELECT max(doc) FROM documents", "SELECT max(doc) FROM texts", "SELECT max(doc) FROM passages")


def put_documents(
    connection: sqlite3.Connection, documents: Sequence[DocumentRow], vectors: Mapping[bytes, NDArray[np.float32]]
) -> None:
    """Replace documents whole and add new vectors.

    Raises:
        UsageError: rows that contradict one another or what is stored.
    """
    if not documents:
        return
    check_vectors(vectors, dims_of_vectors(connection))
    check_keys(documents, vectors, lambda keys: known_keys(connection, keys))
    freed: set[bytes] = set()
    for row in documents:
        _delete(connection, row.scope, row.document.id, freed)
        _evict(connection, row, freed)
    check_owners(documents, lambda passage_id: _owner(connection, passage_id))
    _insert_vectors(connection, vectors)
    _insert_documents(connection, documents)
    _prune(connection, freed | vectors.keys())
    count_write(connection)


def delete_documents(connection: sqlite3.Connection, scope: str, ids: Iterable[str]) -> int:
    """Delete documents and the vectors that only they used; how many documents there were."""
    freed: set[bytes] = set()
    deleted = sum(_delete(connection, scope, document_id, freed) for document_id in dict.fromkeys(ids))
    _prune(connection, freed)
    if deleted:
        count_write(connection)
    return deleted


def write_settings(connection: sqlite3.Connection, settings: Mapping[str, str]) -> None:
    """Replace all settings."""
    connection.execute("DELETE FROM settings")
    rows = [(name, value, checksum("settings", name, value)) for name, value in settings.items()]
    connection.executemany("INSERT INTO settings VALUES (?, ?, ?)", rows)
    count_write(connection)


def count_write(connection: sqlite3.Connection) -> None:
    """Raise the version by one."""
    connection.execute(
        "INSERT INTO counters VALUES ('version', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
    )


def _owner(connection: sqlite3.Connection, passage_id: str) -> tuple[str, str] | None:
    sql = "SELECT d.scope, d.id FROM passages p JOIN documents d USING (doc) WHERE p.id = ?"
    row = connection.execute(sql, (passage_id,)).fetchone()
    return (row[0].decode(), row[1].decode()) if row else None


def _delete(connection: sqlite3.Connection, scope: str, document_id: str, freed: set[bytes]) -> bool:
    """Delete one document with its text and passages; their vector keys are added to `freed`."""
    sql = "SELECT * FROM documents WHERE scope = ? AND id = ?"
    found = connection.execute(sql, (scope, document_id)).fetchone()
    if found is None:
        return False
    head = StoredDocument(*found)
    there = _delete_rows(connection, head.doc, freed)
    # What a damaged row says of its passages counts for nothing: those that are there were most likely all.
    _count_rows(connection, scope, -1, -(head.passages if is_sound(head) else there))
    return True


def _delete_rows(connection: sqlite3.Connection, doc: int, freed: set[bytes]) -> int:
    """Delete everything under a number, whether or not a document has it; how many passages there were."""
    keys = [key for (key,) in connection.execute("SELECT vector_key FROM passages WHERE doc = ?", (doc,))]
    freed.update(key for key in keys if key is not None)
    for sql in _DELETE_ROWS:
        connection.execute(sql, (doc,))
    return len(keys)


def _evict(connection: sqlite3.Connection, row: DocumentRow, freed: set[bytes]) -> None:
    """Make room where damage gave passages of this document to another one, or to none.

    Its own row was found by its id and deleted before; so a damaged or missing owner was this document's row.
    """
    for passage in row.passages:
        found = connection.execute("SELECT * FROM passages WHERE id = ?", (passage.passage.id,)).fetchone()
        if found is None:
            continue
        held = StoredPassage(*found)
        owner = connection.execute("SELECT * FROM documents WHERE doc = ?", (held.doc,)).fetchone()
        if not is_sound(held):
            connection.execute("DELETE FROM passages WHERE passage = ?", (held.passage,))
            freed.add(held.vector_key or b"")
        elif owner is None or not is_sound(StoredDocument(*owner)):
            _count_rows(connection, row.scope, -1, -_delete_rows(connection, held.doc, freed))


def _count_rows(connection: sqlite3.Connection, scope: str, documents: int, passages: int) -> None:
    sql = """INSERT INTO scopes VALUES (?1, ?2, ?3) ON CONFLICT (scope)
             DO UPDATE SET documents = documents + ?2, passages = passages + ?3"""
    connection.execute(sql, (scope, documents, passages))
    connection.execute("DELETE FROM scopes WHERE scope = ? AND documents = 0 AND passages = 0", (scope,))


def _insert_vectors(connection: sqlite3.Connection, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
    known = known_keys(connection, vectors)
    data = ((key, vector.astype("<f4").tobytes()) for key, vector in vectors.items() if key not in known)
    rows = ((key, blob, checksum("vectors", key, blob)) for key, blob in data)
    connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)


def _insert_documents(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> None:
    term_ids = _term_ids(connection, documents)
    for doc, row in enumerate(documents, _last_number(connection) + 1):
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", document_values(doc, row)
        )
        text = row.document.text
        connection.execute("INSERT INTO texts VALUES (?, ?, ?)", (doc, checksum("texts", doc, text), text))
        connection.executemany(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (passage_values(doc, passage, term_ids) for passage in row.passages),
        )
        _count_rows(connection, row.scope, 1, len(row.passages))


def _last_number(connection: sqlite3.Connection) -> int:
    """The highest number of a document: also of one that is gone, of which damage left rows behind."""
    return max(connection.execute(sql).fetchone()[0] or 0 for sql in _LAST_NUMBERS)


def _term_ids(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> dict[str, int]:
    """The number of every term of these documents; new terms get the next ones."""
    fields = [counts for row in documents for passage in row.passages for counts in _fields(passage.terms)]
    found: dict[str, int] = {}
    new: list[str] = []
    for term in dict.fromkeys(term for counts in fields for term in counts):
        row = connection.execute("SELECT term FROM terms WHERE word = ?", (term,)).fetchone()
        if row:
            found[term] = row[0]
        else:
            new.append(term)
    (last,) = connection.execute("SELECT coalesce(max(term), 0) FROM terms").fetchone()
    numbered = dict(zip(new, range(last + 1, last + 1 + len(new)), strict=True))
    rows = ((number, word, checksum("terms", number, word)) for word, number in numbered.items())
    connection.executemany("INSERT INTO terms VALUES (?, ?, ?)", rows)
    return found | numbered


def _fields(terms: Terms) -> tuple[Mapping[str, int], Mapping[str, int]]:
    return terms.stems, terms.words


def _prune(connection: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Delete those of the vectors that no passage uses."""
    sql = "DELETE FROM vectors WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM passages WHERE vector_key = ?1)"
    connection.executemany(sql, ((key,) for key in keys))
