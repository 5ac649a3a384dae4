"""Everything that can be checked in a store, and what each fault means."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import numpy as np

from wellhead.backends.stores.embedded.advice import REBUILD, again
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.load import read_settings
from wellhead.backends.stores.embedded.rows import (
    check_document,
    check_passage,
    check_text,
    short,
    shown,
    to_document,
    to_passage,
)
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.errors import CorruptStore
from wellhead.records import Finding

__all__ = ["verify_store"]

_Check = Callable[[sqlite3.Connection, str], Iterator[Finding]]


def verify_store(connection: sqlite3.Connection, where: str) -> tuple[int, int, int, list[Finding]]:
    """Documents, passages and vectors counted, and all findings; a page that cannot be read is a finding too."""
    checks: tuple[_Check, ...] = (_pages, _settings, _documents, _references, _counts, _terms, _vectors)
    findings = [finding for check in checks for finding in _guarded(check, connection, where)]
    documents, passages, vectors = (_count(connection, sql) for sql in _COUNTS)
    return documents, passages, vectors, findings


_COUNTS = ("SELECT count(*) FROM documents", "SELECT count(*) FROM passages", "SELECT count(*) FROM vectors")


def _count(connection: sqlite3.Connection, sql: str) -> int:
    try:
        return int(connection.execute(sql).fetchone()[0])
    except sqlite3.DatabaseError:  # named by _pages
        return 0


def _guarded(check: _Check, connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    try:
        yield from check(connection, where)
    except CorruptStore as error:
        yield _finding("row", error)
    except (sqlite3.DatabaseError, TypeError, ValueError, AttributeError) as error:  # also: a value of another kind
        name = check.__name__.lstrip("_")
        yield Finding(kind="unreadable", where=f"{where}, while checking {name}", why=str(error), fix=REBUILD)


def _finding(kind: str, error: CorruptStore) -> Finding:
    return Finding(kind=kind, where=error.where, why=f"{error.what}: {error.why}", fix=error.fix)


def _pages(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """SQLite's own check of its pages and indexes."""
    for (message,) in connection.execute("PRAGMA integrity_check"):
        if message != b"ok":
            yield Finding(kind="pages", where=where, why=message.decode("utf-8", "replace"), fix=REBUILD)


def _settings(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    read_settings(connection, where)
    yield from ()


def _documents(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Each document, its text, and its passages as slices of that text."""
    heads = [StoredDocument(*row) for row in connection.execute("SELECT * FROM documents ORDER BY scope, id")]
    for head in heads:
        text = connection.execute("SELECT checksum, text FROM texts WHERE doc = ?", (head.doc,)).fetchone()
        rows = [StoredPassage(*row) for row in connection.execute("SELECT * FROM passages WHERE doc = ?", (head.doc,))]
        if len(rows) != head.passages:
            why = f"document {shown(head.id)} has {len(rows)} of its {head.passages} passages"
            yield Finding(kind="passages", where=where, why=why, fix=again(head.id))
        yield from _document(head, text or (None, None), rows, where)


def _document(
    head: StoredDocument, text: tuple[bytes | None, bytes | None], rows: list[StoredPassage], where: str
) -> Iterator[Finding]:
    try:
        check_document(head, where)
        document = to_document(head, check_text(head, text[1], text[0], where))
    except CorruptStore as error:
        yield _finding("document", error)
        document = None
    for row in rows:
        try:
            check_passage(row, head.id, where)
            if document is not None:
                to_passage(row, document, where)
        except CorruptStore as error:
            yield _finding("passage", error)


def _references(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Passages without a document, and passages whose vector is gone."""
    sql = "SELECT p.id FROM passages p LEFT JOIN documents d USING (doc) WHERE d.doc IS NULL"
    for (passage_id,) in connection.execute(sql):
        why = f"passage {short(passage_id)} belongs to no document"
        yield Finding(kind="orphan_passage", where=where, why=why, fix=REBUILD)
    sql = """SELECT d.scope, d.id, count(*) FROM passages p JOIN documents d USING (doc) LEFT JOIN vectors v
             ON v.key = p.vector_key WHERE p.vector_key IS NOT NULL AND v.key IS NULL GROUP BY d.doc ORDER BY 1, 2"""
    for scope, document_id, blind in connection.execute(sql):
        place = f"document {shown(document_id)}" + (f" of scope {shown(scope)}" if scope else "")
        why = f"the dense leg cannot see {blind} of its passages: their vectors are gone"
        yield Finding(kind="missing_vector", where=place, why=why, fix=again(document_id))


def _counts(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """The rows that are there against those that were written."""
    there = {
        scope: (documents, passages)
        for scope, documents, passages in connection.execute(
            "SELECT scope, count(*), sum(passages) FROM documents GROUP BY scope"
        )
    }
    written = {scope: tuple(row) for scope, *row in connection.execute("SELECT * FROM scopes")}
    for scope in sorted(there.keys() | written.keys()):
        found, wanted = there.get(scope, (0, 0)), written.get(scope, (0, 0))
        if found != wanted:
            why = f"scope {shown(scope)} has {found} documents and passages where {wanted} were written"
            yield Finding(kind="count", where=where, why=why, fix=REBUILD)


def _terms(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """The vocabulary, and that passages use no term beyond it."""
    known = set()
    for number, word, stored in connection.execute("SELECT * FROM terms"):
        known.add(number)
        if checksum("terms", number, word) != stored:
            why = f"term {shown(word)} (row {number}) is damaged"
            yield Finding(kind="term", where=f"{where}, table terms", why=why, fix=REBUILD)
    used: set[int] = set()
    for blobs in connection.execute("SELECT stems, words FROM passages"):
        for blob in blobs:
            used.update(np.frombuffer(blob[: len(blob) // 8 * 8], dtype="<i4")[::2].tolist())
    if lost := used - known:
        why = f"{len(lost)} terms that passages refer to are gone"
        yield Finding(kind="term", where=f"{where}, table terms", why=why, fix=REBUILD)


def _vectors(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Each vector, and that some passage uses it."""
    sql = """SELECT key, data, checksum, (
               SELECT d.id FROM passages p JOIN documents d USING (doc) WHERE p.vector_key = key LIMIT 1
             ) FROM vectors"""
    for key, data, stored, document_id in connection.execute(sql):
        place = f"{where}, table vectors"
        if checksum("vectors", key, data) != stored:
            why = f"vector {key.hex()[:12]} of document {shown(document_id)} is damaged"
            yield Finding(kind="vector", where=place, why=why, fix=again(document_id))
        if document_id is None:
            why = f"vector {key.hex()[:12]} belongs to no passage"
            yield Finding(kind="orphan_vector", where=place, why=why, fix="harmless; a new index would not have it")
