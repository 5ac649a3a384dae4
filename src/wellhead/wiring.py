"""Names to objects: one table for each kind, then the entry points that other packages declare."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from wellhead.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from wellhead.backends.embedders.profiles import Profile
    from wellhead.ingest.chunk import Chunker, TokenStarts
    from wellhead.ingest.rows import Recipe
    from wellhead.ports import Embedder, Store

__all__ = ["CHUNKERS", "EMBEDDERS", "PASSAGE_TOKENS", "chunker", "embedder", "model_name", "profile", "recipe", "store"]

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
    """The embedded store in a folder, or one in memory for `:memory:`.

    Raises:
        UsageError: no index there, and it is not to be made. StoreError: the folder cannot be used.
    """
    if str(path) == ":memory:":
        from wellhead.backends.stores.memory import MemoryStore

        return MemoryStore()
    from wellhead.backends.stores.embedded import FILE_NAME, EmbeddedStore

    if not create and not (Path(path) / FILE_NAME).is_file():
        raise UsageError(f"there is no index in {str(path)!r}", fix=f"make one: wellhead index FOLDER --into {path}")
    return EmbeddedStore(path, read_only=read_only)


def recipe(
    made: Mapping[str, str],
    embedder_wanted: str | Embedder | None,
    chunker_wanted: str | Chunker | None,
    languages_wanted: Sequence[str] | None,
) -> tuple[Recipe, dict[str, str]]:
    """How rows are made, and the names of it all: the fingerprint that an index is stored under.

    Args:
        made: the names that the index was made with; empty for a new one. They hold where nothing else is wanted.

    Raises:
        ConfigError: an unknown name or language. MissingExtra: a package is not installed.
    """
    from wellhead.analyze import ANALYZER, LANGUAGES
    from wellhead.ingest.rows import Recipe

    chosen = embedder_wanted if embedder_wanted is not None else made.get("embedder", "static")
    model = embedder(chosen) if isinstance(chosen, str) else chosen
    cutter = chunker_wanted if chunker_wanted is not None else made.get("chunker", "structure-").partition("-")[0]
    chunk, name = chunker(cutter, model) if isinstance(cutter, str) else (cutter, _name_of(cutter))
    spoken = tuple(languages_wanted) if languages_wanted is not None else tuple(made.get("languages", "").split())
    unknown = [code for code in spoken if code not in LANGUAGES]
    if unknown:
        raise ConfigError(f"no analyzer for the languages {unknown}", fix=f"known: {', '.join(LANGUAGES)}")
    made_of = Recipe(
        chunk=chunk,
        chunker=name,
        embedder=model,
        model=model_name(model),
        analyzer=ANALYZER,
        languages=spoken or LANGUAGES,
    )
    return made_of, {
        "embedder": model.name,
        "model": made_of.model,
        "chunker": name,
        "analyzer": ANALYZER,
        "languages": " ".join(made_of.languages),
    }


def _name_of(chunk: Chunker) -> str:
    return str(getattr(chunk, "__qualname__", type(chunk).__qualname__))


def _named(kind: str, name: str, table: Mapping[str, _Made]) -> _Made:
    if name in table:
        return table[name]
    from importlib import metadata  # late: it is only needed for names that are not ours

    declared = {entry.name: entry for entry in metadata.entry_points(group=f"wellhead.{kind}s")}
    if name in declared:
        loaded: _Made = declared[name].load()
        return loaded
    known = sorted({*table, *declared})
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigError(f"no {kind} named {name!r}", fix=f"{meant}known: {', '.join(known)}")
