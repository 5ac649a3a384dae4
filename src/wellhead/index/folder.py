"""The files of one sync: which of them are unchanged, what the others hold, and which documents lost theirs."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from wellhead.backends.readers.folder import read_folder
from wellhead.backends.readers.reading import FRONT_MATTER, REVISION, FileSkipped
from wellhead.backends.readers.walk import Found
from wellhead.errors import DocumentError, ScopeError, UsageError
from wellhead.index.house import House, Scope
from wellhead.index.stamp import Stamp
from wellhead.ingest.incoming import Incoming, Unread
from wellhead.ingest.load import in_words
from wellhead.records import Document, Refusal, SyncReport

__all__ = ["FolderReading"]

_Read = TypeVar("_Read", Unread, Incoming)


class FolderReading:
    """Reads the files of one sync, and remembers which are there and what was skipped."""

    def __init__(
        self,
        house: House,
        scope: Scope | None,
        path: str | Path,
        *,
        include: Sequence[str],
        exclude: Sequence[str],
        prefix: str,
        origin: str | None,
    ) -> None:
        root = _root(path)
        _check_names(prefix, origin)
        self._root = str(root)
        self._house = house
        self._stamp = Stamp(house, scope)
        self._key = scope.key if scope is not None else house.scope_key
        self._scope = house.store_scope(scope, "written")
        self._origin = _origin(house, root) if origin is None else origin
        self._folder = read_folder(root, include=include, exclude=exclude, prefix=prefix, skip=_own_folder(house))
        self._source = _Source(house, scope, self._key)
        self._kept: set[str] = set()
        self.notes: list[Refusal] = []
        self.skipped = Counter(entry.reason for entry in self._folder.skipped)
        self.total = len(self._folder.found) + len(self._folder.refused)

    def incoming(self) -> Iterator[Unread | Refusal]:
        """The bytes of every file, or why it is refused."""
        for entry in self._folder.refused:
            yield Refusal(id=self._folder.prefix + entry.id, reason=entry.reason)
        for found in self._folder.found:
            self._kept.add(self._id(found))
            item = self._told(found, partial(self._unread, found))
            if item is not None:
                yield item

    def _id(self, found: Found) -> str:
        return self._folder.prefix + found.id

    def _told(self, found: Found, read: Callable[[], _Read]) -> _Read | Refusal | None:
        """What `read` makes of a file, or why it is refused; None for one that is skipped, as its content shows."""
        try:
            return read()
        except FileSkipped as skip:
            self.skipped[skip.reason] += 1
            self._kept.discard(self._id(found))
            return None
        except (DocumentError, ScopeError) as error:
            return Refusal(id=self._id(found), reason=in_words(error))

    def _unread(self, found: Found) -> Unread:
        data = self._folder.content(found)
        source = self._source.digest(self._folder.prefix, found.id, data)
        return Unread(
            id=self._id(found),
            scope=self._scope,
            origin=self._origin,
            source=source,
            size=len(data),
            read=partial(self._told, found, partial(self._incoming, found, data, source)),
        )

    def _incoming(self, found: Found, data: bytes, source: bytes) -> Incoming:
        document = self._without_scope(self._folder.document(found, data))
        unread = document.metadata.get(FRONT_MATTER)
        if unread is not None:
            self.notes.append(Refusal(id=document.id, reason=f"front matter {unread}; indexed without its metadata"))
        self._stamp.check_dates(document)
        return Incoming(
            document=self._stamp.own(document),
            scope=self._scope,
            origin=self._origin,
            # Without a source it is read again by every run, each of which has to say this.
            source=source if unread is None else b"",
        )

    def _without_scope(self, document: Document) -> Document:
        """What a file says of its own scope never counts: a reader cannot stamp it."""
        metadata = {name: value for name, value in document.metadata.items() if name != self._key}
        return msgspec.structs.replace(document, metadata=metadata)

    def prune(self, report: SyncReport, *, dry_run: bool, everything: bool) -> int:
        """Remove what came from this origin and is not there any more; what could not be looked at stays.

        Raises:
            UsageError: not one document is there any more, and `everything` does not say that this is meant.
        """
        gone = self._gone()
        if gone and not everything and not report.read:
            raise UsageError(
                f"no document was taken, and {len(gone)} of the index came from here: none was removed",
                where=self._root,
                why="a typo in a pattern and a folder that is not mounted look the same",
                fix="check the path and the patterns; prune_all=True (--prune-all) removes them, prune=False "
                "(--no-prune) keeps them",
            )
        return len(gone) if dry_run or not gone else self._house.store.delete(self._scope, gone)

    def _gone(self) -> list[str]:
        """The documents of this origin without a file."""
        held = self._house.store.summaries(self._scope)
        # A damaged row does not say where it came from, but its state does.
        away = [one.id for one in held if one.id not in self._kept and (one.damaged or one.origin == self._origin)]
        lost = [one for one in away if not self._folder.is_unknown(one)]
        states = self._house.store.states(self._scope, lost)
        ours = [one for one, state in states.items() if state.origin == self._origin]
        return [one for one in ours if not self._stamp.is_foreign(one)]


class _Source:
    """Digests by which a file is known to be unchanged without reading it into a document."""

    def __init__(self, house: House, scope: Scope | None, key: str | None) -> None:
        recipe = house.recipe
        parts = (
            REVISION,
            key,
            None if scope is None else scope.value,
            house.date_keys,
            (recipe.chunker, recipe.model, recipe.analyzer, recipe.languages),
        )
        self._common = hashlib.sha256(msgspec.json.encode(parts))

    def digest(self, prefix: str, name: str, data: bytes) -> bytes:
        """32 bytes over a file's bytes and all that decides what becomes of them. `name`: relative to the root.

        Neither its time nor its size counts: an edit within one tick of the clock keeps both.
        """
        digest = self._common.copy()
        for part in (prefix.encode("utf-8", "surrogatepass"), name.encode(), data):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.digest()


def _root(path: object) -> Path:
    """The folder or file to read.

    Raises:
        UsageError: a blank path (which would mean the current folder), no path at all, or nothing there.
    """
    if not isinstance(path, (str, os.PathLike)) or (isinstance(path, str) and not path.strip()):
        raise UsageError("sync takes the path of a folder or a file", why=f"got {path!r:.80}", fix='sync("docs")')
    try:
        root = Path(cast("str", path))
        # Not `exists`, which says of a path that cannot be one that there is nothing.
        root.stat()
    except FileNotFoundError as error:
        raise UsageError(
            f"there is nothing at {str(cast(object, path))!r}", fix="name a folder or a file that exists"
        ) from error
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError("the path cannot be looked at", where=f"{path!r:.200}", why=why, fix="check it") from error
    return root


def _check_names(prefix: object, origin: object) -> None:
    """Refuse a prefix that is no text, and a blank origin: that one stands for what a program added."""
    if not isinstance(prefix, str):
        raise UsageError("prefix must be text", why=f"got {prefix!r:.80}", fix='prefix="guides/"')
    if origin is not None and (not isinstance(origin, str) or not origin.strip()):
        raise UsageError("origin must be non-blank text", why=f"got {origin!r:.80}", fix='origin="docs", or None')


def _origin(house: House, root: Path) -> str:
    """The folder's path from where the index lies: no absolute path, so that both can move together."""
    base = Path.cwd() if house.store.folder is None else house.store.folder.resolve().parent
    return Path(os.path.relpath(root.resolve(), base)).as_posix()


def _own_folder(house: House) -> tuple[Path, ...]:
    return () if house.store.folder is None else (house.store.folder,)
