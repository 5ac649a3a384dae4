"""How sure a mean over queries is, and whether two of them differ by more than chance.

Arithmetic alone: everything is resampled over queries with a seed, so equal values give equal answers. The order of
the values and the names of the queries have no say, and exchanging the two sides mirrors every number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from wellhead.errors import UsageError

__all__ = ["DRAWS", "LEVEL", "Interval", "Paired", "bootstrap", "paired", "resolves"]

LEVEL = 0.95
DRAWS = 10_000
# Up to so many queries that differ, all ways to exchange the sides are counted (16,384 at most) and none is drawn.
_EXACT = 14
# Two values that are nearer than this are equal: they differ by rounding.
_EQUAL = 1e-9
# Numbers held at once while drawing: 32 MB.
_BLOCK = 4_000_000

Floats: TypeAlias = NDArray[np.float64]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A mean, and the interval `low` to `high` around it that covers the true one with probability `level`."""

    mean: float
    low: float
    high: float
    level: float = LEVEL


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """Two systems over the same queries; all of it reads "the second minus the first".

    Args:
        interval: of the mean difference.
        p: 0 to 1, two-sided: how often exchanging the two sides at random gives a mean difference as large as this.
        wins, losses, ties: queries on which the second is higher, lower, equal.
    """

    interval: Interval
    p: float
    wins: int
    losses: int
    ties: int

    @property
    def difference(self) -> float:
        """The mean difference."""
        return self.interval.mean


def bootstrap(values: Sequence[float], *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Interval:
    """The percentile interval of a mean (Efron 1979): the middle `level` of the means of resampled values.

    Args:
        values: one a query, 1 or more. level: above 0, below 1. draws: 1 or more; an odd number is rounded up.

    Raises:
        UsageError: no value, one that is not finite, a level or a number of draws out of range.
    """
    _check(level, draws)
    ordered = np.sort(_numbers(values))
    means = np.concatenate([*_resampled_means(ordered, draws, seed)])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean=math.fsum(ordered) / len(ordered), low=float(low), high=float(high), level=level)


def paired(
    first: Sequence[float], second: Sequence[float], *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0
) -> Paired:
    """Compare two systems query by query: the mean difference, its interval, and a randomisation test (Fisher 1935).

    The test exchanges the two values of each query at random, which changes the sign of its difference. Where at most
    14 queries differ every combination of signs is counted; otherwise `draws` of them are drawn, and
    p = (1 + as large) / (1 + draws), which is never 0.

    Args:
        first, second: the values of one query at the same place of each.

    Raises:
        UsageError: as for `bootstrap`, and sides of unequal length.
    """
    if len(first) != len(second):
        raise UsageError(
            "a paired comparison needs the same queries on both sides",
            why=f"there are {len(first)} values on one side and {len(second)} on the other",
        )
    differences = _numbers(second) - _numbers(first)
    differences[np.abs(differences) < _EQUAL] = 0.0
    return Paired(
        interval=bootstrap([*differences], level=level, draws=draws, seed=seed),
        p=_randomised(differences, draws, seed),
        wins=int(np.sum(differences > 0)),
        losses=int(np.sum(differences < 0)),
        ties=int(np.sum(differences == 0)),
    )


def resolves(differences: Sequence[float], *, level: float = LEVEL, power: float = 0.8) -> float:
    """The smallest mean difference that so many queries with this spread tell from chance, with probability `power`.

    Guenther's sample size of a paired t test, n = ((z[level] + z[power]) * s / d)**2 + z[level]**2 / 2, solved for d
    (W. C. Guenther, Sample Size Formulas for Normal Theory T Tests, The American Statistician 35, 1981); s is the
    standard deviation of the differences, z[level] the two-sided and z[power] the one-sided normal quantile.

    Returns:
        In the unit of the differences; infinity where the queries are so few that no randomisation test of them can
        reach 1 - level (fewer than 6 at 0.95).

    Raises:
        UsageError: no difference, one that is not finite, a level or a power out of range.
    """
    _check(level, 1)
    _check(power, 1)
    numbers = _numbers(differences)
    count = len(numbers)
    if 2 / 2**count > 1 - level:
        return math.inf
    chance, certain = NormalDist().inv_cdf((1 + level) / 2), NormalDist().inv_cdf(power)
    return float((chance + certain) * np.std(numbers, ddof=1) / math.sqrt(count - chance**2 / 2))


def _check(share: float, draws: int) -> None:
    if not 0 < share < 1:
        raise UsageError("a level or a power must be above 0 and below 1", why=f"got {share!r}", fix="give 0.95")
    if draws < 1:
        raise UsageError("at least one draw is needed", why=f"got draws={draws!r}", fix="give 10_000")


def _numbers(values: Sequence[float]) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers):
        raise UsageError("there is no value to take a mean of", fix="give one value for each query")
    if not np.isfinite(numbers).all():
        raise UsageError("a value is not a finite number", fix="give one finite number for each query")
    return numbers


def _resampled_means(ordered: Floats, draws: int, seed: int) -> Iterator[Floats]:
    """Means of as many values, drawn with replacement; every draw is followed by its mirror image.

    The mirror image takes the value from the other end of the order wherever the draw takes one from this end. It is
    as likely as the draw, and it makes the means of the negated values the negated means.
    """
    generator = np.random.default_rng(seed)
    count = len(ordered)
    for rows in _blocks(-(-draws // 2), count):
        places = generator.integers(0, count, size=(rows, count))
        yield ordered[places].mean(axis=1)
        yield ordered[count - 1 - places].mean(axis=1)


def _randomised(differences: Floats, draws: int, seed: int) -> float:
    # A difference of 0 keeps its value whatever its sign, and has no part in the test.
    sizes = np.sort(np.abs(differences[differences != 0]))
    if not len(sizes):
        return 1.0
    # Sums that are equal but for rounding count as equally large.
    large = abs(math.fsum(differences)) - 1e-12 * math.fsum(sizes)
    if len(sizes) <= _EXACT:
        return float(np.mean(np.abs(_every_sign(len(sizes)) @ sizes) >= large))
    generator = np.random.default_rng(seed)
    as_large = 0
    for rows in _blocks(draws, len(sizes)):
        signs = 2.0 * generator.integers(0, 2, size=(rows, len(sizes)), dtype=np.int8) - 1.0
        as_large += int(np.sum(np.abs(signs @ sizes) >= large))
    return (1 + as_large) / (1 + draws)


def _every_sign(count: int) -> Floats:
    """Each combination of `count` signs once, as rows of 1 and -1."""
    bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    return np.asarray(2 * bits - 1, dtype=np.float64)


def _blocks(rows: int, columns: int) -> Iterator[int]:
    """`rows` in pieces that hold at most so many numbers at once."""
    most = max(1, _BLOCK // columns)
    for begin in range(0, rows, most):
        yield min(most, rows - begin)
