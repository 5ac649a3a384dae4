"""What may be handed over as an embedder: a function, an object with one method, or one with a method for each role."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wellhead.errors import ConfigError
from wellhead.ports import Embedder

if TYPE_CHECKING:
    from wellhead.ports import FloatArray

__all__ = ["FunctionEmbedder", "embedder_of"]

_SAMPLE = "dimensions"


def embedder_of(given: object) -> Embedder:
    """An embedder out of what was given. Nothing is called yet.

    Args:
        given: an `Embedder`; an object with `embed_documents` and `embed_query`, which keep their roles; one with
            `embed_query` alone, or a function from a text to a vector, which knows no roles.

    Raises:
        ConfigError: none of these.
    """
    if isinstance(given, type):
        raise ConfigError(f"{given.__name__} is a class, and no embedder", fix="make an object of it first")
    if isinstance(given, Embedder):
        return given
    query, documents = getattr(given, "embed_query", None), getattr(given, "embed_documents", None)
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not name:
        name = getattr(given, "__qualname__", "") or type(given).__qualname__
    if callable(query):
        return FunctionEmbedder(query, documents if callable(documents) else None, name=name)
    if callable(given):
        return FunctionEmbedder(given, name=name)
    raise ConfigError(
        f"a {type(given).__name__} is no embedder",
        fix="pass a function from a text to a vector, or an object with embed_query and embed_documents",
    )


class FunctionEmbedder:
    """An embedder out of one function, or of one for each role. It asks once for its own dimensions.

    Raises:
        ConfigError: at a call: no vector, or one of another size than before.
    """

    def __init__(
        self,
        query: Callable[[str], Any],
        documents: Callable[[list[str]], Any] | None = None,
        *,
        name: str = "function",
    ) -> None:
        self.name = name
        self._query = query
        self._documents = documents
        self._dims = 0
        self._lock = threading.Lock()

    @property
    def dims(self) -> int:
        with self._lock:
            if not self._dims:
                self._dims = len(self._vector(self._query(_SAMPLE)))
            return self._dims

    def embed_documents(self, texts: Sequence[str]) -> FloatArray:
        """float32[len(texts), dims], in the order given."""
        made = list(self._documents(list(texts))) if self._documents else [self._query(text) for text in texts]
        if len(made) != len(texts):
            raise ConfigError(
                f"the embedder {self.name!r} gave {len(made)} vectors for {len(texts)} texts",
                fix="make it return one vector a text",
            )
        vectors = [self._sized(vector) for vector in made]
        return np.stack(vectors) if vectors else np.zeros((0, self.dims), np.float32)

    def embed_query(self, text: str) -> FloatArray:
        """float32[dims]."""
        return self._sized(self._query(text))

    def _sized(self, made: object) -> FloatArray:
        vector, dims = self._vector(made), self.dims
        if len(vector) != dims:
            raise ConfigError(
                f"the embedder {self.name!r} changed the size of its vectors",
                why=f"it had {dims} dimensions and now gives {len(vector)}",
                fix="use one model for documents and queries, and make a new retriever for another one",
            )
        return vector

    def _vector(self, made: object) -> FloatArray:
        try:
            vector: FloatArray = np.asarray(made, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the embedder {self.name!r} gave no vector", why=f"it gave a {type(made).__name__}"
            ) from error
        if vector.ndim != 1 or not vector.size:
            raise ConfigError(f"the embedder {self.name!r} gave no vector", why=f"its shape is {vector.shape}")
        return vector
