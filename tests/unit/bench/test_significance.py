"""Intervals, the randomisation test and the power of a set: by hand, by their rules, and on simulated data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.bench.significance import Paired, bootstrap, paired, resolves
from wellhead.errors import UsageError

# Values as measures have them: few distinct ones, many equal.
value = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.6309, 1.0])
sides = st.lists(st.tuples(value, value), min_size=1, max_size=30)


def by_counting(differences: list[float]) -> float:
    """The share of all ways to sign the differences whose sum is as far from 0."""
    observed = abs(sum(differences))
    signed = itertools.product((1, -1), repeat=len(differences))
    sums = [abs(sum(sign * one for sign, one in zip(signs, differences, strict=True))) for signs in signed]
    return sum(total >= observed - 1e-9 for total in sums) / len(sums)


def quick(pairs: list[tuple[float, float]]) -> Paired:
    first, second = zip(*pairs, strict=True)
    return paired(first, second, draws=500)


def test_the_interval_of_equal_values_is_a_point() -> None:
    found = bootstrap([0.5] * 7)
    assert (found.mean, found.low, found.high, found.level) == (0.5, 0.5, 0.5, 0.95)


def test_the_interval_of_two_values_is_known() -> None:
    # The mean of two draws of 0 and 1 is 0, 0.5, 0.5 or 1, a quarter each.
    assert (bootstrap([0.0, 1.0]).low, bootstrap([0.0, 1.0]).high) == (0.0, 1.0)
    middle = bootstrap([0.0, 1.0], level=0.4)
    assert (middle.low, middle.high) == (0.5, 0.5)


def test_many_values_are_drawn_in_blocks_without_a_seam() -> None:
    values = np.random.default_rng(3).random(3_000)
    found = bootstrap([*values], draws=4_000)
    error = float(np.std(values)) / math.sqrt(len(values))
    assert found.low == pytest.approx(float(np.mean(values)) - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(float(np.mean(values)) + 1.96 * error, abs=0.2 * error)


def test_one_side_that_always_wins_has_the_smallest_p_there_is() -> None:
    found = paired([0.0] * 6, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert found.p == 2 / 2**6
    assert (found.wins, found.losses, found.ties) == (6, 0, 0)
    assert found.difference == pytest.approx(0.35)


def test_drawn_signs_never_make_p_nought() -> None:
    found = paired([0.0] * 60, [1.0] * 60, draws=100)
    assert found.p == 1 / 101


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(value, value), min_size=1, max_size=9))
def test_p_of_few_queries_is_that_of_counting_every_way(pairs: list[tuple[float, float]]) -> None:
    assert quick(pairs).p == pytest.approx(by_counting([second - first for first, second in pairs]))


@settings(max_examples=60, deadline=None)
@given(sides)
def test_exchanging_the_sides_mirrors_everything(pairs: list[tuple[float, float]]) -> None:
    there, back = quick(pairs), quick([(second, first) for first, second in pairs])
    assert back.p == there.p
    assert (back.wins, back.losses, back.ties) == (there.losses, there.wins, there.ties)
    assert back.difference == pytest.approx(-there.difference, abs=1e-12)
    assert (back.interval.low, back.interval.high) == pytest.approx((-there.interval.high, -there.interval.low))


@settings(max_examples=60, deadline=None)
@given(sides, st.randoms(use_true_random=False))
def test_the_order_of_the_queries_has_no_say(pairs: list[tuple[float, float]], random: object) -> None:
    mixed = [*pairs]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert quick(mixed) == quick(pairs)


@settings(max_examples=60, deadline=None)
@given(sides)
def test_every_number_lies_where_it_must(pairs: list[tuple[float, float]]) -> None:
    found = quick(pairs)
    assert 0 < found.p <= 1
    assert found.wins + found.losses + found.ties == len(pairs)
    assert -1 <= found.interval.low <= found.interval.high <= 1
    if found.wins == 0 or found.losses == 0:
        assert (found.difference > 0, found.difference < 0) == (found.wins > 0, found.losses > 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(value, min_size=1, max_size=30))
def test_nothing_differs_from_itself(values: list[float]) -> None:
    found = paired(values, values)
    assert (found.difference, found.interval.low, found.interval.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert (found.wins, found.losses, found.ties) == (0, 0, len(values))


def test_queries_on_which_both_are_equal_have_no_part_in_the_test() -> None:
    differing = [0.1, 0.3, -0.2, 0.4, 0.4, 0.1, 0.2]
    assert paired([0.0] * 47, [*differing, *[0.0] * 40]).p == paired([0.0] * 7, differing).p


def test_a_difference_of_rounding_is_a_tie() -> None:
    found = paired([0.3, 0.3], [0.1 + 0.2, 0.3])
    assert (found.ties, found.p) == (2, 1.0)


@pytest.mark.parametrize("queries", [12, 40])
def test_of_null_data_one_in_twenty_is_called_a_difference(queries: int) -> None:
    generator = np.random.default_rng(queries)
    trials = 1_000
    # Both sides are drawn from one distribution, whose spread differs from query to query as it does in fact.
    hard = generator.random((trials, queries, 1))
    drawn = generator.random((trials, queries, 2)) * hard
    called = sum(paired(one[:, 0], one[:, 1], draws=399).p < 0.05 for one in drawn)
    assert called / trials == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / trials))


def test_a_difference_of_the_size_that_a_set_resolves_is_called_four_times_out_of_five() -> None:
    generator = np.random.default_rng(5)
    trials, queries = 500, 40
    called = 0
    for _ in range(trials):
        noise = generator.normal(0, 0.2, queries)
        called += paired([0.0] * queries, [*(noise + _expected(0.2, queries))], draws=499).p < 0.05
    assert called / trials == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / trials))


def _expected(spread: float, queries: int) -> float:
    """`resolves` for values of exactly this standard deviation."""
    half = spread * math.sqrt((queries - 1) / queries)
    return resolves([half, -half] * (queries // 2))


def test_what_a_set_resolves_by_hand() -> None:
    # 1.959964 + 0.841621 over the root of 100 - 1.959964**2 / 2.
    differences = [math.sqrt(0.99), -math.sqrt(0.99)] * 50  # standard deviation 1
    assert resolves(differences) == pytest.approx(2.801585 / math.sqrt(100 - 1.920729), abs=1e-6)
    assert resolves([10 * one for one in differences]) == pytest.approx(10 * resolves(differences))
    assert resolves(differences, power=0.9) > resolves(differences)


@pytest.mark.parametrize("queries", [1, 5, 6, 7])
def test_fewer_than_six_queries_resolve_nothing(queries: int) -> None:
    differences = [float(number) for number in range(queries)]
    assert math.isinf(resolves(differences)) == (queries < 6)
    # And no data make the test of five call one.
    assert (paired([0.0] * queries, [1.0] * queries).p < 0.05) == (queries >= 6)


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_values_that_have_no_mean_are_refused(values: list[float]) -> None:
    with pytest.raises(UsageError):
        bootstrap(values)
    with pytest.raises(UsageError):
        paired(values, values)
    with pytest.raises(UsageError):
        resolves(values)


def test_unequal_sides_and_options_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="2 values on one side and 1 on the other"):
        paired([1.0, 0.0], [1.0])
    for options in ({"level": 1.0}, {"level": 0.0}, {"level": math.nan}, {"draws": 0}):
        with pytest.raises(UsageError):
            bootstrap([1.0], **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="power"):
        resolves([1.0] * 9, power=1.0)
