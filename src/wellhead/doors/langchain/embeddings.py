"""`WellheadEmbeddings`: one of our embedders, as LangChain's."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from wellhead import wiring
from wellhead.backends.retrievers.embedding import embedder_of

__all__ = ["WellheadEmbeddings"]


class WellheadEmbeddings(Embeddings):
    """An embedder for LangChain: the same vectors that an index is searched with. Roles are kept.

    Args:
        embedder: a name ("static"), an embedder, or a function from a text to a vector.

    Raises:
        ConfigError: no such name, or no embedder.
    """

    def __init__(self, embedder: object = "static") -> None:
        self.embedder = wiring.embedder(embedder) if isinstance(embedder, str) else embedder_of(embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each text, in their order."""
        return [[float(number) for number in vector] for vector in self.embedder.embed_documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return [float(number) for number in self.embedder.embed_query(text)]
