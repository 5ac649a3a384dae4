"""The checksum that every stored row carries."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

__all__ = ["Value", "checksum"]

Value: TypeAlias = bytes | str | int | float | None


def checksum(table: str, *values: Value) -> bytes:
    """16 bytes (sha256, cut) over the table's name and a row's values.

    Every value is prefixed by its kind and length, so that no two rows give the same bytes. Text counts as its
    UTF-8 bytes, which is how a row is read back.
    """
    parts = [table.encode()]
    for value in values:
        if isinstance(value, str):
            value = value.encode("utf-8")
        if isinstance(value, bytes):
            parts += (b"|%d:" % len(value), value)
        else:
            parts.append(f"|{value!r}".encode())
    return hashlib.sha256(b"".join(parts)).digest()[:16]
