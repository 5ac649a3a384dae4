"""The five ports, and what a store shows of its rows. All structural: no base class to import.

Shapes: n rows, d dimensions. Vectors are float32 and of unit length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from wellhead.records import (
    BackupReport,
    CompactReport,
    Document,
    DocumentRow,
    Finding,
    Hits,
    Metadata,
    MetadataValue,
    Passage,
    RepairReport,
    Storage,
    SyncReport,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float32]
    DoubleArray: TypeAlias = NDArray[np.float64]
    IntArray: TypeAlias = NDArray[np.int32]
    CodeArray: TypeAlias = NDArray[np.int8]
    RowArray: TypeAlias = NDArray[np.intp]
    BoolArray: TypeAlias = NDArray[np.bool_]

__all__ = [
    "AsyncRetriever",
    "Column",
    "Contextual",
    "DocumentState",
    "DocumentSummary",
    "Embedder",
    "Field",
    "Generator",
    "Kept",
    "Posting",
    "Refill",
    "Reranker",
    "Retriever",
    "Store",
    "Tokenized",
    "VectorPart",
    "View",
]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    `name` and, where present, `revision: str` are part of the fingerprint, as is `dims` (> 0).
    """

    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> int: ...
    def embed_documents(self, texts: Sequence[str]) -> FloatArray:
        """Vectors of texts to be stored: float32[len(texts), dims], in the order given."""
        ...

    def embed_query(self, text: str) -> FloatArray:
        """The vector of a query: float32[dims]."""
        ...


@runtime_checkable
class Contextual(Protocol):
    """An embedder that weighs a text against its context by itself; the others are given both in one text."""

    def embed_passages(self, contexts: Sequence[str], texts: Sequence[str]) -> FloatArray:
        """Vectors of texts to be stored, each in its context ("" for none): float32[len(texts), dims], in order."""
        ...


@runtime_checkable
class Tokenized(Protocol):
    """An embedder that shows its tokens, so that passages can be sized in them."""

    @property
    def window(self) -> int | None:
        """The most tokens that the model reads; None for no limit."""
        ...

    def token_starts(self, text: str) -> Sequence[int]:
        """Where each token of `text` begins, in characters, ascending."""
        ...


class Reranker(Protocol):
    """Scores passages against a query, higher is better: float32[len(passages)]."""

    @property
    def name(self) -> str: ...
    def score(self, query: str, passages: Sequence[str]) -> FloatArray: ...


class Generator(Protocol):
    """A chat model: messages in; text, tool calls, or a stream of text out."""

    def generate(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]] = ()
    ) -> Mapping[str, object] | Iterator[str]: ...


class Retriever(Protocol):
    """Anything that answers a query with hits. An `Index` is one."""

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits: ...


class AsyncRetriever(Protocol):
    """A retriever that is awaited."""

    async def asearch(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Hits: ...


class Posting(NamedTuple):
    """Where a term stands: rows (int32, ascending) and how often in each (int32)."""

    rows: IntArray
    counts: IntArray


class Field(Protocol):
    """One analysed field (stems or exact words) over the rows of a view. Only live rows count."""

    @property
    def lengths(self) -> IntArray:
        """Terms in each row: int32[space]."""
        ...

    @property
    def total(self) -> int:
        """The sum of the lengths of all live rows."""
        ...

    def posting(self, term: str) -> Posting | None:
        """The live rows of a term, or None when no row of the scope holds it."""
        ...

    def frequency(self, term: str) -> int:
        """How many documents hold the term in a live row."""
        ...

    def folded(self, term: str) -> Sequence[str]:
        """The terms of the field that equal `term` once accents are folded, ascending."""
        ...


class Column(NamedTuple):
    """One metadata key over the rows: `values[codes[row]]`; code -1 where the row lacks the key, or is not live."""

    codes: IntArray
    values: Sequence[MetadataValue]


class VectorPart(NamedTuple):
    """The vectors of the n rows from `first` on.

    Args:
        floats: float32[n, d] of unit length; all zeros for a row without a vector.
        scales: float32[n]: `codes * scales` is about `floats`; 0.0 for a row without a vector.
        codes: int8[n, d], or None where only the floats are kept.
    """

    first: int
    floats: FloatArray
    scales: FloatArray
    codes: CodeArray | None


class View(Protocol):
    """The live rows of one scope at one moment. Rows are numbered from 0 to `space` - 1; some may be dead.

    Rows stand in no order that means anything: ties are settled by passage id (`by_id`).
    """

    @property
    def version(self) -> int:
        """The index version that it shows."""
        ...

    @property
    def space(self) -> int:
        """How many numbers of rows there are."""
        ...

    @property
    def live(self) -> BoolArray | None:
        """bool[space]: which rows are there; None for all of them."""
        ...

    @property
    def stems(self) -> Field: ...
    @property
    def words(self) -> Field: ...
    @property
    def dims(self) -> int:
        """Of the vectors; 0 where no row has one."""
        ...

    @property
    def vectors(self) -> Sequence[VectorPart]:
        """The vectors, in the order of their rows; those of dead rows too."""
        ...

    @property
    def with_vectors(self) -> int:
        """How many live rows have a vector."""
        ...

    @property
    def document_count(self) -> int:
        """How many documents have a live row."""
        ...

    @property
    def languages(self) -> Mapping[str, int]:
        """Passages by language; "" counts those without one."""
        ...

    def __len__(self) -> int:
        """How many live rows there are."""
        ...

    def language(self, row: int) -> str:
        """The language of a row, "" for none."""
        ...

    def documents(self, rows: RowArray) -> Sequence[int]:
        """Equal numbers for rows of one document."""
        ...

    def count_documents(self, rows: IntArray) -> int:
        """How many documents these live rows, ascending, belong to."""
        ...

    def contents(self, rows: RowArray) -> Sequence[bytes]:
        """Equal bytes for rows of equal text."""
        ...

    def same_texts(self, rows: RowArray) -> Sequence[Sequence[int]]:
        """For each of these rows the live rows of its text, itself included, ascending by passage id."""
        ...

    def by_id(self, rows: RowArray) -> IntArray:
        """The place of each of these rows among them, in the order of their passage ids."""
        ...

    def column(self, key: str) -> Column | None:
        """The metadata under `key`, or None when no live row has it."""
        ...

    def keys(self) -> Sequence[str]:
        """The metadata keys in use, ascending."""
        ...

    def row(self, passage_id: str) -> int | None:
        """The row of a passage by its full id."""
        ...

    def starting(self, prefix: str) -> Sequence[int]:
        """The rows whose passage id begins with `prefix`, ascending by id."""
        ...

    def rows_of(self, document_id: str) -> Sequence[int]:
        """The rows of a document, in the order of their ordinals; empty when it is not in the scope."""
        ...

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """The passages themselves, checked against their checksums.

        Raises:
            CorruptStore: stored bytes are not those that were written.
            StaleView: one of them was deleted since the view was taken.
        """
        ...


class DocumentState(NamedTuple):
    """What a store remembers of a document, to tell whether it must be written again (see `DocumentRow`)."""

    digest: bytes
    origin: str
    incomplete: bool
    source: bytes = b""


class DocumentSummary(NamedTuple):
    """A document without its text, and what a store remembers of it.

    Args:
        passages: how many it has.
        incomplete: some passage is missing, or lost its vector.
        damaged: its row is not as it was written; then nothing but the id is told, and that as far as it can be read.
    """

    id: str
    metadata: Metadata
    title: str = ""
    uri: str = ""
    origin: str = ""
    passages: int = 0
    incomplete: bool = False
    damaged: bool = False


class Kept(NamedTuple):
    """A document that a damaged store still holds whole: as it was put, in its scope, from its origin."""

    document: Document
    scope: str
    origin: str


# Gives a new, empty store what a damaged one still holds: its settings, as far as they are sound, and its documents.
Refill: TypeAlias = Callable[[Mapping[str, str], Iterable[Kept], "Store"], SyncReport]


class Store(Protocol):
    """Keeps documents, their passages and vectors; one scope never sees another's.

    `scope` is "" in an index without scopes. Every method that writes is one transaction: all of it or nothing.
    """

    @property
    def where(self) -> str:
        """For error messages: the folder, or `memory`."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where it lies, or None where it lies in no folder."""
        ...

    @property
    def read_only(self) -> bool: ...
    def version(self) -> int:
        """Grows with every write; 0 for a store never written to."""
        ...

    def settings(self) -> dict[str, str]:
        """What the index was made with (fingerprint parts, scope key), by name; empty for a new store."""
        ...

    def set_settings(self, settings: Mapping[str, str], *, expected: Mapping[str, str] | None = None) -> None:
        """Replace all settings, where `expected` is given only while they are still those: one transaction.

        Raises:
            ConfigError: they are neither `expected` nor already `settings`; nothing is written.
        """
        ...

    def put(self, documents: Sequence[DocumentRow], vectors: Mapping[bytes, FloatArray]) -> None:
        """Write documents whole (replacing those of the same scope and id) and new vectors (float32[d] by key)."""
        ...

    def delete(self, scope: str, ids: Sequence[str]) -> int:
        """Delete documents; how many there were. Vectors that nothing uses any more go too."""
        ...

    def get(self, scope: str, document_id: str) -> Document | None: ...
    def documents(self, scope: str) -> Iterator[Document]:
        """All documents of the scope, by id."""
        ...

    def states(self, scope: str, ids: Sequence[str] | None = None) -> dict[str, DocumentState]:
        """Those of `ids` that are there, or every document of the scope, by id.

        One of which the text, a passage or a vector is damaged or gone counts as incomplete: it raises no error.
        """
        ...

    def set_sources(self, scope: str, states: Mapping[str, DocumentState]) -> None:
        """Remember the `source` of those documents whose digest and origin still are those of their state.

        Nothing that a view shows changes, so the version stays as it is.
        """
        ...

    def summaries(self, scope: str) -> Sequence[DocumentSummary]:
        """Every document of the scope without its text, by id; a damaged one raises no error."""
        ...

    def scopes_of(self, document_id: str) -> list[str]:
        """The scopes that hold a document of this id (for the host program only)."""
        ...

    def known_vectors(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of `keys` that have a stored vector."""
        ...

    def counts(self) -> tuple[int, int]:
        """Distinct vectors, and bytes on disk."""
        ...

    def view(self, scope: str) -> View:
        """The scope as it stands now; cached until the next write."""
        ...

    def verify(self) -> tuple[int, int, int, list[Finding]]:
        """Check every checksum and reference: documents, passages, vectors checked, and what is wrong."""
        ...

    def repair(self, refill: Refill) -> RepairReport:
        """Make anew what `verify` finds wrong, as far as that can be; a store that nothing can damage does nothing."""
        ...

    def compact(self) -> CompactReport:
        """Take what was deleted from the disk for good; a store that keeps nothing of it does nothing."""
        ...

    def backup(self, dest: Path) -> BackupReport:
        """Copy the store, as it is at one moment, into a new folder.

        Raises:
            UsageError: the folder is there and not empty, or the store lies in no folder.
        """
        ...

    def storage(self) -> Storage:
        """How all of it lies on the disk."""
        ...

    def close(self) -> None: ...
