"""What a store remembers of each document, and whether it must be written again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.load import check_listing, documents_of
from wellhead.backends.stores.embedded.rows import is_sound, metadata_of
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.vectors import sound_keys
from wellhead.ports import DocumentState, DocumentSummary

__all__ = ["read_states", "read_summaries"]


def read_states(
    connection: sqlite3.Connection, scope: str, ids: Sequence[str] | None, where: str
) -> dict[str, DocumentState]:
    """The states of these documents, or of all in the scope, by id.

    One of which the row, the text, a passage or a vector is damaged or gone counts as incomplete, so that it is
    written again. What no document owns (terms, counts) is not looked at.

    Raises:
        CorruptStore: all were asked for, and documents are gone: nothing else could tell.
    """
    rows = _all(connection, scope, where) if ids is None else _these(connection, scope, ids)
    return {name: _state(connection, row) for name, row in sorted(rows)}


def _all(connection: sqlite3.Connection, scope: str, where: str) -> list[tuple[str, StoredDocument]]:
    rows = documents_of(connection, scope)
    if all(map(is_sound, rows)):  # a damaged row is named by its own state, and makes counts differ
        check_listing(connection, scope, rows, where)
    return [(_text(row.id), row) for row in rows]


def _these(connection: sqlite3.Connection, scope: str, ids: Iterable[str]) -> list[tuple[str, StoredDocument]]:
    sql = "SELECT * FROM documents WHERE doc = (SELECT doc FROM documents WHERE scope = ? AND id = ?)"
    found = ((name, connection.execute(sql, (scope, name)).fetchone()) for name in dict.fromkeys(ids))
    return [(name, StoredDocument(*row)) for name, row in found if row is not None]


def _state(connection: sqlite3.Connection, row: StoredDocument) -> DocumentState:
    whole = is_sound(row) and _text_is_sound(connection, row) and _passages_are_sound(connection, row)
    return DocumentState(row.digest, _text(row.origin), bool(row.incomplete) or not whole)


def _text_is_sound(connection: sqlite3.Connection, row: StoredDocument) -> bool:
    found = connection.execute("SELECT text, checksum FROM texts WHERE doc = ?", (row.doc,)).fetchone()
    return found is not None and checksum("texts", row.doc, found[0]) == found[1]


def _passages_are_sound(connection: sqlite3.Connection, row: StoredDocument) -> bool:
    """All passages of a sound document row are there, with their vectors."""
    found = connection.execute("SELECT * FROM passages WHERE doc = ?", (row.doc,))
    passages = [StoredPassage(*values) for values in found]
    if len(passages) != row.passages or not all(map(is_sound, passages)):
        return False
    keys = {passage.vector_key for passage in passages if passage.vector_key is not None}
    return sound_keys(connection, keys) == keys


def read_summaries(connection: sqlite3.Connection, scope: str, where: str) -> list[DocumentSummary]:
    """What the rows of the documents say, by id; of a damaged row the id alone is told.

    Raises:
        CorruptStore: documents are gone.
    """
    blind = _blind(connection, scope)
    rows = _all(connection, scope, where)
    return [_summary(name, row, row.doc in blind) for name, row in sorted(rows)]


def _summary(name: str, row: StoredDocument, is_blind: bool) -> DocumentSummary:
    if not is_sound(row):
        return DocumentSummary(id=name, metadata={}, damaged=True)
    return DocumentSummary(
        id=name,
        title=row.title.decode(),
        uri=row.uri.decode(),
        metadata=metadata_of(row),
        origin=row.origin.decode(),
        passages=row.passages,
        incomplete=bool(row.incomplete) or is_blind,
    )


def _blind(connection: sqlite3.Connection, scope: str) -> set[int]:
    """The documents of which some passage lost its vector."""
    sql = """SELECT p.doc, p.vector_key FROM documents d JOIN passages p USING (doc)
             LEFT JOIN vectors v ON v.key = p.vector_key
             WHERE d.scope = ? AND p.vector_key IS NOT NULL AND v.key IS NULL"""
    missing = connection.execute(sql, (scope,)).fetchall()
    there = sound_keys(connection, {key for _, key in missing})
    return {doc for doc, key in missing if key not in there}


def _text(value: object) -> str:
    """A stored text, whatever its bytes have become."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
