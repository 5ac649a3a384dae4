"""What a store's numbers mean is declared and checked: directions, ranges, and the vectors themselves."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellhead.backends.retrievers.scores import check_convention, check_cosines, check_order, score_of
from wellhead.errors import ConfigError

DISTANCES = ("distance", "cosine_distance", "l2", "squared_l2")
COSINES = ("cosine", "cosine_distance", "l2", "squared_l2")


@pytest.mark.parametrize("convention", DISTANCES)
@given(st.lists(st.floats(0.0, 2.0), min_size=2, max_size=8, unique=True))
def test_a_score_falls_as_the_distance_grows_and_none_is_the_best(convention: str, distances: list[float]) -> None:
    scores = [score_of(convention, distance) for distance in sorted([0.0, *distances])]
    assert all(isinstance(score, float) and math.isfinite(score) for score in scores)
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    assert all(early > late for early, late in itertools.pairwise(sorted(set(scores), reverse=True)))  # type: ignore[operator,type-var]


@pytest.mark.promise("D8", "D28")
def test_every_convention_of_the_same_vectors_is_the_same_cosine() -> None:
    rng = random.Random(7)
    for _ in range(50):
        one, other = ([rng.gauss(0, 1) for _ in range(8)] for _ in range(2))
        one, other = ([x / math.hypot(*vector) for x in vector] for vector in (one, other))
        cosine = sum(a * b for a, b in zip(one, other, strict=True))
        l2 = math.dist(one, other)
        told = {"cosine": cosine, "cosine_distance": 1 - cosine, "l2": l2, "squared_l2": l2 * l2}
        assert [score_of(name, number) for name, number in told.items()] == pytest.approx([cosine] * 4)


@pytest.mark.promise("D47")
@pytest.mark.parametrize(
    ("convention", "told"),
    [
        ("cosine", 1.5),
        ("cosine", -3),
        ("cosine_distance", 2.5),
        ("cosine_distance", -0.2),
        ("l2", 2.5),
        ("squared_l2", 5),
    ],
)
def test_a_number_out_of_the_declared_range_is_an_error(convention: str, told: float) -> None:
    with pytest.raises(ConfigError, match=f"no {convention}"):
        score_of(convention, told)


@pytest.mark.parametrize("convention", [*DISTANCES, "cosine", "similarity"])
@pytest.mark.parametrize("told", [float("nan"), float("inf"), "0.5", None, True])
def test_what_is_no_number_is_left_to_the_guard(convention: str, told: object) -> None:
    assert score_of(convention, told) is told
    check_order(convention, [told, told])


@pytest.mark.promise("D47")
@pytest.mark.parametrize("convention", [*DISTANCES, "cosine", "similarity"])
def test_an_answer_that_is_best_last_has_the_other_direction(convention: str) -> None:
    right = [0.1, 0.4, 0.4, 0.9] if convention in DISTANCES else [0.9, 0.4, 0.4, 0.1]
    check_order(convention, right)
    with pytest.raises(ConfigError, match="the first of its list would be the worst"):
        check_order(convention, right[::-1])
    with pytest.raises(ConfigError, match="up and down"):
        check_order(convention, [0.4, 0.1, 0.9, 0.2])


@pytest.mark.promise("D47")
def test_an_l2_distance_is_not_taken_for_a_cosine_distance() -> None:
    query, documents = [1.0, 0.0], [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]
    distances = [math.dist(query, vector) for vector in documents]
    wrong = [score_of("cosine_distance", told) for told in distances]
    with pytest.raises(ConfigError, match=r"the vectors' own is 0\.8"):
        check_cosines("cosine_distance", wrong, query, documents)
    check_cosines("l2", [score_of("l2", told) for told in distances], query, documents)
    check_cosines("distance", wrong, query, documents)


def test_an_unknown_convention_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'cosine'"):
        check_convention("cosin")
    with pytest.raises(ConfigError, match="known: similarity"):
        check_convention("dot")
