"""Stored vectors by key, and whether they are as they were written."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.among import rows_among
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.rows import damaged, shown

__all__ = ["dims_of_vectors", "known_keys", "read_vectors", "sound_keys"]


def known_keys(connection: sqlite3.Connection, keys: Iterable[bytes]) -> set[bytes]:
    """Those of `keys` that have a sound vector; a damaged one counts as none, so that it is made anew."""
    return {key for key, row in _looked_up(connection, keys).items() if _is_sound(key, *row)}


def sound_keys(connection: sqlite3.Connection, keys: Collection[bytes]) -> set[bytes]:
    """As `known_keys`, but those that only the table shows count too."""
    return {key for key, row in _stored(connection, keys).items() if _is_sound(key, *row)}


def read_vectors(
    connection: sqlite3.Connection, keys: Collection[bytes], where: str
) -> dict[bytes, NDArray[np.float32]]:
    """The vectors of `keys`. One that is gone leaves its passages without: `verify` names it, and `states` calls its
    document incomplete, so that the next run makes it anew.

    Raises:
        CorruptStore: naming a document that uses a damaged one.
    """
    found = _stored(connection, keys)
    for key, row in found.items():
        if not _is_sound(key, *row):
            document = _user(connection, key)
            damaged("vectors", f"vector {key.hex()[:12]} of document {shown(document)}", where, document=document)
    return {key: np.frombuffer(data, dtype="<f4") for key, (data, _) in found.items()}


def dims_of_vectors(connection: sqlite3.Connection) -> int | None:
    """How many dimensions the stored vectors have, as the first sound one says; None where there is none."""
    for key, data, stored in connection.execute("SELECT key, data, checksum FROM vectors"):
        if _is_sound(key, data, stored):
            return len(data) // 4
    return None


def _stored(connection: sqlite3.Connection, keys: Collection[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    """Bytes and checksum of those that are there. SQLite's index may be damaged where the rows are sound."""
    found = _looked_up(connection, keys)
    if lost := set(keys) - found.keys():
        rows = connection.execute("SELECT key, data, checksum FROM vectors NOT INDEXED")
        found |= {key: (data, stored) for key, data, stored in rows if key in lost}
    return found


def _looked_up(connection: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    wanted = list(keys)
    rows = rows_among(connection, "SELECT key, data, checksum FROM vectors WHERE key IN", wanted)
    found = {key: (data, stored) for key, data, stored in rows}
    return {key: found[key] for key in wanted if key in found}


def _is_sound(key: bytes, data: bytes, stored: bytes) -> bool:
    return checksum("vectors", key, data) == stored


def _user(connection: sqlite3.Connection, key: bytes) -> object:
    sql = "SELECT d.id FROM passages p JOIN documents d USING (doc) WHERE p.vector_key = ? LIMIT 1"
    row = connection.execute(sql, (key,)).fetchone()
    return row[0] if row else None
