"""Names to objects: one table for each kind, then the entry points that other packages declare."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from wellhead.errors import ConfigError

if TYPE_CHECKING:
    from wellhead.backends.embedders.profiles import Profile
    from wellhead.ingest.chunk import Chunker, TokenStarts
    from wellhead.ports import Embedder, Store

__all__ = ["CHUNKERS", "EMBEDDERS", "PASSAGE_TOKENS", "chunker", "embedder", "model_name", "profile", "store"]

_Made = TypeVar("_Made")

# About 180 words of English in the tokens of `static`.
PASSAGE_TOKENS = 320
# Of a model's window, what is left to title and headings.
_CONTEXT_SHARE = 4


def _static() -> Embedder:
    from wellhead.backends.embedders.static import StaticEmbedder

    return StaticEmbedder()


def _structure(size: int, token_starts: TokenStarts) -> Chunker:
    from wellhead.ingest.chunk import structure

    return functools.partial(structure, size=size, token_starts=token_starts)


def _fixed(size: int, token_starts: TokenStarts) -> Chunker:
    from wellhead.ingest.chunk import fixed

    return functools.partial(fixed, size=size, overlap=size // 8, unit="tokens", token_starts=token_starts)


def _paragraph(size: int, token_starts: TokenStarts) -> Chunker:
    from wellhead.ingest.chunk import paragraph

    return functools.partial(paragraph, size=size, token_starts=token_starts)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"static": _static}
CHUNKERS: dict[str, Callable[[int, TokenStarts], Chunker]] = {
    "structure": _structure,
    "fixed": _fixed,
    "paragraph": _paragraph,
}


def embedder(name: str) -> Embedder:
    """The embedder of that name: ours, or one that an installed package declares under `wellhead.embedders`.

    Raises:
        ConfigError: no such name. MissingExtra: its package is not installed.
    """
    return _named("embedder", name, EMBEDDERS)()


def chunker(name: str, model: Embedder) -> tuple[Chunker, str]:
    """The chunker of that name, sized in the embedder's own tokens, and its name with its settings.

    Raises:
        ConfigError: no such name.
    """
    from wellhead.ingest.chunk import word_starts
    from wellhead.ports import Tokenized

    make = _named("chunker", name, CHUNKERS)
    tokenized = isinstance(model, Tokenized)
    window = model.window if isinstance(model, Tokenized) else None
    size = PASSAGE_TOKENS if window is None else min(PASSAGE_TOKENS, window - window // _CONTEXT_SHARE)
    return (
        make(size, model.token_starts if isinstance(model, Tokenized) else word_starts),
        f"{name}-1:{size}{'' if tokenized else 'w'}",
    )


def model_name(model: Embedder) -> str:
    """What a vector depends on: name, revision where the embedder has one, dimensions."""
    revision = getattr(model, "revision", "")
    return f"{model.name}{'@' if revision else ''}{revision}:{model.dims}"


def profile(model: Embedder) -> Profile:
    """What was measured for an embedder; without cuts for one that nobody measured."""
    from wellhead.backends.embedders.profiles import PROFILES, UNKNOWN

    return PROFILES.get(model_name(model), UNKNOWN)


def store(path: str | Path, *, read_only: bool, create: bool) -> Store:
    """The embedded store in a folder, or one in memory for `:memory:`."""
    if str(path) == ":memory:":
        from wellhead.backends.stores.memory import MemoryStore

        return MemoryStore()
    from wellhead.backends.stores.embedded import EmbeddedStore

    return EmbeddedStore(path, read_only=read_only)


def _named(kind: str, name: str, table: Mapping[str, _Made]) -> _Made:
    if name in table:
        return table[name]
    declared = {entry.name: entry for entry in metadata.entry_points(group=f"wellhead.{kind}s")}
    if name in declared:
        loaded: _Made = declared[name].load()
        return loaded
    known = sorted({*table, *declared})
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigError(f"no {kind} named {name!r}", fix=f"{meant}known: {', '.join(known)}")
