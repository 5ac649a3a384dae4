"""The file of a segment: a part that is mapped into memory, not read.

    8 bytes   "WHSEG" and the number of the format
    8 bytes   the length of the header, little-endian
    header    JSON: the names of the part, and for each array its type, shape and place in the file
    arrays    little-endian, each at a multiple of 64 bytes

The 128 bits of the whole file's XXH3 stand in the table `segments`; they are compared whenever a file is opened.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.failpoint import reached
from wellhead.backends.stores.embedded.part import Names, Part
from wellhead.errors import CorruptStore

__all__ = ["FOLDER", "SUFFIX", "SegmentDamaged", "file_of", "read_segment", "sync_folder", "write_segment"]

FOLDER = "segments"
SUFFIX = ".seg"
_MAGIC = b"WHSEG\0\0\2"
_ALIGN = 64
_READ_AT_ONCE = 2**20


class SegmentDamaged(CorruptStore):
    """A file is missing, or not as it was written. Never leaves the store: what is derived is made again."""


class _Place(msgspec.Struct, frozen=True, array_like=True):
    type: str
    shape: tuple[int, ...]
    offset: int


class _Header(msgspec.Struct, frozen=True):
    names: Names
    arrays: dict[str, _Place]


def file_of(folder: Path, name: str) -> Path:
    """The file of a segment in the folder of an index."""
    return folder / FOLDER / (name + SUFFIX)


def write_segment(path: Path, part: Part) -> bytes:
    """Write a part into a new file, down to the disk; the digest of the file.

    Raises:
        OSError: nothing of the file is left then.
    """
    path.parent.mkdir(exist_ok=True)
    digest = xxhash.xxh3_128()
    file = path.open("xb")
    try:
        with file:
            for piece in _pieces(part):
                digest.update(piece)
                file.write(piece)
            file.flush()
            reached("segment.written")
            os.fsync(file.fileno())
        reached("segment.synced")
        sync_folder(path.parent)
        reached("segment.folder_synced")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return digest.digest()


def _pieces(part: Part) -> list[bytes | memoryview]:
    arrays = {name: _little(array) for name, array in part.arrays.items()}
    # The places depend on the header's length and the header on the places: begin at a place that leaves room enough.
    start = _aligned(len(_header(part.names, arrays, 0)) + 32 * len(arrays) + len(_MAGIC) + 8)
    header = _header(part.names, arrays, start)
    pieces: list[bytes | memoryview] = [_MAGIC, len(header).to_bytes(8, "little"), header]
    at = len(_MAGIC) + 8 + len(header)
    for array in arrays.values():
        wanted = _aligned(max(at, start))
        pieces += (b"\0" * (wanted - at), array.reshape(-1).view(np.uint8).data if array.size else b"")
        at = wanted + array.nbytes
    return pieces


def _header(names: Names, arrays: Mapping[str, NDArray[Any]], start: int) -> bytes:
    places: dict[str, _Place] = {}
    at = start
    for name, array in arrays.items():
        at = _aligned(at)
        places[name] = _Place(array.dtype.str, array.shape, at)
        at += array.nbytes
    return msgspec.json.encode(_Header(names, places))


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN


def _little(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last, where the system can."""
    if os.name != "posix":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_segment(path: Path, digest: bytes) -> Part:
    """The part in a file, mapped.

    Raises:
        SegmentDamaged: no such file, or not the one that was written.
    """
    try:
        with path.open("rb") as file:
            stamp = _stamp(os.fstat(file.fileno()))
            if _digest(file) != digest:
                raise SegmentDamaged(f"{path.name} is not as it was written")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        if isinstance(error, SegmentDamaged):
            raise
        raise SegmentDamaged(f"{path.name} cannot be read: {error}") from error
    if mapped[: len(_MAGIC)] != _MAGIC:
        raise SegmentDamaged(f"{path.name} is of another format")
    try:
        header = msgspec.json.decode(_slice(mapped), type=_Header)
        arrays = {name: _array(mapped, place) for name, place in header.arrays.items()}
        return Part(header.names, arrays, lambda: _is_untouched(path, stamp))
    except (msgspec.MsgspecError, ValueError, TypeError, KeyError) as error:  # somebody else wrote it, digest and all
        raise SegmentDamaged(f"{path.name} holds no arrays of ours: {error}") from error


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_untouched(path: Path, stamp: tuple[int, int, int]) -> bool:
    """Whether nobody wrote into a mapped file, or cut it off. One that was deleted stays as it was mapped."""
    try:
        return _stamp(os.stat(path)) == stamp  # noqa: PTH116 (asked by every search)
    except OSError:
        return True


def _digest(file: BinaryIO) -> bytes:
    """Of the whole file. It is read for this, not mapped: else all of it would count as memory in use."""
    digest = xxhash.xxh3_128()
    buffer = bytearray(_READ_AT_ONCE)
    while size := file.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(memoryview(buffer)[:size])
    return digest.digest()


def _array(mapped: mmap.mmap, place: _Place) -> NDArray[Any]:
    size = prod(place.shape)
    if not size:  # its place may be the very end of the file
        return np.zeros(place.shape, dtype=place.type)
    return np.frombuffer(mapped, np.dtype(place.type), size, place.offset).reshape(place.shape)


def _slice(mapped: mmap.mmap) -> bytes:
    length = int.from_bytes(mapped[8:16], "little")
    return mapped[16 : 16 + length]
