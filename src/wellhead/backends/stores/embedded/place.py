"""Where the file of an index lies, and whether it still is the one that was opened."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from wellhead.errors import StoreError

__all__ = ["FILE_NAME", "Place", "Stamp", "discard", "put_in_place"]

FILE_NAME = "wellhead.sqlite"
_LOG, _MEMORY = "-wal", "-shm"

Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class Place:
    """The path of the file, absolute: a program may change its working directory."""

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        self.folder = folder.absolute()
        self.path = self.folder / FILE_NAME
        self._name = str(self.path)
        self.log = self.path.with_name(FILE_NAME + _LOG)
        self._opened: tuple[int, int] | None = None

    def remember(self) -> None:
        """The file that lies here now is the one that is open. While it is, no other can get its inode."""
        self._opened = self._now()

    def check(self) -> None:
        """Refuse to go on with a file that is not here any more: what was written into it would be lost.

        Raises:
            StoreError: the file, or a folder above it, was deleted, moved or replaced.
        """
        if self._opened is not None and self._now() != self._opened:
            raise StoreError(
                "the index was removed or replaced while it was open",
                where=self.where,
                why=f"{FILE_NAME} is gone, or is not the file that was opened",
                fix="open it again",
            )

    def _now(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._name)  # noqa: PTH116 (asked several times a search)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def stamp(self) -> Stamp:
        """Time of change, size and inode of the file and of its log: other ones after every write."""
        return _stamp(self.path), _stamp(self.log)

    def writable(self) -> bool:
        """Whether the file, and SQLite's log beside it, may be written (where there is none yet: probably)."""
        if _stamp(self.path) is not None:
            return os.access(self.path, os.W_OK) and self.folder_writable()
        return _stamp(self.path.parent) is None or self.folder_writable()

    def folder_writable(self) -> bool:
        """Whether files may be made in the folder."""
        return os.access(self.path.parent, os.W_OK)

    def has_log(self) -> bool:
        """Whether SQLite's log holds anything."""
        found = _stamp(self.log)
        return found is not None and found[1] > 0

    def size(self) -> int:
        """Bytes on disk, with SQLite's log."""
        return sum(found[1] for found in self.stamp() if found is not None)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def put_in_place(made: Path, path: Path) -> None:
    """Give a finished file its name, unless another process was first.

    Raises:
        OSError: neither linking nor renaming works here.
    """
    try:
        with suppress(FileExistsError):
            os.link(made, path)
    except OSError:  # a file system without hard links
        if not path.exists():
            made.rename(path)


def discard(made: Path) -> None:
    """Delete a file that SQLite made, and what it put beside it."""
    for suffix in ("", _LOG, _MEMORY):
        with suppress(OSError):
            made.with_name(made.name + suffix).unlink()
