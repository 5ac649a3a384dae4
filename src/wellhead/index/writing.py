"""Documents on their way in, from a program or from a folder; and out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from wellhead.index.folder import FolderReading
from wellhead.index.house import House, Scope
from wellhead.index.stamp import Stamp, no_documents
from wellhead.ingest.load import Progress, load
from wellhead.records import Document, SyncReport

__all__ = ["FolderReading", "add", "remove", "sync"]


def add(house: House, scope: Scope | None, documents: Iterable[Document], progress: Progress | None) -> SyncReport:
    """Write what a program gives (see `Index.add`)."""
    if isinstance(documents, (Document, str, bytes, Mapping)) or not isinstance(documents, Iterable):
        raise no_documents(cast("object", documents))
    house.check_fresh()
    incoming = Stamp(house, scope).incoming(documents)
    return load(incoming, house.store, house.recipe, progress=progress, sinks=house.sinks)


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
