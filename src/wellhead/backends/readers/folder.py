"""A folder's files as documents."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wellhead.backends.readers.formats import check_name, read_bytes
from wellhead.backends.readers.walk import LARGEST, Entry, Found, Refused, Skipped, walk
from wellhead.errors import DocumentError
from wellhead.lazy import lazy
from wellhead.records import Document

__all__ = ["Folder", "read_file", "read_folder"]

# A pipe put in the place of a file must not stop us, nor a link lead elsewhere.
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Folder(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A folder as it was listed: all entries, ordered by id. `prefix` stands before every document's id and uri."""

    entries: tuple[Entry, ...]
    prefix: str = ""

    @lazy
    def found(self) -> list[Found]:
        return [entry for entry in self.entries if isinstance(entry, Found)]

    @lazy
    def skipped(self) -> list[Skipped]:
        return [entry for entry in self.entries if isinstance(entry, Skipped)]

    @lazy
    def refused(self) -> list[Refused]:
        return [entry for entry in self.entries if isinstance(entry, Refused)]

    def read(self, found: Found) -> Document:
        """`read_file` with the folder's prefix."""
        return read_file(found, self.prefix)

    def content(self, found: Found) -> bytes:
        """The bytes of a file that is to be read; errors as of `read_file`."""
        return _content(found)

    def document(self, found: Found, content: bytes) -> Document:
        """What `read_file` makes of these bytes."""
        return _document(found, content, self.prefix)

    def is_unknown(self, document_id: str) -> bool:
        """True when the walk could not tell whether this document's file is still there: it must not be removed."""
        return any(
            document_id == self.prefix + refused.id
            or (refused.id.endswith("/") and document_id.startswith(self.prefix + refused.id.lstrip("/")))
            for refused in self.refused
        )


def read_folder(
    root: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = (), prefix: str = "", skip: Sequence[Path] = ()
) -> Folder:
    """List a folder (or a single file) without opening any file; see `walk` for the rules and errors."""
    return Folder(entries=tuple(walk(root, include=include, exclude=exclude, skip=skip)), prefix=prefix)


def read_file(found: Found, prefix: str = "") -> Document:
    """One file as a document. Its id and uri are the prefix and the path relative to the root, never absolute.

    The metadata is the file's own, with `area`, the name of the top-level folder; a file that stands directly in the
    root has none, whatever it says itself.

    Raises:
        FileSkipped: binary or blank.
        DocumentError: vanished, replaced or changed meanwhile, unreadable, or not to be read as a document.
    """
    return _document(found, _content(found), prefix)


def _document(found: Found, content: bytes, prefix: str) -> Document:
    reading = read_bytes(content, found.id)
    area, slash, _ = found.id.partition("/")
    own = {key: value for key, value in reading.metadata.items() if key != "area"}
    return Document(
        id=prefix + found.id,
        uri=prefix + found.id,
        text=reading.text,
        title=reading.title,
        metadata={**own, "area": area} if slash else own,
        media_type=reading.media_type,
        language=reading.language,
    )


def _content(found: Found) -> bytes:
    check_name(found.id)
    try:
        with open(os.open(found.path, _FLAGS), "rb") as file:  # noqa: PTH123 (flags are the point)
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise _changed(found, "it is no regular file any more")
            if before.st_size > max(found.size, LARGEST):
                raise _changed(found, "it has grown beyond the limit")
            data = file.read(before.st_size + 1)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise _changed(found, error.strerror or str(error)) from error
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(data) != after.st_size:
        raise _changed(found, "it changed while it was read")
    return data


def _changed(found: Found, why: str) -> DocumentError:
    return DocumentError("the file cannot be read", where=found.id, why=why, fix="run the command again")
