"""Small stand-ins for the outside: a deterministic embedder, and documents cut and analysed the plainest way."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from wellhead.records import Document, DocumentRow, Passage, PassageRow, Terms

__all__ = ["HashEmbedder", "document_row", "vectors_of"]


class HashEmbedder:
    """Unit vectors drawn from a hash of the text: equal texts are equal, others are strangers. Knows no meaning."""

    def __init__(self, dims: int = 16, name: str = "hash") -> None:
        self.dims = dims
        self.name = name

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32[len(texts), dims], in the order given."""
        return np.stack([self.embed_query(text) for text in texts]) if texts else np.zeros((0, self.dims), np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """float32[dims]."""
        seed = int.from_bytes(hashlib.sha256(f"{self.name}|{text}".encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(self.dims)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def document_row(
    document: Document, *, scope: str = "", origin: str = "", incomplete: bool = False, with_vectors: bool = True
) -> DocumentRow:
    """A document as a store takes it: a passage a line, words cut at blanks, no stemming.

    The vector key of a passage is the sha256 of its text; `vectors_of` makes the vectors.
    """
    seen: Counter[str] = Counter()
    passages = []
    for ordinal, (start, end) in enumerate(_lines(document.text)):
        text = document.text[start:end]
        passages.append(_passage_row(document, scope, ordinal, start, text, seen[text], with_vectors))
        seen[text] += 1
    digest = hashlib.sha256(repr(document).encode()).digest()
    return DocumentRow(
        scope=scope, document=document, origin=origin, digest=digest, incomplete=incomplete, passages=tuple(passages)
    )


def _lines(text: str) -> Iterator[tuple[int, int]]:
    return (found.span() for found in re.finditer(r"[^\n]*\S[^\n]*", text))


def _passage_row(
    document: Document, scope: str, ordinal: int, start: int, text: str, occurrence: int, with_vectors: bool
) -> PassageRow:
    words = Counter(text.casefold().split())
    passage = Passage(
        id=hashlib.sha256(repr((scope, document.id, text, occurrence)).encode()).hexdigest(),
        document_id=document.id,
        ordinal=ordinal,
        text=text,
        start=start,
        end=start + len(text),
        heading=(document.title,) if document.title else (),
        uri=document.uri,
        title=document.title,
        metadata=document.metadata,
        content_hash=hashlib.sha256(text.encode()).hexdigest()[:12],
        language=document.language,
        context=document.title,
    )
    return PassageRow(
        passage=passage,
        digest=hashlib.sha256(repr(passage).encode()).digest(),
        vector_key=hashlib.sha256(text.encode()).digest() if with_vectors else b"",
        terms=Terms(stems={word.rstrip("s") or word: count for word, count in words.items()}, words=words),
    )


def vectors_of(rows: Iterable[DocumentRow], embedder: HashEmbedder) -> dict[bytes, NDArray[np.float32]]:
    """The vectors that these rows refer to, by key."""
    return {
        row.vector_key: embedder.embed_query(row.passage.text)
        for document in rows
        for row in document.passages
        if row.vector_key
    }
