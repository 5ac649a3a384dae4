"""The five ports, and what a store shows of its rows. All structural: no base class to import.

Shapes: n rows of a scope, m distinct vectors, d dimensions. Vectors are float32 and of unit length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from wellhead.records import (
    Document,
    DocumentRow,
    Finding,
    Hits,
    Metadata,
    MetadataValue,
    Passage,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float32]
    DoubleArray: TypeAlias = NDArray[np.float64]
    IntArray: TypeAlias = NDArray[np.int32]
    RowArray: TypeAlias = NDArray[np.intp]
    BoolArray: TypeAlias = NDArray[np.bool_]

__all__ = [
    "Column",
    "DocumentState",
    "DocumentSummary",
    "Embedder",
    "Field",
    "Generator",
    "Posting",
    "Reranker",
    "Retriever",
    "Store",
    "Tokenized",
    "Vectors",
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


class Posting(NamedTuple):
    """Where a term stands: rows (int32, ascending) and how often in each (int32)."""

    rows: IntArray
    counts: IntArray


class Field(Protocol):
    """One analysed field (stems or exact words) over the n rows of a view."""

    @property
    def lengths(self) -> IntArray:
        """Terms in each row: int32[n]."""
        ...

    @property
    def total(self) -> int:
        """The sum of `lengths`."""
        ...

    def posting(self, term: str) -> Posting | None:
        """The rows of a term, or None when no row of the scope holds it."""
        ...

    def folded(self, term: str) -> Sequence[str]:
        """The terms of the field that equal `term` once accents are folded, ascending."""
        ...


class Column(NamedTuple):
    """One metadata key over the rows: `values[codes[row]]`; code -1 where the row lacks the key."""

    codes: IntArray
    values: Sequence[MetadataValue]


class Vectors(NamedTuple):
    """`matrix` float32[m, d] of distinct unit vectors; `of` int32[n]: each row's vector, -1 for none."""

    matrix: FloatArray
    of: IntArray


class View(Protocol):
    """The live rows of one scope at one moment. Rows are ordered by passage id, so a tie by row is a tie by id."""

    @property
    def version(self) -> int:
        """The index version that it shows."""
        ...

    @property
    def stems(self) -> Field: ...
    @property
    def words(self) -> Field: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def documents(self) -> IntArray:
        """int32[n]: equal numbers for rows of one document."""
        ...

    @property
    def contents(self) -> IntArray:
        """int32[n]: equal numbers for rows of equal text."""
        ...

    @property
    def languages(self) -> Mapping[str, int]:
        """Passages by language; "" counts those without one."""
        ...

    def __len__(self) -> int: ...
    def language(self, row: int) -> str:
        """The language of a row, "" for none."""
        ...

    def column(self, key: str) -> Column | None:
        """The metadata under `key`, or None when no row has it."""
        ...

    def keys(self) -> Sequence[str]:
        """The metadata keys in use, ascending."""
        ...

    def row(self, passage_id: str) -> int | None:
        """The row of a passage by its full id."""
        ...

    def starting(self, prefix: str) -> Sequence[int]:
        """The rows whose passage id begins with `prefix`."""
        ...

    def rows_of(self, document_id: str) -> Sequence[int]:
        """The rows of a document, in the order of their ordinals; empty when it is not in the scope."""
        ...

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """The passages themselves, checked against their checksums.

        Raises:
            CorruptStore: stored bytes are not those that were written.
        """
        ...


class DocumentState(NamedTuple):
    """What a store remembers of a document, to tell whether it must be written again."""

    digest: bytes
    origin: str
    incomplete: bool


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

    def close(self) -> None: ...
