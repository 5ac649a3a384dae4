"""Our interval, p and power agree with those of scipy, within what drawing makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from wellhead.bench.significance import bootstrap, paired, resolves

SIZES = [8, 14, 30, 120]


def measured(seed: int, count: int) -> tuple[list[float], list[float]]:
    """Two systems over queries: values with many ties, as measures have them."""
    generator = np.random.default_rng(seed)
    values = generator.choice([0.0, 0.3869, 0.5, 0.6309, 1.0], size=(2, count), p=[0.2, 0.1, 0.2, 0.2, 0.3])
    values[1, ::3] = values[0, ::3]
    return [*values[0]], [*values[1]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", SIZES)
def test_p_is_that_of_a_permutation_test_of_paired_samples(count: int, seed: int) -> None:
    first, second = measured(seed, count)
    theirs = stats.permutation_test(
        (np.array(second), np.array(first)),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        n_resamples=math.inf if count <= 14 else 20_000,
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).pvalue
    ours = paired(first, second, seed=seed).p
    if count <= 14:
        assert ours == pytest.approx(theirs, abs=1e-12)
    else:
        # The difference of two shares, of 10,000 and of 20,000 draws.
        error = math.sqrt(max(theirs * (1 - theirs), 1e-4) * (1 / 10_000 + 1 / 20_000))
        assert ours == pytest.approx(theirs, abs=4.5 * error)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", SIZES)
def test_the_interval_is_that_of_a_percentile_bootstrap(count: int, seed: int) -> None:
    values, _ = measured(seed, count)
    theirs = stats.bootstrap(
        (np.array(values),), np.mean, n_resamples=40_000, method="percentile", rng=np.random.default_rng(seed)
    ).confidence_interval
    ours = bootstrap(values, seed=seed)
    # A quantile of 10,000 draws errs by some hundredths of their spread; means of few values lie on a coarse lattice.
    allowed = 0.12 * float(np.std(values)) / math.sqrt(count) + 0.5 / count * 0.12
    assert ours.low == pytest.approx(theirs.low, abs=allowed)
    assert ours.high == pytest.approx(theirs.high, abs=allowed)


@pytest.mark.parametrize("count", [6, 10, 40, 300])
def test_what_a_set_resolves_has_the_power_of_a_paired_t_test(count: int) -> None:
    differences = np.random.default_rng(count).normal(0, 0.3, count)
    effect = resolves([*differences]) / float(np.std(differences, ddof=1))
    cut = stats.t.ppf(0.975, count - 1)
    shifted = stats.nct(count - 1, effect * math.sqrt(count))
    power = float(shifted.sf(cut) + shifted.cdf(-cut))
    assert power == pytest.approx(0.8, abs=0.03 if count < 10 else 0.01)
