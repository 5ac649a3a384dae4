"""What is done to an index as a whole, whatever the scope: repaired, backed up, told about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wellhead import wiring
from wellhead.errors import ConfigError, ScopeError, UsageError
from wellhead.index.house import House, Scope
from wellhead.ingest.incoming import Incoming
from wellhead.ingest.load import Progress, load
from wellhead.ingest.rows import Recipe
from wellhead.ports import Kept, Store
from wellhead.records import Finding, RepairReport, Storage, SyncReport

if TYPE_CHECKING:
    from wellhead.ingest.chunk import Chunker
    from wellhead.ports import Embedder

__all__ = ["Given", "folder", "notes", "refuse_bound", "repair", "repair_at"]


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What an index was made with, as far as a caller says it; None is left to what is stored.

    Args:
        scope_key: "" for none. date_keys, languages: empty for none, and for all.
    """

    scope_key: str | None = None
    embedder: str | Embedder | None = None
    chunker: str | Chunker | None = None
    languages: Sequence[str] | None = None
    date_keys: Sequence[str] | None = None


# Which option of a caller says what a stored setting says. What analyses is always this version's own.
_SAID_BY = {
    "embedder": "embedder",
    "model": "embedder",
    "chunker": "chunker",
    "languages": "languages",
    "scope_key": "scope_key",
    "date_keys": "date_keys",
}


def refuse_bound(scope: Scope | None, verb: str) -> None:
    """Refuse a handle that is bound to a scope.

    Raises:
        ScopeError: what is asked shows or holds all of them.
    """
    if scope is not None:
        raise ScopeError(
            f"an index cannot be {verb} through a handle that is bound to a scope",
            why=f"all of them are {verb} together, and this handle may only see {scope.key}={scope.value!r}",
            fix="use the handle that Index.open gave",
        )


def repair(house: House, progress: Progress | None) -> RepairReport:
    """Repair an index that is open (see `Index.repair`)."""
    house.check_fresh()
    recipe = house.recipe
    settings = {
        "embedder": recipe.embedder.name,
        "model": recipe.model,
        "chunker": recipe.chunker,
        "analyzer": recipe.analyzer,
        "languages": " ".join(recipe.languages),
        "scope_key": house.scope_key or "",
        "date_keys": "\n".join(house.date_keys),
    }
    return house.store.repair(lambda _, kept, store: _load(recipe, settings, kept, store, progress))


def repair_at(path: str | Path, given: Given, progress: Progress | None) -> RepairReport:
    """Repair an index in a folder, whether or not it can be opened (see `Index.repair_at`)."""
    from wellhead.backends.stores.embedded import FILE_NAME
    from wellhead.backends.stores.embedded.repair import repair as repair_folder

    place = folder(path, "the index")
    if not (place / FILE_NAME).is_file():
        raise UsageError(
            f"there is no index in {str(place)!r}",
            why=f"it has no {FILE_NAME}",
            fix="name the folder of an index; where that file is lost, restore a backup or index the documents again",
        )

    def refill(sound: Mapping[str, str], kept: Iterable[Kept], store: Store) -> SyncReport:
        recipe, settings = _settled(sound, given, str(place))
        return _load(recipe, settings, kept, store, progress)

    return repair_folder(place, refill, needed={*_SAID_BY, "analyzer"})


def folder(path: object, what: str) -> Path:
    """The path of a folder.

    Raises:
        UsageError: it is blank, or none.
    """
    if not isinstance(path, (str, Path)) or not str(path).strip() or "\0" in str(path) or str(path) == ":memory:":
        raise UsageError(f"{what} needs the path of a folder", why=f"got {path!r:.80}", fix="name a folder")
    return Path(path)


def _load(
    recipe: Recipe, settings: Mapping[str, str], kept: Iterable[Kept], store: Store, progress: Progress | None
) -> SyncReport:
    store.set_settings(settings)
    return load(_incoming(kept), store, recipe, progress=progress)


def _incoming(kept: Iterable[Kept]) -> Iterator[Incoming]:
    return (Incoming(document=one.document, scope=one.scope, origin=one.origin) for one in kept)


def _settled(sound: Mapping[str, str], given: Given, where: str) -> tuple[Recipe, dict[str, str]]:
    """How rows are made, and the settings of the new index: those that are sound, and for the lost ones what is given.

    Raises:
        ConfigError: a setting is lost and not given, or given otherwise than it is stored.
    """
    lost = sorted({option for name, option in _SAID_BY.items() if name not in sound and _said(given, option) is None})
    if lost:
        raise ConfigError(
            "what the index was made with is damaged too, and is not guessed",
            where=where,
            why=f"lost: {', '.join(lost)}",
            fix="give each as it was when the index was made: wellhead repair "
            + " ".join(f"--{option.removesuffix('s').replace('_', '-')} ..." for option in lost)
            + " ('' for none), or Index.repair_at(path, ...) in a program",
        )
    recipe, names = wiring.recipe(sound, given.embedder, given.chunker, given.languages)
    settings = {
        **names,
        "scope_key": sound.get("scope_key", "") if given.scope_key is None else given.scope_key,
        "date_keys": sound.get("date_keys", "") if given.date_keys is None else "\n".join(given.date_keys),
    }
    for name, option in _SAID_BY.items():
        if _said(given, option) is not None and settings[name] != sound.get(name, settings[name]):
            raise ConfigError(
                f"the index was made with {name}={sound[name]!r}, not {settings[name]!r}",
                where=where,
                fix=f"leave {option} out, or give it as it was",
            )
    return recipe, settings


def _said(given: Given, option: str) -> object:
    return getattr(given, option)


def notes(storage: Storage) -> tuple[Finding, ...]:
    """What is there that does no harm."""
    return tuple(
        Finding(
            kind="unlisted_file",
            where=f"segments/{name}",
            why="no list names it: a run was stopped before, or another program held it open",
            fix="harmless; `wellhead compact` deletes it",
        )
        for name in storage.unlisted
    )
