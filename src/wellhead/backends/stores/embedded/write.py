"""Writing documents and vectors, inside one transaction that the caller holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.among import rows_among
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.counters import count, read_counter
from wellhead.backends.stores.embedded.failpoint import reached
from wellhead.backends.stores.embedded.load import read_scope_count
from wellhead.backends.stores.embedded.numbers import TermNumbers
from wellhead.backends.stores.embedded.rows import damaged, document_values, is_sound, passage_values, short, shown
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.vectors import dims_of_vectors, known_keys
from wellhead.backends.stores.rules import check_keys, check_owners, check_vectors
from wellhead.records import DocumentRow, Terms

__all__ = ["delete_documents", "put_documents", "start_over", "write_settings"]

_DELETE_ROWS = (
    "DELETE FROM passages WHERE doc = ?",
    "DELETE FROM texts WHERE doc = ?",
    "DELETE FROM documents WHERE doc = ?",
)
_BY_SCOPE = """SELECT doc FROM documents INDEXED BY sqlite_autoindex_documents_1
               WHERE scope = ?1 AND id = ?2"""
_BY_ID = "SELECT doc FROM documents INDEXED BY documents_by_id WHERE id = ?2 AND +scope = ?1"
_LAST_NUMBERS = ("SELECT max(doc) FROM documents", "SELECT max(doc) FROM texts", "SELECT max(doc) FROM passages")


def put_documents(
    connection: sqlite3.Connection,
    documents: Sequence[DocumentRow],
    vectors: Mapping[bytes, NDArray[np.float32]],
    numbers: TermNumbers,
    where: str,
) -> None:
    """Replace documents whole and add new vectors. `numbers`: of the terms, as far as this process knows them.

    Raises:
        UsageError: rows that contradict one another or what is stored.
    """
    if not documents:
        return
    check_vectors(vectors, dims_of_vectors(connection))
    check_keys(documents, vectors, lambda keys: known_keys(connection, keys))
    deletion = _Deletion(connection, where)
    for row in documents:
        deletion.document(row.scope, row.document.id)
    scopes = {passage.passage.id: row.scope for row in documents for passage in row.passages}
    deletion.in_the_way_of(scopes)
    check_owners(documents, _owners(connection, list(scopes)).get)
    deletion.done()
    _insert_vectors(connection, vectors)
    reached("append.middle")
    _insert_documents(connection, documents, numbers, where)
    _prune(connection, deletion.freed | vectors.keys())
    count(connection, "version", where)


def delete_documents(connection: sqlite3.Connection, scope: str, ids: Iterable[str], where: str) -> int:
    """Delete documents and the vectors that only they used; how many documents there were."""
    deletion = _Deletion(connection, where)
    deleted = sum(deletion.document(scope, document_id) for document_id in dict.fromkeys(ids))
    deletion.done()
    _prune(connection, deletion.freed)
    if deleted:
        count(connection, "version", where)
    return deleted


def write_settings(connection: sqlite3.Connection, settings: Mapping[str, str], where: str) -> None:
    """Replace all settings."""
    connection.execute("DELETE FROM settings")
    rows = [(name, value, checksum("settings", name, value)) for name, value in settings.items()]
    connection.executemany("INSERT INTO settings VALUES (?, ?, ?)", rows)
    count(connection, "version", where)


def start_over(connection: sqlite3.Connection, where: str) -> None:
    """Forget what is derived: all rows are read from the tables again, and put into new segments."""
    connection.execute("DELETE FROM segments")
    connection.execute("DELETE FROM gone")
    count(connection, "epoch", where)


def _owners(connection: sqlite3.Connection, passage_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Scope and id of the documents that hold passages of these ids, as far as there are any."""
    sql = "SELECT p.id, d.scope, d.id FROM passages p JOIN documents d USING (doc) WHERE p.id IN"
    return {
        name.decode(): (scope.decode(), owner.decode())
        for name, scope, owner in rows_among(connection, sql, passage_ids)
    }


class _Deletion:
    """What one write deletes; the keys of vectors that may be of no use any more gather in `freed`."""

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._connection = connection
        self._where = where
        self._version = read_counter(connection, "version", where) + 1
        self._torn = False
        self.freed: set[bytes] = set()

    def done(self) -> None:
        """Where rows were lost before, nobody can say which a segment or a reader still holds: all begin anew."""
        if self._torn:
            start_over(self._connection, self._where)

    def document(self, scope: str, document_id: str) -> bool:
        """Delete a document with its text and passages; whether it was there."""
        head = self._head(scope, document_id)
        if head is None:
            return False
        there = self._rows(head.doc)
        self._torn = self._torn or not is_sound(head) or there != head.passages
        # What a damaged row says of its passages counts for nothing: those that are there were most likely all.
        _count_rows(self._connection, scope, -1, -(head.passages if is_sound(head) else there), self._where)
        return True

    def _head(self, scope: str, document_id: str) -> StoredDocument | None:
        """The row of a document. Two of SQLite's indexes lead to it, so that a damaged one misleads nobody."""
        what, where = f"the entry of document {document_id!r}", self._where
        one = self._connection.execute(_BY_SCOPE, (scope, document_id)).fetchall()
        if one != self._connection.execute(_BY_ID, (scope, document_id)).fetchall():
            damaged("documents", what, where, "SQLite's indexes disagree", document_id)
        if not one:
            return None
        found = self._connection.execute("SELECT * FROM documents WHERE doc = ?", one[0]).fetchone()
        if found is None:
            damaged("documents", what, where, "its row is gone", document_id)
        head = StoredDocument(*found)
        if is_sound(head) and (head.scope, head.id) != (scope.encode(), document_id.encode()):
            damaged("documents", what, where, f"it leads to {shown(head.id)}", document_id)
        return head

    def in_the_way_of(self, scopes: Mapping[str, str]) -> None:
        """Make room where damage gave passages to another document, or to none. `scopes`: by passage id.

        The documents that they belong to were found by their ids and deleted before; so a damaged or missing owner was
        one of these documents' rows.
        """
        emptied: set[int] = set()
        for found in list(rows_among(self._connection, "SELECT * FROM passages WHERE id IN", list(scopes))):
            held = StoredPassage(*found)
            if held.doc in emptied:
                continue
            self._torn = True
            owner = self._connection.execute("SELECT * FROM documents WHERE doc = ?", (held.doc,)).fetchone()
            if not is_sound(held):
                self._gone(held.passage)
                self._connection.execute("DELETE FROM passages WHERE passage = ?", (held.passage,))
                self.freed.add(held.vector_key or b"")
            elif held.id.decode() not in scopes:
                what = f"the entry of passage {short(held.id)}"
                damaged("passages", what, self._where, "SQLite's index leads elsewhere")
            elif owner is None or not is_sound(StoredDocument(*owner)):
                emptied.add(held.doc)
                _count_rows(self._connection, scopes[held.id.decode()], -1, -self._rows(held.doc), self._where)

    def _rows(self, doc: int) -> int:
        """Delete everything under a number, whether or not a document has it; how many passages there were."""
        sql = "SELECT passage, vector_key FROM passages WHERE doc = ?"
        held = self._connection.execute(sql, (doc,)).fetchall()
        self.freed.update(key for _, key in held if key is not None)
        for number, _ in held:
            self._gone(number)
        for sql in _DELETE_ROWS:
            self._connection.execute(sql, (doc,))
        return len(held)

    def _gone(self, number: int) -> None:
        row = (number, self._version, checksum("gone", number, self._version))
        self._connection.execute("INSERT OR REPLACE INTO gone VALUES (?, ?, ?)", row)


def _count_rows(connection: sqlite3.Connection, scope: str, documents: int, passages: int, where: str) -> None:
    held = read_scope_count(connection, scope, where)
    counts = (held[0] + documents, held[1] + passages)
    if counts == (0, 0):
        connection.execute("DELETE FROM scopes WHERE scope = ?", (scope,))
    else:
        row = (scope, *counts, checksum("scopes", scope, *counts))
        connection.execute("INSERT OR REPLACE INTO scopes VALUES (?, ?, ?, ?)", row)


def _insert_vectors(connection: sqlite3.Connection, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
    known = known_keys(connection, vectors)
    data = ((key, vector.astype("<f4").tobytes()) for key, vector in vectors.items() if key not in known)
    rows = ((key, blob, checksum("vectors", key, blob)) for key, blob in data)
    connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)


def _insert_documents(
    connection: sqlite3.Connection, documents: Sequence[DocumentRow], numbers: TermNumbers, where: str
) -> None:
    fields = (counts for row in documents for passage in row.passages for counts in _fields(passage.terms))
    term_ids = numbers.of(connection, chain.from_iterable(fields), where)
    number = _passage_numbers(connection, sum(len(row.passages) for row in documents), where)
    numbered = list(enumerate(documents, _last_number(connection) + 1))
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (document_values(doc, row) for doc, row in numbered),
    )
    texts = ((doc, row.document.text) for doc, row in numbered)
    connection.executemany(
        "INSERT INTO texts VALUES (?, ?, ?)", ((doc, checksum("texts", doc, text), text) for doc, text in texts)
    )
    passages = (
        (doc, passage, first_byte)
        for doc, row in numbered
        for passage, first_byte in zip(row.passages, _first_bytes(row), strict=True)
    )
    connection.executemany(
        "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            passage_values(place, doc, passage, term_ids, first_byte)
            for place, (doc, passage, first_byte) in enumerate(passages, number)
        ),
    )
    for scope, rows in groupby(sorted(documents, key=_scope), key=_scope):
        sizes = [len(row.passages) for row in rows]
        _count_rows(connection, scope, len(sizes), sum(sizes), where)


def _scope(row: DocumentRow) -> str:
    return row.scope


def _passage_numbers(connection: sqlite3.Connection, many: int, where: str) -> int:
    """The first of so many new numbers in a row: greater than any that was ever given."""
    return count(connection, "passage", where, many) - many + 1


def _first_bytes(row: DocumentRow) -> Iterator[int]:
    """Where the slice of each passage begins in the UTF-8 form of the document's text. They begin in order."""
    text, at, before = row.document.text, 0, 0
    for one in row.passages:
        start = one.passage.start
        before += len(text[at:start].encode()) if start >= at else -len(text[start:at].encode())
        at = start
        yield before


def _last_number(connection: sqlite3.Connection) -> int:
    """The highest number of a document: also of one that is gone, of which damage left rows behind."""
    return max(connection.execute(sql).fetchone()[0] or 0 for sql in _LAST_NUMBERS)


def _fields(terms: Terms) -> tuple[Mapping[str, int], Mapping[str, int]]:
    return terms.stems, terms.words


def _prune(connection: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Delete those of the vectors that no passage uses."""
    sql = "DELETE FROM vectors WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM passages WHERE vector_key = ?1)"
    connection.executemany(sql, ((key,) for key in keys))
