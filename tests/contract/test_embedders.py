"""What every embedder of ours does, whichever it is: shapes, order, finite unit vectors, no hidden state.

A new backend goes into the table below: `static`, a function as an embedder, and the fake that other tests use.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wellhead.backends.embedders.static import StaticEmbedder
from wellhead.backends.retrievers.embedding import FunctionEmbedder
from wellhead.ports import Contextual, Embedder
from wellhead.testing.fakes import HashEmbedder
from wellhead.wiring import EMBEDDERS, model_name

MAKERS: dict[str, Callable[[], Embedder]] = {
    "static": StaticEmbedder,
    "function": lambda: FunctionEmbedder(HashEmbedder().embed_query),
    "hash": HashEmbedder,
}
TEXTS = ["one text", "another text", "Ein dritter, über Schlüssel", "one text"]


@pytest.fixture(params=MAKERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return MAKERS[request.param]()


def test_every_embedder_that_has_a_name_is_under_contract() -> None:
    assert set(EMBEDDERS) <= set(MAKERS)


def test_it_is_an_embedder_with_a_name_and_dimensions(embedder: Embedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.name
    assert embedder.dims > 0
    assert str(embedder.dims) in model_name(embedder)


def test_a_row_for_every_text_in_the_order_given(embedder: Embedder) -> None:
    made = embedder.embed_documents(TEXTS)
    assert (made.shape, made.dtype) == ((4, embedder.dims), np.float32)
    assert np.array_equal(made[0], made[3])
    assert not np.array_equal(made[0], made[1])
    assert np.array_equal(embedder.embed_documents(TEXTS[::-1]), made[::-1])


def test_no_texts_are_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.dims)


def test_vectors_are_finite_and_of_unit_length(embedder: Embedder) -> None:
    for vector in (*embedder.embed_documents(TEXTS), embedder.embed_query("a query")):
        assert np.isfinite(vector).all()
        assert float(np.linalg.norm(vector)) == pytest.approx(1.0, abs=1e-5)


def test_a_query_is_one_vector_of_the_same_dimensions(embedder: Embedder) -> None:
    vector = embedder.embed_query("a query")
    assert (vector.shape, vector.dtype) == ((embedder.dims,), np.float32)


def test_a_contextual_one_gives_a_unit_vector_for_every_passage(embedder: Embedder) -> None:
    if not isinstance(embedder, Contextual):
        pytest.skip(f"{embedder.name} is given the context before the text")
    made = embedder.embed_passages(["", "Keys", "Logs", ""], TEXTS)
    assert (made.shape, made.dtype) == ((4, embedder.dims), np.float32)
    assert np.linalg.norm(made, axis=1) == pytest.approx([1.0] * 4, abs=1e-5)
    assert np.array_equal(made[0], made[3])
    assert embedder.embed_passages([], []).shape == (0, embedder.dims)


@pytest.mark.parametrize("name", MAKERS)
def test_two_of_a_kind_agree(name: str) -> None:
    one, other = MAKERS[name](), MAKERS[name]()
    assert np.array_equal(one.embed_documents(TEXTS), other.embed_documents(TEXTS))
    assert model_name(one) == model_name(other)
