"""Documents on their way in: stamped with their scope, checked, read from folders; and out again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from wellhead.backends.readers.folder import read_folder
from wellhead.backends.readers.reading import FRONT_MATTER, FileSkipped
from wellhead.backends.readers.walk import Found
from wellhead.errors import DocumentError, ScopeError, UsageError
from wellhead.index.house import House, Scope, scope_value
from wellhead.ingest.load import Incoming, Progress, in_words, load
from wellhead.records import Document, Refusal, SyncReport
from wellhead.search.filters import instant

__all__ = ["FolderReading", "add", "remove", "sync"]


def add(house: House, scope: Scope | None, documents: Iterable[Document], progress: Progress | None) -> SyncReport:
    """Write what a program gives (see `Index.add`)."""
    if isinstance(documents, (Document, str, bytes, Mapping)) or not isinstance(documents, Iterable):
        raise _no_documents(cast("object", documents))
    house.check_fresh()
    incoming = Stamp(house, scope).incoming(documents)
    return load(incoming, house.store, house.recipe, progress=progress, sinks=house.sinks)


def _no_documents(given: object) -> UsageError:
    fix = "add([Document(...)])" if isinstance(given, Document) else "make each one a wellhead.Document"
    return UsageError("add takes an iterable of Document", why=f"got {type(given).__name__} {given!r:.80}", fix=fix)


def sync(
    house: House,
    reading: FolderReading,
    *,
    prune: bool,
    dry_run: bool,
    progress: Progress | None,
    prune_all: bool = False,
) -> SyncReport:
    """Make the store equal to a folder (see `Index.sync`)."""
    house.check_fresh()
    if progress is not None:
        progress(0, reading.total, "")
    report = load(
        reading.incoming(),
        house.store,
        house.recipe,
        dry_run=dry_run,
        total=reading.total,
        progress=progress,
        sinks=house.sinks,
    )
    removed = reading.prune(report, dry_run=dry_run, everything=prune_all) if prune else 0
    return msgspec.structs.replace(
        report, removed=removed, skipped=dict(sorted(reading.skipped.items())), notes=tuple(reading.notes)
    )


def remove(house: House, scope: Scope | None, ids: Sequence[str]) -> int:
    """Delete documents of the handle's scope (see `Index.remove`)."""
    house.check_fresh()
    held = house.store_scope(scope, "written")
    stamp = Stamp(house, scope)
    return house.store.delete(held, [one for one in ids if not stamp.is_foreign(one)])


class Stamp:
    """Gives each document its scope, and refuses what does not belong in it."""

    def __init__(self, house: House, scope: Scope | None) -> None:
        self._house = house
        self._scope = scope
        self._placed: dict[str, str] = {}

    def incoming(self, documents: Iterable[Document]) -> Iterator[Incoming | Refusal]:
        """What a program adds. It may stamp the scope key itself; a stamp for another scope is an error.

        Raises:
            ScopeError: a document outside the handle's scope, or without one where the index has scopes.
            UsageError: something that is no `Document`.
        """
        for document in documents:
            if not isinstance(document, Document):
                raise _no_documents(document)
            try:
                self.check_dates(document)
            except DocumentError as error:
                yield Refusal(id=document.id, reason=in_words(error))
            else:
                yield self._stamped(document)

    def _stamped(self, document: Document) -> Incoming | Refusal:
        key = self._house.scope_key
        if self._scope is not None:
            document = self.own(document)
        scope = "" if key is None else scope_value(key, document.metadata.get(key), document.id)
        if key is None or self._scope is not None:
            return Incoming(document=document, scope=scope, origin="")
        # A host program that stamps another scope moves the document.
        if self._placed.setdefault(document.id, scope) != scope:
            why = f"this run stamps it for two values of {key}; write each through a handle of its own {key}"
            return Refusal(id=document.id, reason=why)
        leaves = tuple(other for other in self._house.store.scopes_of(document.id) if other != scope)
        return Incoming(document=document, scope=scope, origin="", leaves=leaves)

    def own(self, document: Document) -> Document:
        """The document with the handle's scope in its metadata.

        Raises:
            ScopeError: it is stamped for another scope, or its id is taken outside this one.
        """
        scope = self._scope
        if scope is None:
            return document
        if document.metadata.get(scope.key, scope.value) != scope.value:
            raise ScopeError(
                f"document {document.id!r} is stamped for another {scope.key}",
                fix=f"write it through a handle of its own {scope.key}, or leave the key out",
            )
        if self._house.scope_key is None and self.is_foreign(document.id):
            raise ScopeError(
                f"the document id {document.id!r} is taken outside this scope",
                why="without a scope key all scopes of an index share one space of ids",
                fix=f"open the index with scope_key={scope.key!r}, so that each {scope.key} has ids of its own",
            )
        return msgspec.structs.replace(document, metadata={**document.metadata, scope.key: scope.value})

    def is_foreign(self, document_id: str) -> bool:
        """In an index without a scope key: whether a document of this id lies outside the handle's scope."""
        if self._scope is None or self._house.scope_key is not None:
            return False
        held = self._house.store.get("", document_id)
        return held is not None and held.metadata.get(self._scope.key) != self._scope.value

    def check_dates(self, document: Document) -> None:
        """Refuse a document that holds no date where the index expects one.

        Raises:
            DocumentError: naming the key and the value.
        """
        for key in self._house.date_keys:
            value = document.metadata.get(key)
            if value is not None and (not isinstance(value, str) or instant(value) is None):
                raise DocumentError(
                    f"metadata {key!r} is no ISO-8601 date",
                    where=document.id,
                    why=f"got {value!r}",
                    fix='write it as "2026-01-31" or "2026-01-31T12:00:00+00:00"',
                )


class FolderReading:
    """Reads the files of one sync into documents, and remembers which are there and what was skipped."""

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
        self._kept: set[str] = set()
        self.notes: list[Refusal] = []
        self.skipped = Counter(entry.reason for entry in self._folder.skipped)
        self.total = len(self._folder.found) + len(self._folder.refused)

    def incoming(self) -> Iterator[Incoming | Refusal]:
        """Every file as a document, or why it is refused."""
        for entry in self._folder.refused:
            yield Refusal(id=self._folder.prefix + entry.id, reason=entry.reason)
        for found in self._folder.found:
            item = self._read(found)
            if item is not None:
                self._kept.add(self._folder.prefix + found.id)
                yield item

    def _read(self, found: Found) -> Incoming | Refusal | None:
        try:
            document = self._without_scope(self._folder.read(found))
            self._note(document)
            self._stamp.check_dates(document)
            return Incoming(document=self._stamp.own(document), scope=self._scope, origin=self._origin)
        except FileSkipped as skip:
            self.skipped[skip.reason] += 1
            return None
        except (DocumentError, ScopeError) as error:
            return Refusal(id=self._folder.prefix + found.id, reason=in_words(error))

    def _note(self, document: Document) -> None:
        unread = document.metadata.get(FRONT_MATTER)
        if unread is not None:
            self.notes.append(Refusal(id=document.id, reason=f"front matter {unread}; indexed without its metadata"))

    def _without_scope(self, document: Document) -> Document:
        """What a file says of its own scope never counts: a reader cannot stamp it."""
        metadata = {name: value for name, value in document.metadata.items() if name != self._key}
        return msgspec.structs.replace(document, metadata=metadata)

    def prune(self, report: SyncReport, *, dry_run: bool, everything: bool) -> int:
        """Remove what came from this origin and is not there any more; what could not be looked at stays.

        Raises:
            UsageError: not one document is there any more, and `everything` does not say that this is meant.
        """
        states = self._house.store.states(self._scope)
        held = [one for one, state in states.items() if state.origin == self._origin]
        lost = [one for one in held if one not in self._kept and not self._folder.is_unknown(one)]
        gone = [one for one in lost if not self._stamp.is_foreign(one)]
        if gone and not everything and not report.read:
            raise UsageError(
                f"no document was taken, and {len(gone)} of the index came from here: none was removed",
                where=self._root,
                why="a typo in a pattern and a folder that is not mounted look the same",
                fix="check the path and the patterns; prune_all=True (--prune-all) removes them, prune=False "
                "(--no-prune) keeps them",
            )
        return len(gone) if dry_run or not gone else self._house.store.delete(self._scope, gone)


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
