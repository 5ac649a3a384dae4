"""The best rows are those of a plain sort, ties by passage id, however many rows there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.search.top import Candidates, at_least_the_best, best, order, union

# Few values, so that many rows are equal.
values = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.25, 0.25 + 2**-20, 0.5, 1.0, np.inf])


class Named:
    """A view of which only the order of the passage ids is asked for."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = np.array(ids, dtype=np.int64)

    def by_id(self, rows: np.ndarray) -> np.ndarray:
        return np.argsort(np.argsort(self.ids[rows])).astype(np.int32)


def plainly(scores: list[float], size: int) -> list[int]:
    """The rows of the best scores, and of all that equal the last of them."""
    ranked = sorted((score for score in scores if score > -np.inf), reverse=True)
    if not ranked:
        return []
    least = ranked[min(size, len(ranked)) - 1]
    return [row for row, score in enumerate(scores) if score > -np.inf and score >= least]


class TestAtLeastTheBest:
    @given(st.lists(values, max_size=40), st.integers(1, 45), st.sampled_from([np.float32, np.float64]))
    @settings(max_examples=200)
    def test_few_rows(self, scores: list[float], size: int, kind: Any) -> None:
        array = np.array(scores, dtype=kind)
        assert at_least_the_best(array, size).tolist() == plainly(array.tolist(), size)

    @given(
        st.integers(0, 2**32 - 1),
        st.integers(0, 3_000),
        st.integers(1, 40),
        st.sampled_from(["few values", "apart", "mostly absent", "all equal", "sorted", "one block"]),
    )
    @settings(max_examples=150)
    def test_many_rows_of_which_blocks_bound_the_best(self, seed: int, many: int, size: int, kind: str) -> None:
        dice = np.random.default_rng(seed)
        scores = dice.standard_normal(many)
        if kind == "few values":
            scores = np.round(scores)
        elif kind == "mostly absent":
            scores[dice.random(many) < 0.95] = -np.inf
        elif kind == "all equal":
            scores[:] = 0.5
        elif kind == "sorted":
            scores.sort()
        elif kind == "one block":
            scores[64:] -= 100.0
        assert at_least_the_best(scores, size).tolist() == plainly(scores.tolist(), size)

    @pytest.mark.parametrize("many", [0, 1, 63, 64, 65, 127, 128, 129, 640, 641])
    @pytest.mark.parametrize("size", [1, 2, 10])
    def test_the_edges_of_blocks(self, many: int, size: int) -> None:
        for scores in (np.arange(many, dtype=np.float32), -np.arange(many, dtype=np.float32), np.arange(many) % 7.0):
            assert at_least_the_best(scores, size).tolist() == plainly(scores.tolist(), size)

    def test_rows_without_a_score_are_never_among_them(self) -> None:
        scores = np.full(5_000, -np.inf, dtype=np.float32)
        assert at_least_the_best(scores, 10).tolist() == []
        scores[[7, 4_999]] = 0.5, -0.5
        assert at_least_the_best(scores, 10).tolist() == [7, 4_999]
        assert at_least_the_best(scores, 1).tolist() == [7]


rows = st.lists(st.tuples(values.filter(np.isfinite), st.integers(0, 1_000)), max_size=30, unique_by=lambda row: row[1])


class TestBest:
    @given(rows, st.integers(1, 35))
    @settings(max_examples=200)
    def test_it_is_the_head_of_a_plain_sort(self, drawn: list[tuple[float, int]], size: int) -> None:
        scores, view = np.array([row[0] for row in drawn]), Named([row[1] for row in drawn])
        ranked = sorted(range(len(drawn)), key=lambda row: (-drawn[row][0], drawn[row][1]))
        assert best(view, np.arange(len(drawn)), scores, size).tolist() == ranked[:size]
        assert order(view, np.arange(len(drawn)), scores).tolist() == ranked

    @given(rows, st.data())
    @settings(max_examples=80)
    def test_some_rows_keep_their_own_names(self, drawn: list[tuple[float, int]], data: st.DataObject) -> None:
        picked = sorted(data.draw(st.sets(st.sampled_from(range(len(drawn))))) if drawn else [])
        scores, view = np.array([drawn[row][0] for row in picked]), Named([row[1] for row in drawn])
        ranked = sorted(picked, key=lambda row: (-drawn[row][0], drawn[row][1]))
        found = best(view, np.array(picked, dtype=np.intp), scores, 3)
        assert found.tolist() == ranked[:3]

    def test_an_order_is_places_and_not_rows(self) -> None:
        view = Named([30, 20, 10, 0])
        assert order(view, np.array([1, 3]), np.array([0.5, 0.5])).tolist() == [1, 0]
        assert best(view, np.array([1, 3]), np.array([0.5, 0.5]), 2).tolist() == [3, 1]


@given(st.lists(st.integers(0, 30), max_size=20), st.lists(st.integers(0, 30), max_size=20))
def test_a_union_is_ascending_and_without_repeats(first: list[int], second: list[int]) -> None:
    rows = union(np.array(first, dtype=np.intp), np.array(second, dtype=np.intp))
    assert rows.tolist() == sorted({*first, *second})


def test_candidates_know_the_place_of_every_row() -> None:
    candidates = Candidates.of(np.array([2, 5, 6]), 8)
    assert candidates.places.tolist() == [0, 0, 1, 0, 0, 2, 3, 0]
    assert Candidates.of(np.zeros(0, dtype=np.intp), 2).places.tolist() == [0, 0]
