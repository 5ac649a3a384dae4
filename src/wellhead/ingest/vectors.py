"""Texts become vectors, checked: of the right shape, finite, of unit length, and of the whole text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wellhead.errors import ConfigError
from wellhead.ingest.rows import Recipe
from wellhead.ports import Contextual, Tokenized
from wellhead.records import Passage

if TYPE_CHECKING:
    from wellhead.ports import FloatArray

__all__ = ["embed", "fitting", "unit"]


def fitting(missing: Mapping[bytes, Passage], recipe: Recipe) -> tuple[dict[bytes, Passage], dict[bytes, str]]:
    """The passages that the model can read whole, and why it cannot read the others."""
    failed: dict[bytes, str] = {}
    whole = dict(missing)
    if isinstance(recipe.embedder, Tokenized) and recipe.embedder.window is not None:
        window = recipe.embedder.window
        for key, passage in missing.items():
            tokens = len(recipe.embedder.token_starts(passage.embedded_text))
            if tokens > window:
                failed[key] = f"{tokens} tokens with its title and headings, and the model reads {window}"
                del whole[key]
    return whole, failed


def embed(passages: Mapping[bytes, Passage], recipe: Recipe) -> tuple[dict[bytes, FloatArray], dict[bytes, str]]:
    """Vectors by key, and why some passages have none."""
    vectors: dict[bytes, FloatArray] = {}
    failed: dict[bytes, str] = {}
    made = _checked(_asked(list(passages.values()), recipe), len(passages), recipe)
    for key, vector in zip(passages, made, strict=True):
        scaled = unit(vector)
        if scaled is None:
            failed[key] = "the embedder gave a vector of zeros, or one that is not finite"
        else:
            vectors[key] = scaled
    return vectors, failed


def _asked(passages: Sequence[Passage], recipe: Recipe) -> FloatArray:
    embedder = recipe.embedder
    if isinstance(embedder, Contextual):
        return embedder.embed_passages([one.context for one in passages], [one.text for one in passages])
    return embedder.embed_documents([one.embedded_text for one in passages])


def _checked(made: object, count: int, recipe: Recipe) -> FloatArray:
    vectors: FloatArray = np.asarray(made, dtype=np.float32)
    expected = (count, recipe.embedder.dims)
    if vectors.shape != expected:
        raise ConfigError(
            f"the embedder gave vectors of shape {vectors.shape}, not {expected}",
            where=recipe.model,
            why="it declares other dimensions than it gives, or drops texts",
            fix="correct its `dims`, or make it return one vector a text",
        )
    return vectors


def unit(vector: FloatArray) -> FloatArray | None:
    """The vector scaled to unit length; None when it is all zeros or not finite."""
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(length) or length == 0.0:
        return None
    scaled: FloatArray = (vector.astype(np.float64) / length).astype(np.float32)
    return scaled
