"""The dense leg: exact cosines, whatever stands around a row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import cosine as plain_cosine
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import UsageError
from wellhead.ports import View
from wellhead.records import Document
from wellhead.search import dense
from wellhead.testing.contracts import put, vector_of
from wellhead.testing.fakes import HashEmbedder, document_row

numbers = st.floats(-1e6, 1e6, allow_nan=False, width=32)


def view_of(count: int, *, order: list[int] | None = None) -> View:
    store = MemoryStore()
    for number in order or range(count):
        put(store, [Document(id=f"d{number}", text=f"text {number}")])
    return store.view("")


@pytest.mark.promise("A12")
def test_vectors_of_different_lengths_are_not_compared() -> None:
    with pytest.raises(UsageError, match="vectors differ in length: 3 vs 4"):
        dense.cosine(np.ones(3, np.float32), np.ones(4, np.float32))


@pytest.mark.promise("A13")
@pytest.mark.parametrize("other", [[0.0, 0.0], [1.0, 2.0]])
def test_a_vector_of_zeros_has_cosine_zero(other: list[float]) -> None:
    zeros, vector = np.zeros(2, np.float32), np.array(other, np.float32)
    assert dense.cosine(zeros, vector) == 0.0
    assert dense.cosine(vector, zeros) == 0.0


@pytest.mark.promise("D8")
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e15])
def test_the_cosine_sees_direction_and_not_length(scale: float) -> None:
    east, north = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    stretched = (east * scale).astype(np.float32)
    assert dense.cosine(east, stretched) == pytest.approx(1.0)
    assert dense.cosine(north, stretched) == pytest.approx(0.0)
    assert dense.cosine(-east, stretched) == pytest.approx(-1.0)


@given(st.lists(numbers, min_size=3, max_size=3), st.lists(numbers, min_size=3, max_size=3))
@settings(max_examples=80)
def test_the_cosine_is_the_plain_one(first: list[float], second: list[float]) -> None:
    found = dense.cosine(np.array(first, np.float32), np.array(second, np.float32))
    assert -1.0 <= found <= 1.0
    assert found == pytest.approx(plain_cosine(first, second), abs=1e-6)


def test_the_cosines_of_rows_are_those_of_their_vectors() -> None:
    view, query = view_of(30), HashEmbedder().embed_query("a query")
    found = dense.cosines(view, query, np.arange(30))
    vectors = [vector_of(view, row) for row in range(30)]
    assert found == pytest.approx([plain_cosine(vector, query.tolist()) for vector in vectors], abs=1e-6)


def test_a_cosine_does_not_depend_on_what_else_is_asked() -> None:
    view, query = view_of(30), HashEmbedder().embed_query("a query")
    together = dense.cosines(view, query, np.arange(30)).tolist()
    assert [float(dense.cosines(view, query, np.array([row]))[0]) for row in range(30)] == together


@given(st.permutations(list(range(12))))
@settings(max_examples=25)
def test_the_order_of_insertion_changes_no_bit_of_a_cosine(order: list[int]) -> None:
    query = HashEmbedder().embed_query("a query")
    rows = np.arange(12)
    assert (
        dense.cosines(view_of(12), query, rows).tolist()
        == dense.cosines(view_of(12, order=order), query, rows).tolist()
    )


@pytest.mark.promise("B5")
@pytest.mark.parametrize("size", [1, 5, 29, 30, 300])
def test_the_pool_is_exactly_the_nearest(size: int) -> None:
    view, query = view_of(30), HashEmbedder().embed_query("a query")
    found = dense.cosines(view, query, np.arange(30))
    nearest = sorted(range(30), key=lambda row: (-found[row], row))
    assert dense.pool(view, query, None, size).tolist() == nearest[:size]
    allowed = np.arange(30) % 3 == 0
    assert dense.pool(view, query, allowed, size).tolist() == [row for row in nearest if row % 3 == 0][:size]


def test_equal_cosines_are_ordered_by_row_at_the_edge_of_the_pool() -> None:
    store = MemoryStore()
    put(store, [Document(id=f"d{number}", text="the same text") for number in range(10)])
    assert dense.pool(store.view(""), HashEmbedder().embed_query("x"), None, 4).tolist() == [0, 1, 2, 3]


def test_a_row_without_a_vector_has_no_cosine_and_is_in_no_pool() -> None:
    store = MemoryStore()
    bare = document_row(Document(id="bare", text="no vector"), with_vectors=False)
    put(store, [bare, Document(id="full", text="a vector")])
    view, query = store.view(""), HashEmbedder().embed_query("x")
    (row,) = view.rows_of("bare")
    assert np.isnan(dense.cosines(view, query, np.array([row]))[0])
    assert row not in dense.pool(view, query, None, 10).tolist()
    assert dense.pool(view, query, np.arange(2) == row, 10).tolist() == []
