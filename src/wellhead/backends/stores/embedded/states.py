"""What a store remembers of each document, and whether it must be written again."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.load import check_listing, documents_of
from wellhead.backends.stores.embedded.rows import is_sound, metadata_of
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.embedded.vectors import sound_keys
from wellhead.ports import DocumentState, DocumentSummary

__all__ = ["read_states", "read_summaries", "write_sources"]

# Documents looked at together: a few statements each time, and no more in memory than their passages' keys.
_CHUNK = 500
# SQLite's index tells which rows are asked for, the table what they hold: a statement that takes a value from its
# index shows that, sound or not.
_DOCUMENTS = """SELECT i.id, d.* FROM documents i CROSS JOIN documents d ON d.doc = i.doc
                WHERE i.scope = ? AND i.id IN ({})"""
_TEXTS = "SELECT doc, checksum, text FROM texts WHERE doc IN ({})"
_PASSAGES = """SELECT i.doc, p.* FROM passages i CROSS JOIN passages p ON p.passage = i.passage WHERE i.doc IN ({})"""
_VECTORS = """SELECT i.key, v.data, v.checksum FROM vectors i CROSS JOIN vectors v ON v.rowid = i.rowid
              WHERE i.key IN ({})"""

_T = TypeVar("_T")


class _Held(NamedTuple):
    """A document's row under the name by which it is found, and whether it is as it was written."""

    name: str
    row: StoredDocument
    is_sound: bool


def read_states(
    connection: sqlite3.Connection, scope: str, ids: Sequence[str] | None, where: str
) -> dict[str, DocumentState]:
    """The states of these documents, or of all in the scope, by id.

    One of which the row, the text, a passage or a vector is damaged or gone counts as incomplete, so that it is
    written again. What no document owns (terms, counts) is not looked at.

    Raises:
        CorruptStore: all were asked for, and documents are gone: nothing else could tell.
    """
    found = _chunks(_all(connection, scope, where)) if ids is None else _these(connection, scope, ids)
    states = {name: state for some in found for name, state in _states(connection, some)}
    return dict(sorted(states.items()))


def _all(connection: sqlite3.Connection, scope: str, where: str) -> list[_Held]:
    held = [_Held(_text(row.id), row, is_sound(row)) for row in documents_of(connection, scope)]
    if all(one.is_sound for one in held):  # a damaged row is named by its own state, and makes counts differ
        check_listing(connection, scope, [one.row for one in held], where)
    return held


def _these(connection: sqlite3.Connection, scope: str, ids: Sequence[str]) -> Iterator[list[_Held]]:
    for names in _chunks(list(dict.fromkeys(ids))):
        found = _select(connection, _DOCUMENTS, names, scope)
        rows = ((name.decode(), StoredDocument(*values)) for name, *values in found)
        yield [_Held(name, row, is_sound(row)) for name, row in rows]


def _states(connection: sqlite3.Connection, held: Sequence[_Held]) -> Iterator[tuple[str, DocumentState]]:
    whole = _whole(connection, [one.row for one in held if one.is_sound])
    for name, row, _ in held:
        is_incomplete = bool(row.incomplete) or row.doc not in whole
        yield name, DocumentState(row.digest, _text(row.origin), is_incomplete, row.source)


def _whole(connection: sqlite3.Connection, rows: Sequence[StoredDocument]) -> set[int]:
    """The numbers of those sound rows whose text is sound, and all of whose passages are, with their vectors."""
    docs = [row.doc for row in rows]
    texts, passages = _sound_texts(connection, docs), _keys_of_passages(connection, docs)
    keys = {key for held in passages.values() for key in held if key}
    vectors = {b"", *_sound_vectors(connection, keys)}
    return {
        row.doc
        for row in rows
        if row.doc in texts and len(passages[row.doc]) == row.passages and vectors.issuperset(passages[row.doc])
    }


def _sound_texts(connection: sqlite3.Connection, docs: Sequence[int]) -> set[int]:
    rows = _select(connection, _TEXTS, docs)
    return {doc for doc, stored, text in rows if checksum("texts", doc, text) == stored}


def _keys_of_passages(connection: sqlite3.Connection, docs: Sequence[int]) -> Mapping[int, list[bytes | None]]:
    """The vector key of each passage that is there, by document: b"" for one without, None for a damaged passage."""
    keys: defaultdict[int, list[bytes | None]] = defaultdict(list)
    for doc, *values in _select(connection, _PASSAGES, docs):
        row = StoredPassage(*values)
        keys[doc].append(row.vector_key or b"" if is_sound(row) else None)
    return keys


def _sound_vectors(connection: sqlite3.Connection, keys: Collection[bytes]) -> set[bytes]:
    there: set[bytes] = set()
    sound: set[bytes] = set()
    for some in _chunks(list(keys)):
        for key, data, stored in _select(connection, _VECTORS, some):
            there.add(key)
            if checksum("vectors", key, data) == stored:
                sound.add(key)
    lost = set(keys) - there
    return sound | sound_keys(connection, lost) if lost else sound


def _select(connection: sqlite3.Connection, sql: str, wanted: Sequence[object], *first: object) -> sqlite3.Cursor:
    """A statement over these values, in the place of its braces: rows as they come, none held."""
    return connection.execute(sql.format(", ".join("?" * len(wanted))), (*first, *wanted))


def _chunks(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK))


def write_sources(connection: sqlite3.Connection, scope: str, states: Mapping[str, DocumentState]) -> None:
    """Write the sources of those documents that are sound, and have the digest and the origin of their state."""
    for held in _these(connection, scope, list(states)):
        for name, row, sound in held:
            state = states[name]
            if sound and (row.digest, _text(row.origin)) == (state.digest, state.origin):
                values = row._replace(source=state.source)[:-1]
                change = (state.source, checksum("documents", *values), row.doc)
                connection.execute("UPDATE documents SET source = ?, checksum = ? WHERE doc = ?", change)


def read_summaries(connection: sqlite3.Connection, scope: str, where: str) -> list[DocumentSummary]:
    """What the rows of the documents say, by id; of a damaged row the id alone is told.

    Raises:
        CorruptStore: documents are gone.
    """
    blind = _blind(connection, scope)
    return [_summary(one, one.row.doc in blind) for one in sorted(_all(connection, scope, where))]


def _summary(one: _Held, is_blind: bool) -> DocumentSummary:
    name, row, sound = one
    if not sound:
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
