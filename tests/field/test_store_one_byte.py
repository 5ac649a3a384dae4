"""One byte a dimension: each vector uses all of it, and what it cannot tell apart is measured exactly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from histories import by_hand, folder, lay_out
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.records import Document
from wellhead.search import dense
from wellhead.testing.fakes import document_row


def units(rows: int, dims: int, seed: int = 41) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((rows, dims))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def spiky(rows: int, dims: int) -> NDArray[np.float32]:
    """One large component each, and many that are small beside it."""
    vectors = units(rows, dims)
    vectors[np.arange(rows), np.arange(rows) % dims] = 5.0
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def sparse(rows: int, dims: int) -> NDArray[np.float32]:
    vectors = units(rows, dims)
    vectors[np.random.default_rng(7).random(vectors.shape) < 0.9] = 0.0
    vectors[:, 0] += 1e-3
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


KINDS = {"random": units, "one large component": spiky, "mostly zeros": sparse}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims", [2, 256, 1024])
def test_each_vector_uses_the_whole_range(kind: str, dims: int) -> None:
    """workglow-dev/libs#796, namidb/namidb PR#101: one fixed scale for all used some 17 of 255 codes."""
    vectors = KINDS[kind](200, dims)
    codes, scales = dense.quantise(vectors)
    assert codes.dtype == np.int8
    assert set(np.abs(codes.astype(int)).max(axis=1).tolist()) == {127}
    assert (np.abs(codes * scales[:, None].astype(np.float64) - vectors) <= scales[:, None] * 0.50001).all()
    if kind == "random" and dims > 2:
        used = [len(set(row.tolist())) for row in codes]
        fixed = [len(set(row.tolist())) for row in np.rint(vectors * 127).astype(np.int8)]
        assert min(used) > 2 * max(fixed)


@pytest.mark.parametrize("length", [1e-30, 1e-3, 1.0, 1e30])
def test_the_codes_do_not_depend_on_the_length(length: float) -> None:
    """workglow-dev/libs#796: what a fixed scale does to vectors that are not of the length it was made for."""
    vectors = units(50, 64)
    scaled = (vectors * np.float32(length)).astype(np.float32)
    codes, scales = dense.quantise(scaled)
    assert np.abs(codes.astype(int) - dense.quantise(vectors)[0]).max() <= 1  # a rounding may tip over
    assert np.allclose(codes * scales[:, None].astype(np.float64), scaled, rtol=0, atol=float(scales.max()) * 0.51)


@pytest.mark.promise("B22")
@pytest.mark.parametrize(("dims", "least"), [(256, 0.98), (1024, 0.985)])
def test_one_byte_a_dimension_loses_almost_nothing_and_measuring_the_rest(dims: int, least: float) -> None:
    """workglow-dev/libs#796: of the ten nearest by float, how many are found by whole numbers; fixed scale 0.95."""
    vectors, queries = units(2_600, dims), units(40, dims, seed=42)
    documents = [document_row(Document(id=f"d{n}", text=f"text {n}")) for n in range(len(vectors))]
    given = {row.passages[0].vector_key: vector for row, vector in zip(documents, vectors, strict=True)}
    with folder() as place:
        store = by_hand(EmbeddedStore(place))
        store.put(documents, given)
        lay_out(store, "in a file")
        view = store.view("")
        (part,) = view.vectors
        assert part.codes is not None
        assert (part.codes.nbytes, part.scales.nbytes) == (2_600 * dims, 2_600 * 4)
        assert part.codes.nbytes * 4 == part.floats.nbytes
        rough_hits = exact_hits = 0
        for query in queries:
            nearest = set(np.argsort(-(part.floats.astype(np.float64) @ query))[:10].tolist())
            rough_hits += len(nearest & set(np.argsort(-dense._rough(view, query))[:10].tolist()))
            exact_hits += len(nearest & set(dense.pool(view, query, None, 300)[:10].tolist()))
        assert rough_hits >= least * 400
        assert exact_hits == 400
        store.close()
