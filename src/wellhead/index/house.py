"""What all handles of one index share: the store, how rows are made, and the rules of its scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from wellhead import wiring
from wellhead.errors import ConfigError, CorruptStore, ScopeError, StaleIndex, UsageError
from wellhead.events import Sink

if TYPE_CHECKING:
    from wellhead.ingest.chunk import Chunker
    from wellhead.ingest.rows import Recipe
    from wellhead.ports import Embedder, Store

__all__ = ["House", "OnDegrade", "Scope", "open_house"]

OnDegrade: TypeAlias = Literal["flag", "fail"]


class Scope(msgspec.Struct, frozen=True):
    """What a handle is bound to: `metadata[key] == value`."""

    key: str
    value: str


class House(msgspec.Struct, frozen=True, kw_only=True):
    """One open index.

    Args:
        stale: settings that differ from how the index was made: name -> (was, is now).
    """

    store: Store
    recipe: Recipe
    scope_key: str | None
    date_keys: tuple[str, ...]
    stale: Mapping[str, tuple[str, str]]
    sinks: tuple[Sink, ...]
    capture_content: bool
    on_degrade: OnDegrade

    def store_scope(self, scope: Scope | None, verb: str) -> str:
        """The store's name for a scope: its value where the index keeps scopes apart, "" where it has none.

        Raises:
            ScopeError: the index has scopes, and this handle is bound to none.
        """
        if self.scope_key is None:
            return ""
        if scope is None:
            raise ScopeError(
                f"this index cannot be {verb} without its scope",
                why=f"it keeps every {self.scope_key} apart",
                fix=f'bind one first: index.scoped({self.scope_key}="...")',
            )
        return scope.value

    def check_fresh(self, *names: str) -> None:
        """Refuse to mix what two models, chunkers or analyzers made.

        Args:
            names: the settings that matter here; all of them when left out.

        Raises:
            StaleIndex: naming what differs.
        """
        stale = {name: pair for name, pair in self.stale.items() if not names or name in names}
        if stale:
            differ = "; ".join(f"{name} was {was!r}, is {now!r}" for name, (was, now) in sorted(stale.items()))
            raise StaleIndex(
                "the index was made with other settings",
                where=self.store.where,
                why=differ,
                fix="open it as it was made, or make a new one: wellhead index FOLDER --into NEW",
            )


def open_house(
    path: str | Path,
    *,
    scope_key: str | None,
    embedder: str | Embedder | None,
    chunker: str | Chunker | None,
    languages: Sequence[str] | None,
    date_keys: Sequence[str] | None,
    create: bool,
    read_only: bool,
    sinks: Sequence[Sink],
    capture_content: bool,
    on_degrade: OnDegrade,
) -> House:
    """Open or make the store, and settle what is asked with how the index was made (see `Index.open`)."""
    if on_degrade not in ("flag", "fail"):
        raise UsageError(f"unknown on_degrade {on_degrade!r}", fix="known: flag, fail")
    _check_options(scope_key, date_keys, sinks)
    # A wrong name must not leave an empty index behind.
    wiring.recipe({}, embedder, chunker, languages)
    store = wiring.store(path, read_only=read_only, create=create)
    try:
        made = store.settings()
        _check_whole(made, store)
        recipe, names = wiring.recipe(made, embedder, chunker, languages)
        settled = {
            **names,
            "scope_key": _fixed(made, "scope_key", scope_key or ""),
            "date_keys": made.get("date_keys", "") if date_keys is None else "\n".join(date_keys),
        }
        stale = {name: (made[name], now) for name, now in names.items() if name in made and made[name] != now}
        if settled != made and not stale and not store.read_only:
            store.set_settings(settled, expected=made)
    except BaseException:
        store.close()
        raise
    return House(
        store=store,
        recipe=recipe,
        scope_key=settled["scope_key"] or None,
        date_keys=tuple(filter(None, settled["date_keys"].split("\n"))),
        stale=stale,
        sinks=tuple(sinks),
        capture_content=capture_content,
        on_degrade=on_degrade,
    )


_SETTINGS = frozenset({"embedder", "model", "chunker", "analyzer", "languages", "scope_key", "date_keys"})


def _check_whole(made: Mapping[str, str], store: Store) -> None:
    """Raises CorruptStore where settings are gone: without its scope key an index would open as another one."""
    missing = _SETTINGS - made.keys()
    if missing and (made or store.version()):
        raise CorruptStore(
            "settings of the index are gone",
            where=store.where,
            why=f"missing: {', '.join(sorted(missing))}",
            fix="restore a backup, or run `wellhead repair` and give it what the index was made with",
        )


def _check_options(scope_key: object, date_keys: Sequence[object] | None, sinks: Sequence[object]) -> None:
    """Raises ConfigError for what would be taken silently wrong: a text is a list of letters to Python."""
    if scope_key is not None and not (isinstance(scope_key, str) and scope_key.strip() and scope_key.isprintable()):
        raise ConfigError("scope_key must be the name of a metadata key", why=f"got {scope_key!r}")
    for name, value in (("date_keys", date_keys), ("sinks", sinks)):
        if value is not None and not isinstance(value, (list, tuple, set, frozenset)):
            raise ConfigError(f"{name} takes a list", why=f"got {value!r:.60}", fix=f"write {name}=[...]")
    wrong = [key for key in date_keys or () if not isinstance(key, str) or not key.strip()]
    if wrong:
        raise ConfigError("date_keys are names of metadata keys", why=f"got {wrong!r:.60}")


def _fixed(made: Mapping[str, str], name: str, wanted: str) -> str:
    """A setting that is fixed when the index is made."""
    held = made.get(name, "")
    if made and wanted and wanted != held:
        raise ConfigError(
            f"this index was made with {name}={held or None!r}, not {wanted!r}",
            fix="open it as it was made, or index into another folder",
        )
    return held if made else wanted
