"""Walks a folder in a fixed order and says of everything in it: found, skipped by rule, or refused, and why.

Skipped by rule are hidden and vendored folders (`ignore.py`), what .gitignore or the user's patterns leave out,
index folders, links, special files, empty files and files of a binary kind. A folder that is skipped is told once, with
a "/" at the end of its id, and not entered. Refused is what should have been read and cannot be.

Links are never followed: a link to something inside the root names what is found under its own path, and a link out of
the root must not bring in what was not asked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from wellhead.backends.readers.formats import has_binary_name
from wellhead.backends.readers.ignore import (
    Choice,
    Rules,
    ignored,
    is_derived,
    is_vendored,
    read_rules,
    rules_above,
)
from wellhead.errors import UsageError

__all__ = ["INDEX_MARK", "LARGEST", "Entry", "Found", "Refused", "Skipped", "walk"]

LARGEST = 50 * 2**20  # bytes
INDEX_MARK = "wellhead.sqlite"  # a folder that holds this file is an index


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A file to read. `id`: its path relative to the root, with "/" on every system. `size` in bytes."""

    path: Path
    id: str
    size: int


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Left out by rule. `reason` is a short phrase to count by; the id of a folder ends in "/"."""

    id: str
    reason: str


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Could not be read. Nothing is known of what lies under a folder (an id that ends in "/")."""

    id: str
    reason: str


Entry: TypeAlias = Found | Skipped | Refused


def walk(
    root: Path,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_bytes: int = LARGEST,
    skip: Sequence[Path] = (),
) -> Iterator[Entry]:
    """Everything under `root`, ordered by id; a file as root gives that one file, whatever the rules for names say.

    Args:
        root: a folder or a file; a link given as root is followed.
        include, exclude: patterns in the syntax of .gitignore, relative to `root` (see `Choice`).
        max_bytes: larger files are refused.
        skip: folders or files left out as "index folder".

    Raises:
        UsageError: no such root, or a pattern that matches nothing.
    """
    try:
        real = Path(root).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(
            "no such file or folder", where=str(root), why=getattr(error, "strerror", None) or str(error)
        ) from error
    choice = Choice.parse(include, exclude)
    if not real.is_dir():
        return iter([_entry(real.parent, real.name, real.name, max_bytes)])
    return _Walk(real, choice, max_bytes, frozenset(path.resolve() for path in skip)).entries()


class _Folder(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    id: str  # "" for the root, else with "/" at the end
    rules: tuple[Rules, ...]


class _Walk:
    def __init__(self, root: Path, choice: Choice, max_bytes: int, skip: frozenset[Path]) -> None:
        self._root = root
        self._choice = choice
        self._max_bytes = max_bytes
        self._skip = skip
        self._skip_names = {path.name for path in skip}  # most files need no path of their own to be told apart
        above, self._here, self._in_repository = rules_above(root)
        self._above = tuple(above)

    def entries(self) -> Iterator[Entry]:
        stack = [self._folder(_Folder(path=self._root, id="", rules=self._above))]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, _Folder):
                stack.append(self._folder(item))
            else:
                yield item

    def _folder(self, folder: _Folder) -> Iterator[Entry | _Folder]:
        """What stands directly in a folder, in order, or the reason why it is not entered."""
        try:
            with os.scandir(folder.path) as scan:
                folders = {entry.name: entry.is_dir(follow_symlinks=False) for entry in scan}
            own = read_rules(folder.path, base=self._here + folder.id)
        except OSError as error:
            yield Refused(id=folder.id or "/", reason=f"cannot be read: {error.strerror}")
            return
        names = frozenset(folders)
        if folder.id and INDEX_MARK in names:
            yield Skipped(id=folder.id, reason="index folder")
        elif folder.id and is_derived(names) and not self._choice.opens(folder.path.name):
            yield Skipped(id=folder.id, reason="vendored")
        else:
            inside = _Folder(path=folder.path, id=folder.id, rules=(*folder.rules, *([own] if own else ())))
            # A folder sorts as if its "/" were there, so that ids come out in order.
            for name in sorted(names, key=lambda name: name + "/" * folders[name]):
                yield self._one(inside, name, names, is_folder=folders[name])

    def _one(self, parent: _Folder, name: str, names: frozenset[str], *, is_folder: bool) -> Entry | _Folder:
        identifier = f"{parent.id}{name}{'/' * is_folder}"
        if not _is_utf8(name):
            return Refused(id=_printable(identifier), reason="its name is not valid UTF-8")
        opened = self._choice.opens(name) and name != ".git"
        reason = self._left_out(parent, identifier, name, opened=opened)
        if not reason and is_folder and not opened:
            reason = "vendored" if is_vendored(name, names, in_repository=self._in_repository) else ""
        if reason:
            return Skipped(id=identifier, reason=reason)
        if is_folder:
            rules = () if opened and self._ignores(parent, identifier) else parent.rules
            return _Folder(path=parent.path / name, id=identifier, rules=rules)
        if not self._choice.admits(identifier):
            return Skipped(id=identifier, reason="not included")
        return _entry(parent.path, name, identifier, self._max_bytes)

    def _left_out(self, parent: _Folder, identifier: str, name: str, *, opened: bool) -> str:
        if name in self._skip_names and parent.path / name in self._skip:
            return "index folder"
        if self._choice.removes(identifier):
            return "excluded"
        if name.startswith(".") and not opened:
            return "hidden"
        return "ignored by .gitignore" if not opened and self._ignores(parent, identifier) else ""

    def _ignores(self, parent: _Folder, identifier: str) -> bool:
        return ignored(parent.rules, self._here + identifier)


def _entry(folder: Path, name: str, identifier: str, max_bytes: int) -> Entry:
    """A file by its kind and size; it is not opened."""
    path = folder / name
    try:
        status = path.lstat()
    except OSError as error:
        return Refused(id=identifier, reason=f"cannot be read: {error.strerror}")
    if stat.S_ISLNK(status.st_mode):
        return Skipped(id=identifier, reason="symlink")
    if not stat.S_ISREG(status.st_mode):
        return Skipped(id=identifier, reason="special file")
    if has_binary_name(name):
        return Skipped(id=identifier, reason="binary")
    if not status.st_size:
        return Skipped(id=identifier, reason="empty")
    if status.st_size > max_bytes:
        return Refused(id=identifier, reason=f"larger than {_megabytes(max_bytes)} ({_megabytes(status.st_size)})")
    return Found(path=path, id=identifier, size=status.st_size)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f}".removesuffix(".0") + " MB"


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _printable(identifier: str) -> str:
    return os.fsencode(identifier).decode("utf-8", "backslashreplace")
