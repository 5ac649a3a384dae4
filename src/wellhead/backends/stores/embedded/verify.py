"""Everything that can be checked in a store, and what each fault means.

First the tables: SQLite's pages, every checksum, every reference and count. Then what is derived from them: the
segments row by row, and sampled searches. All of it in one snapshot, and a few thousand rows at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from wellhead.backends.stores.embedded.advice import REBUILD, REMAKE, SWEEP, advice
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.connection import Database
from wellhead.backends.stores.embedded.rows import (
    check_document,
    check_passage,
    check_text,
    damaged,
    short,
    shown,
    to_document,
)
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.segment import SegmentDamaged
from wellhead.backends.stores.embedded.verify_searches import check_searches
from wellhead.backends.stores.embedded.verify_segments import (
    Opened,
    check_list,
    check_segments,
    finding_of,
    open_segments,
)
from wellhead.backends.stores.rules import text_hash
from wellhead.errors import CorruptStore
from wellhead.records import Document, Finding

__all__ = ["DERIVED", "verify_database"]

# Kinds of findings that leave every document as it is: what is wrong can be made anew from the tables, or deleted.
DERIVED = frozenset({"segments", "segment", "gone", "search", "orphan_vector"})

_ROWS_AT_ONCE = 10_000


def verify_database(database: Database) -> tuple[int, int, int, list[Finding]]:
    """Documents, passages and vectors counted, and all findings; a page that cannot be read is a finding too.

    On a connection of its own, so that nobody waits.
    """
    # Where the file of a segment cannot be used, a fresh snapshot is tried first: mostly it was replaced meanwhile.
    for patient in (True, True, False):
        with suppress(SegmentDamaged), database.aside() as connection:
            return _verify(connection, database.place.folder, database.where, patient=patient)
    raise AssertionError  # the last time it is a finding


def _verify(
    connection: sqlite3.Connection, folder: Path, where: str, *, patient: bool
) -> tuple[int, int, int, list[Finding]]:
    verification = _Verification(where)
    opened: list[Opened] = []
    # Before all else: once a file is open, it may be deleted.
    verification.take("segments", _opening(connection, folder, opened, patient=patient))
    for name, check in (
        ("pages", _pages),
        ("settings", _settings),
        ("counters", _counters),
        ("documents", _documents),
        ("references", _references),
        ("counts", _counts),
        ("terms", _terms),
        ("vectors", _vectors),
        ("deletions", _gone),
        ("segments", lambda connection, where: check_list(connection, opened, where)),
        ("segments", lambda connection, where: check_segments(connection, opened, where)),
    ):
        verification.take(name, check(connection, where))
    if verification.worth_a_search:
        verification.take("searches", check_searches(connection, opened, folder, where))
    documents, passages, vectors = (_count(connection, table) for table in ("documents", "passages", "vectors"))
    return documents, passages, vectors, list(verification.findings.values())


class _Verification:
    """The findings so far; what two checks come upon counts once."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.findings: dict[tuple[str, str], Finding] = {}

    def take(self, name: str, check: Iterable[Finding]) -> None:
        """What a check finds; one that cannot go on is a finding too."""
        for finding in self._guarded(name, check):
            self.findings.setdefault((finding.where, finding.why), finding)

    def _guarded(self, name: str, check: Iterable[Finding]) -> Iterator[Finding]:
        try:
            yield from check
        except SegmentDamaged:  # a fresh snapshot may do
            raise
        except CorruptStore as error:
            yield finding_of("row", error)
        # Also a value of another kind than its column's.
        except (sqlite3.DatabaseError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            place = f"{self._where}, while checking {name}"
            yield Finding(kind="unreadable", where=place, why=str(error), fix=REBUILD)

    @property
    def worth_a_search(self) -> bool:
        """Whether there is something sound to search in, twice."""
        return all(finding.kind == "orphan_vector" for finding in self.findings.values())


def _opening(connection: sqlite3.Connection, folder: Path, opened: list[Opened], *, patient: bool) -> Iterator[Finding]:
    opened += open_segments(connection, folder, patient=patient)
    yield from ()


def _count(connection: sqlite3.Connection, table: str) -> int:
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 (a name of ours)
    except sqlite3.DatabaseError:  # named by _pages
        return 0


def _pages(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """SQLite's own check of its pages and indexes."""
    for (message,) in connection.execute("PRAGMA integrity_check"):
        if message != b"ok":
            yield Finding(kind="pages", where=where, why=message.decode("utf-8", "replace"), fix=REBUILD)


def _settings(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """What the index was made with."""
    for name, value, stored in connection.execute("SELECT name, value, checksum FROM settings"):
        if checksum("settings", name, value) != stored:
            why = f"setting {shown(name)} is damaged"
            yield Finding(kind="setting", where=f"{where}, table settings", why=why, fix=advice("settings"))


def _counters(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """The counters, and that each is as high as the numbers that were given."""
    values = {b"version": 0, b"passage": 0}
    for name, value, stored in connection.execute("SELECT name, value, checksum FROM counters"):
        values[name] = value
        if checksum("counters", name, value) != stored:
            yield _counter(where, f"counter {shown(name)} is damaged")
    highest = {b"passage": connection.execute("SELECT coalesce(max(passage), 0) FROM passages").fetchone()[0]}
    for number, version, stored in connection.execute("SELECT passage, version, checksum FROM gone"):
        if checksum("gone", number, version) == stored:
            highest[b"passage"] = max(highest[b"passage"], number)
            highest[b"version"] = max(highest.get(b"version", 0), version)
    for name, given in highest.items():
        if values[name] < given:
            yield _counter(where, f"counter {shown(name)} stands at {values[name]}, and {given} was given already")


def _counter(where: str, why: str) -> Finding:
    return Finding(kind="counter", where=f"{where}, table counters", why=why, fix=REBUILD)


def _documents(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Each document, its text, and its passages as slices of that text."""
    for row in connection.execute("SELECT * FROM documents NOT INDEXED ORDER BY doc"):
        head = StoredDocument(*row)
        text = connection.execute("SELECT checksum, text FROM texts WHERE doc = ?", (head.doc,)).fetchone()
        rows = [StoredPassage(*row) for row in connection.execute("SELECT * FROM passages WHERE doc = ?", (head.doc,))]
        if len(rows) != head.passages:
            why = f"document {shown(head.id)} has {len(rows)} of its {head.passages} passages"
            yield Finding(kind="passages", where=where, why=why, fix=advice("passages", head.id))
        yield from _document(head, text or (None, None), rows, where)


def _document(
    head: StoredDocument, text: tuple[bytes | None, bytes | None], rows: list[StoredPassage], where: str
) -> Iterator[Finding]:
    try:
        check_document(head, where)
        document = to_document(head, check_text(head, text[1], text[0], where))
    except CorruptStore as error:
        yield finding_of("document", error)
        document = None
    for row in rows:
        try:
            check_passage(row, head.id, where)
            if document is not None:
                check_slice(row, document, where)
        except CorruptStore as error:
            yield finding_of("passage", error)


def check_slice(row: StoredPassage, document: Document, where: str) -> None:
    """Raise CorruptStore unless both places of a passage in its document's text name the text that was indexed."""
    text = document.text[row.start : row.stop].encode()
    if text_hash(text.decode()) != row.text_hash or document.text.encode()[row.first_byte : row.last_byte] != text:
        why = "the document's text no longer holds what was indexed"
        damaged("passages", f"passage {short(row.id)} of document {document.id!r}", where, why, document.id)


def _references(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Passages and texts without a document, and passages whose vector is gone."""
    sql = "SELECT p.id FROM passages p LEFT JOIN documents d USING (doc) WHERE d.doc IS NULL"
    for (passage_id,) in connection.execute(sql):
        why = f"passage {short(passage_id)} belongs to no document"
        yield Finding(kind="orphan_passage", where=where, why=why, fix=REBUILD)
    for (doc,) in connection.execute("SELECT doc FROM texts WHERE doc NOT IN (SELECT doc FROM documents)"):
        yield Finding(kind="orphan_text", where=where, why=f"text {doc} belongs to no document", fix=REBUILD)
    sql = """SELECT d.scope, d.id, count(*) FROM passages p JOIN documents d USING (doc) LEFT JOIN vectors v
             ON v.key = p.vector_key WHERE p.vector_key IS NOT NULL AND v.key IS NULL GROUP BY d.doc ORDER BY 1, 2"""
    for scope, document_id, blind in connection.execute(sql):
        place = f"document {shown(document_id)}" + (f" of scope {shown(scope)}" if scope else "")
        why = f"the dense leg cannot see {blind} of its passages: their vectors are gone"
        yield Finding(kind="missing_vector", where=place, why=why, fix=advice("vectors", document_id))


def _counts(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """The rows that are there against those that were written."""
    there = {
        scope: (documents, passages)
        for scope, documents, passages in connection.execute(
            "SELECT scope, count(*), sum(passages) FROM documents GROUP BY scope"
        )
    }
    written: dict[bytes, tuple[int, int]] = {}
    for scope, documents, passages, stored in connection.execute("SELECT * FROM scopes"):
        written[scope] = (documents, passages)
        if checksum("scopes", scope, documents, passages) != stored:
            why = f"the counts of scope {shown(scope)} are damaged"
            yield Finding(kind="count", where=f"{where}, table scopes", why=why, fix=REBUILD)
    for scope in sorted(there.keys() | written.keys()):
        found, wanted = there.get(scope, (0, 0)), written.get(scope, (0, 0))
        if found != wanted:
            why = f"scope {shown(scope)} has {found} documents and passages where {wanted} were written"
            yield Finding(kind="count", where=where, why=why, fix=REBUILD)


def _terms(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """The vocabulary, and that passages use no term beyond it."""
    for number, word, stored in connection.execute("SELECT * FROM terms"):
        if checksum("terms", number, word) != stored:
            why = f"term {shown(word)} (row {number}) is damaged"
            yield Finding(kind="term", where=f"{where}, table terms", why=why, fix=REBUILD)
    known = np.fromiter((number for (number,) in connection.execute("SELECT term FROM terms")), dtype=np.int64)
    used = np.zeros(0, dtype=np.int32)
    cursor = connection.execute("SELECT stems, words FROM passages")
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        packed = b"".join(blob[: len(blob) // 8 * 8] for pair in rows for blob in pair)
        used = np.union1d(used, np.frombuffer(packed, dtype="<i4")[::2])
    if lost := int(np.count_nonzero(~np.isin(used, known))):
        why = f"{lost} terms that passages refer to are gone"
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
            yield Finding(kind="vector", where=place, why=why, fix=advice("vectors", document_id))
        if document_id is None:
            why = f"vector {key.hex()[:12]} belongs to no passage"
            yield Finding(kind="orphan_vector", where=place, why=why, fix=SWEEP)


def _gone(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """The list of deleted passages, and that none of them is there."""
    for number, version, stored in connection.execute("SELECT passage, version, checksum FROM gone"):
        if checksum("gone", number, version) != stored:
            yield _listed(where, f"the entry of passage {number}, which was deleted, is damaged")
    for number, document_id in connection.execute(
        "SELECT g.passage, d.id FROM gone g JOIN passages p USING (passage) LEFT JOIN documents d USING (doc)"
    ):
        yield _listed(where, f"passage {number} of document {shown(document_id)} is listed as deleted, and is there")


def _listed(where: str, why: str) -> Finding:
    return Finding(kind="gone", where=f"{where}, table gone", why=why, fix=REMAKE)
