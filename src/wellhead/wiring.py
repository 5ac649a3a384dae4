"""Names to objects: one table for each kind, then the entry points that other packages declare."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from wellhead.errors import ConfigError, StoreError, UsageError, WellheadError
from wellhead.hints import choices

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from wellhead.backends.embedders.profiles import Profile
    from wellhead.ingest.chunk import Chunker, TokenStarts
    from wellhead.ingest.rows import Recipe
    from wellhead.ports import Embedder, FloatArray, Store

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
    if not isinstance(path, (str, Path)) or not str(path).strip() or "\0" in str(path):
        raise UsageError("an index needs the path of a folder", why=f"got {path!r:.80}")
    if str(path) == ":memory:":
        from wellhead.backends.stores.memory import MemoryStore

        return MemoryStore()
    from wellhead.backends.stores.embedded import FILE_NAME, EmbeddedStore

    try:
        if not create and not (Path(path) / FILE_NAME).is_file():
            raise UsageError(
                f"there is no index in {str(path)!r}", fix=f"make one: wellhead index FOLDER --into {path}"
            )
        return EmbeddedStore(path, read_only=read_only)
    except WellheadError:
        raise
    except OSError as error:  # a folder that may not be entered, a working directory that is gone
        raise StoreError(
            "the folder of the index cannot be used",
            where=str(path),
            why=error.strerror or type(error).__name__,
            fix="choose a folder that exists and may be entered",
        ) from error


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

    model, model_said = _embedder_of(made, embedder_wanted)
    chunk, name = _chunker_of(made, chunker_wanted, model)
    if isinstance(languages_wanted, (str, bytes)) or not isinstance(languages_wanted or (), Iterable):
        raise ConfigError("languages takes a list of codes", why=f"got {languages_wanted!r:.60}", fix='["en", "de"]')
    spoken = tuple(sorted({str(code) for code in languages_wanted or made.get("languages", "").split()}))
    unknown = [code for code in spoken if code not in LANGUAGES]
    if unknown:
        raise ConfigError(f"no analyzer for the languages {unknown}", fix=f"known: {', '.join(LANGUAGES)}")
    made_of = Recipe(
        chunk=chunk,
        chunker=name,
        embedder=model,
        model=model_said,
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


def _embedder_of(made: Mapping[str, str], wanted: str | Embedder | None) -> tuple[Embedder, str]:
    """The embedder and what a vector depends on; a stand-in where the index was made with an object of its own."""
    from wellhead.ports import Embedder

    if wanted is None and not _has("embedder", made.get("embedder", "static"), EMBEDDERS):
        return _Absent(made["embedder"], int(made["model"].rpartition(":")[2])), made["model"]
    model = embedder(wanted or made.get("embedder", "static")) if wanted is None or isinstance(wanted, str) else wanted
    if not isinstance(model, Embedder):
        raise ConfigError(
            f"{model!r:.60} is no embedder",
            fix="pass a name, or an object with name, dims, embed_documents and embed_query",
        )
    return model, model_name(model)


def _chunker_of(made: Mapping[str, str], wanted: str | Chunker | None, model: Embedder) -> tuple[Chunker, str]:
    if isinstance(wanted, str):
        return chunker(wanted, model)
    if wanted is not None:
        return wanted, _name_of(wanted)
    held = made.get("chunker", "structure-1").rpartition("-")[0]
    if held in CHUNKERS:
        return chunker(held, model)
    return lambda _: _refuse("chunker", made["chunker"]), made["chunker"]


def _name_of(chunk: object) -> str:
    """What tells a chunker from another: its `name`, or its module and name; with its settings where it is a partial.

    Raises:
        ConfigError: it cannot be called, or nothing tells it from another.
    """
    if not callable(chunk):
        raise ConfigError(f"{chunk!r:.60} is no chunker", fix="pass a name, or a function from a document to slices")
    name = getattr(chunk, "name", None)
    if isinstance(name, str) and name.strip():
        return name
    if isinstance(chunk, functools.partial):
        settings = ", ".join(
            [*map(_shown, chunk.args), *(f"{key}={_shown(value)}" for key, value in chunk.keywords.items())]
        )
        return f"{_name_of(chunk.func)}({settings})"
    kind = chunk if hasattr(chunk, "__qualname__") else type(chunk)
    if "<" in kind.__qualname__:
        raise ConfigError(
            f"the chunker {kind.__qualname__} has no name of its own",
            why="an index must know what it was chunked with",
            fix="use a function of a module, or give it a `name`",
        )
    return f"{kind.__module__}.{kind.__qualname__}"


def _shown(value: object) -> str:
    """A setting of a chunker, the same in every process."""
    if callable(value):
        return _name_of(value)
    if " at 0x" in repr(value):
        raise ConfigError(
            f"the chunker's setting {value!r:.60} has no name of its own", fix="give the chunker a `name`"
        )
    return repr(value)


def _has(kind: str, name: str, table: Mapping[str, object]) -> bool:
    return name in table or name in _declared(kind)


def _declared(kind: str) -> Mapping[str, EntryPoint]:
    from importlib import metadata  # late: it is only needed for names that are not ours

    return {entry.name: entry for entry in metadata.entry_points(group=f"wellhead.{kind}s")}


def _named(kind: str, name: str, table: Mapping[str, _Made]) -> _Made:
    if name in table:
        return table[name]
    declared = _declared(kind)
    if name in declared:
        loaded: _Made = declared[name].load()
        return loaded
    known = sorted({*table, *declared})
    raise ConfigError(f"no {kind} named {name!r}", fix=choices(name, known))


class _Absent:
    """Stands for an embedder that was not passed: it has no vectors, and everything that needs none goes on."""

    def __init__(self, name: str, dims: int) -> None:
        self.name = name
        self.dims = dims

    def embed_documents(self, texts: Sequence[str]) -> FloatArray:  # noqa: ARG002 (the port's)
        _refuse("embedder", self.name)

    def embed_query(self, text: str) -> FloatArray:  # noqa: ARG002
        _refuse("embedder", self.name)


def _refuse(kind: str, name: str) -> NoReturn:
    """Say which object has to be passed.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(
        f"this index was made with the {kind} {name!r}, which is not installed under that name",
        fix=f"open it with the same object: Index.open(..., {kind}=...)",
    )
