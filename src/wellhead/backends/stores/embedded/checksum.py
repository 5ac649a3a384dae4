"""The checksum that every stored row carries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import xxhash

__all__ = ["Value", "checksum", "checksum_as_read", "checksum_of_format_1"]

Value: TypeAlias = bytes | str | int | float | None

_encode = msgspec.msgpack.Encoder().encode


def checksum(table: str, *values: Value) -> bytes:
    """16 bytes (XXH3) over the table's name and a row's values.

    They are written as MessagePack, which marks every value's kind and length, so that no two rows give the same
    bytes. Text counts as its UTF-8 bytes, which is how a row is read back.
    """
    return checksum_as_read(table, [value.encode() if isinstance(value, str) else value for value in values])


def checksum_as_read(table: str, values: Sequence[bytes | float | None]) -> bytes:
    """The same of values that were read, among which is no text."""
    return xxhash.xxh3_128_digest(_encode((table, values)))


def checksum_of_format_1(table: str, *values: Value) -> bytes:
    """What rows carried in the first format: 16 bytes of a SHA-256, every value prefixed by its kind and length."""
    parts = [table.encode()]
    for value in values:
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            parts += (b"|%d:" % len(value), value)
        else:
            parts.append(f"|{value!r}".encode())
    return hashlib.sha256(b"".join(parts)).digest()[:16]
