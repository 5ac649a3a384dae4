"""`static`: the embedder that is always there. English, 256 dimensions, no key, no download, no server.

A text's vector is the sum of its distinct tokens' rows in a table, each weighted by 1 + ln(how often it occurs), scaled
to unit length: a word that a long passage repeats does not drown the others. In a passage the context (title and
headings) has a quarter of the say and the text the rest, however long they are: in one sum a long text would drown its
title. The table and the tokenizer are the WordLlama weights, read out of that package's folder; the package itself is
never imported.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wellhead.errors import MissingExtra
from wellhead.lazy import lazy

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from wellhead.ports import FloatArray

__all__ = ["CONTEXT_SHARE", "StaticEmbedder"]

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_BATCH = 256
# The say of the context in the vector of a passage, 0 to 1.
CONTEXT_SHARE = 0.25


class StaticEmbedder:
    """Damped sum of token vectors: float32[n, 256] of unit length; a text without a token gives a row of zeros."""

    name = "static"
    revision = "l2_supercat_256-log-context"
    dims = 256
    window: int | None = None

    def __init__(self) -> None:
        self._folder = _folder()

    def embed_documents(self, texts: Sequence[str]) -> FloatArray:
        """Vectors of texts, in the order given."""
        parts = [self._embed(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dims), dtype=np.float32)

    def embed_passages(self, contexts: Sequence[str], texts: Sequence[str]) -> FloatArray:
        """Vectors of texts in their contexts ("" for none), in the order given."""
        distinct = list(dict.fromkeys(contexts))  # the passages of a document share its title
        place = {context: number for number, context in enumerate(distinct)}
        own, around = self.embed_documents(texts), self.embed_documents(distinct)[[place[one] for one in contexts]]
        vectors = (1.0 - CONTEXT_SHARE) * own + CONTEXT_SHARE * around
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        scaled: FloatArray = (vectors / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32, copy=False)
        return scaled

    def embed_query(self, text: str) -> FloatArray:
        """The vector of a query; queries and documents are embedded alike."""
        row: FloatArray = self._embed([text])[0]
        return row

    def token_starts(self, text: str) -> list[int]:
        """Where each token begins, in characters."""
        return [start for start, _ in self._tokenizer.encode(text, add_special_tokens=False).offsets]

    def _embed(self, texts: Sequence[str]) -> FloatArray:
        encoded = [found.ids for found in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, ids in enumerate(encoded):
            if ids:
                tokens, counts = np.unique(ids, return_counts=True)
                weights = 1.0 + np.log(counts, dtype=np.float32)
                summed = weights @ self._table[tokens]
                vectors[row] = summed / (np.linalg.norm(summed) or 1.0)
        return vectors

    @lazy
    def _table(self) -> FloatArray:
        from safetensors.numpy import load_file

        table: FloatArray = load_file(self._folder / _WEIGHTS)["embedding.weight"].astype(np.float32)
        return table

    @lazy
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(self._folder / _TOKENIZER))


def _folder() -> Path:
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None or not (Path(found.origin).parent / _WEIGHTS).is_file():
        raise MissingExtra(
            "the weights of the 'static' embedder are not installed",
            where="package wordllama",
            why="the package is missing, or its release carries no weights",
            fix="pip install 'wordllama>=0.3'",
        )
    return Path(found.origin).parent
