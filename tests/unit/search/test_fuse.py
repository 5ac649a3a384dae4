"""Fusion: ranks from 1, an absent leg adds nothing, and what each way promises of its range."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.search import fuse
from wellhead.search.top import Candidates

NAN = float("nan")
unit = st.floats(0.0, 1.0, width=32)
pairs = st.lists(st.tuples(st.floats(0.0, 40.0), st.floats(-1.0, 1.0) | st.just(NAN)), min_size=1, max_size=20)


def columns(signals: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([pair[0] for pair in signals]), np.array([pair[1] for pair in signals])


def test_reciprocal_ranks_by_hand() -> None:
    first, second = np.array([1.0, 2.0, NAN]), np.array([3.0, NAN, NAN])
    assert fuse.rrf(first, second).tolist() == pytest.approx([1 / 61 + 1 / 63, 1 / 62, 0.0])


@pytest.mark.promise("B25")
@given(st.lists(st.floats(0.01, 100.0), unique=True, min_size=2, max_size=20), st.floats(0.1, 5.0))
@settings(max_examples=60)
def test_a_change_of_scores_that_keeps_the_order_changes_nothing(scores: list[float], power: float) -> None:
    def fused(values: list[float]) -> list[float]:
        ranked = np.array(sorted(range(len(values)), key=lambda row: (-values[row], row)))
        return fuse.rrf(fuse.ranks_within(Candidates.of(np.arange(len(values)), len(values)), ranked)).tolist()

    squeezed = [rank / 7.0 for rank in np.argsort(np.argsort(scores)) ** power]
    assert fused(scores) == fused(squeezed)


def test_ranks_begin_at_one_and_are_missing_where_a_leg_did_not_return_the_row() -> None:
    found = fuse.ranks_within(Candidates.of(np.array([4, 7, 9]), 10), np.array([9, 4]))
    assert found[[0, 2]].tolist() == [2.0, 1.0]
    assert np.isnan(found[1])


def test_blend_by_hand() -> None:
    fused = fuse.blend(np.array([4.0, 2.0, 0.0]), 8.0, np.array([0.5, NAN, -1.0]), 0.25)
    assert fused.tolist() == pytest.approx([0.25 * 0.5 + 0.75 * 0.5, 0.25 * 0.25, -0.75])


@given(pairs, unit)
@settings(max_examples=60)
def test_blend_stays_in_its_range_and_never_gives_nan(signals: list[tuple[float, float]], weight: float) -> None:
    bm25, cosine = columns(signals)
    fused = fuse.blend(bm25, float(bm25.max()), cosine, weight)
    assert (fused >= -(1.0 - weight) - 1e-9).all()
    assert (fused <= 1.0 + 1e-9).all()


@given(pairs, unit)
@settings(max_examples=60)
def test_convex_stays_between_zero_and_one(signals: list[tuple[float, float]], weight: float) -> None:
    fused = fuse.convex(*columns(signals), weight)
    assert (fused >= 0.0).all()
    assert (fused <= 1.0 + 1e-9).all()


def test_a_signal_that_tells_nothing_apart_adds_nothing() -> None:
    same, apart = np.array([3.0, 3.0]), np.array([0.2, 0.4])
    assert fuse.convex(same, apart, 0.5).tolist() == [0.0, 0.5]
    assert fuse.blend(np.zeros(2), 0.0, apart, 0.5).tolist() == [0.1, 0.2]


@pytest.mark.parametrize(("weight", "follows"), [(1.0, [1, 0]), (0.0, [0, 1])])
def test_the_weight_is_that_of_the_lexical_leg(weight: float, follows: list[int]) -> None:
    bm25, cosine = np.array([1.0, 5.0]), np.array([0.9, 0.1])
    for fused in (fuse.blend(bm25, 5.0, cosine, weight), fuse.convex(bm25, cosine, weight)):
        assert np.argsort(-fused).tolist() == follows
