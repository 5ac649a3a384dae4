"""Writing documents and vectors, inside one transaction that the caller holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.rows import document_values, passage_values
from wellhead.backends.stores.rules import check_keys, check_owners, check_vectors
from wellhead.records import DocumentRow, Terms

__all__ = ["count_write", "delete_documents", "known_keys", "put_documents", "write_settings"]


def put_documents(
    connection: sqlite3.Connection, documents: Sequence[DocumentRow], vectors: Mapping[bytes, NDArray[np.float32]]
) -> None:
    """Replace documents whole and add new vectors.

    Raises:
        UsageError: rows that contradict one another or what is stored.
    """
    check_vectors(vectors, _dims(connection))
    check_keys(documents, vectors, lambda keys: known_keys(connection, keys))
    check_owners(documents, lambda passage_id: _owner(connection, passage_id))
    freed: set[bytes] = set()
    for row in documents:
        _delete(connection, row.scope, row.document.id, freed)
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


def known_keys(connection: sqlite3.Connection, keys: Iterable[bytes]) -> set[bytes]:
    """Those of `keys` that have a stored vector."""
    sql = "SELECT 1 FROM vectors WHERE key = ?"
    return {key for key in keys if connection.execute(sql, (key,)).fetchone()}


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


def _dims(connection: sqlite3.Connection) -> int | None:
    row = connection.execute("SELECT length(data) / 4 FROM vectors LIMIT 1").fetchone()
    return row[0] if row else None


def _owner(connection: sqlite3.Connection, passage_id: str) -> tuple[str, str] | None:
    sql = "SELECT d.scope, d.id FROM passages p JOIN documents d USING (doc) WHERE p.id = ?"
    row = connection.execute(sql, (passage_id,)).fetchone()
    return (row[0].decode(), row[1].decode()) if row else None


def _delete(connection: sqlite3.Connection, scope: str, document_id: str, freed: set[bytes]) -> bool:
    """Delete one document with its text and passages; their vector keys are added to `freed`."""
    sql = "SELECT doc, passages FROM documents WHERE scope = ? AND id = ?"
    found = connection.execute(sql, (scope, document_id)).fetchone()
    if found is None:
        return False
    doc, passages = found
    sql = "SELECT vector_key FROM passages WHERE doc = ? AND vector_key IS NOT NULL"
    freed.update(key for (key,) in connection.execute(sql, (doc,)))
    connection.execute("DELETE FROM documents WHERE doc = ?", (doc,))
    _count_rows(connection, scope, -1, -passages if isinstance(passages, int) else 0)
    return True


def _count_rows(connection: sqlite3.Connection, scope: str, documents: int, passages: int) -> None:
    sql = """INSERT INTO scopes VALUES (?1, ?2, ?3) ON CONFLICT (scope)
             DO UPDATE SET documents = documents + ?2, passages = passages + ?3"""
    connection.execute(sql, (scope, documents, passages))
    connection.execute("DELETE FROM scopes WHERE scope = ? AND documents = 0 AND passages = 0", (scope,))


def _insert_vectors(connection: sqlite3.Connection, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
    data = ((key, vector.astype("<f4").tobytes()) for key, vector in vectors.items())
    rows = ((key, blob, checksum("vectors", key, blob)) for key, blob in data)
    connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)


def _insert_documents(connection: sqlite3.Connection, documents: Sequence[DocumentRow]) -> None:
    term_ids = _term_ids(connection, documents)
    (last,) = connection.execute("SELECT coalesce(max(doc), 0) FROM documents").fetchone()
    for doc, row in enumerate(documents, last + 1):
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
