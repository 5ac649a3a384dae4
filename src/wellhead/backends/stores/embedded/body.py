"""The form of a passage beside the arrays of its part: read without the tables, and checked whenever it is read.

    8 bytes   XXH3 of the rest
    rest      the passage as MessagePack

Nothing at all stands for a passage whose text was damaged when the part was made.
"""

from __future__ import annotations

import msgspec
import xxhash

from wellhead.records import Passage

__all__ = ["pack_passage", "unpack_passage"]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Passage).decode
_CHECK = 8


def pack_passage(passage: Passage) -> bytes:
    """The bytes of a passage."""
    packed = _encode(passage)
    return xxhash.xxh3_64_digest(packed) + packed


def unpack_passage(body: bytes) -> Passage | None:
    """The passage, or None where its bytes are not those that were written."""
    packed = body[_CHECK:]
    if not packed or xxhash.xxh3_64_digest(packed) != body[:_CHECK]:
        return None
    return _decode(packed)
