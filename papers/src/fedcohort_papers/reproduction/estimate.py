"""A mean with its interval, and how many repetitions would decide.

Repetitions are counted in *units* that are independent of one another: partitions where there
are several, otherwise seeds. Intervals are Student's t over units, which assumes means that are
about normal; with fewer than three units there is none, and nothing is decided: two that agree by
chance would look certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

SIDE = 0.025
"""A claim of a direction is decided by the 95 % interval: 2.5 % on either side."""
ALIKE = 0.05
"""A claim of equivalence by two one-sided tests at 5 %: by the 90 % interval."""
FEWEST = 3
"""Units without which nothing is decided."""
POWER = 0.8
"""How likely a number of units decides, where one is told."""
MOST = 10_000
"""More units than this are not told."""
FAR = 30.0
"""Standard errors from a bound beyond which no chance is left to miss it."""


@dataclass(frozen=True)
class Estimate:
    """The mean of a quantity over units, with what is needed for intervals.

    >>> one = Estimate.of([1.0, 2.0, 3.0], "seed")
    >>> one.mean, one.interval()[0] < 0 < one.interval(ALIKE)[0]
    (2.0, True)
    """

    mean: float
    sd: float
    """Of one unit; NaN with fewer than two."""
    units: int
    unit: str = "seed"

    @classmethod
    def of(cls, samples: ArrayLike, unit: str = "seed") -> Estimate:
        """The mean of samples, one per unit; those that are not finite are left out."""
        values = np.asarray(samples, dtype=np.float64).ravel()
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return cls(nan, nan, 0, unit)
        spread = float(values.std(ddof=1)) if len(values) > 1 else nan
        return cls(float(values.mean()), spread, len(values), unit)

    def interval(self, side: float = SIDE) -> tuple[float, float]:
        """Low and high; without limits where there are too few units."""
        half = reach(self.sd, self.units, side)
        return self.mean - half, self.mean + half

    @property
    def counted(self) -> str:
        """How many units."""
        return f"{self.units} {self.unit}{'' if self.units == 1 else 's'}"

    def __str__(self) -> str:
        low, high = self.interval()
        if not isfinite(self.mean):
            return "not measured"
        if not isfinite(low):
            return f"{number(self.mean)} ({self.counted})"
        return f"{number(self.mean)} ({number(low)} to {number(high)}; {self.counted})"


def reach(sd: float, units: int, side: float = SIDE) -> float:
    """How far the mean may be from the truth; without limit with too few units."""
    if units < FEWEST or not isfinite(sd):
        return inf
    return _quantile(side, units) * sd / sqrt(units)


@cache
def _quantile(side: float, units: int) -> float:
    """Of Student's t; scipy takes its time."""
    return float(stats.t.ppf(1 - side, units - 1))


@dataclass(frozen=True)
class Question:
    """What is open about a mean: on which side of bounds it is, of those next to it."""

    sd: float
    gaps: tuple[float, ...]
    """From the mean to the next bound below, and to the next above, where there is one."""
    side: float = SIDE

    @classmethod
    def of(cls, estimate: Estimate, *bounds: float, side: float = SIDE) -> Question:
        """The question that the interval of an estimate answers if it covers none of the bounds."""
        off = [bound - estimate.mean for bound in bounds]
        ways = [-gap for gap in off if gap < 0], [gap for gap in off if not gap < 0]
        return cls(estimate.sd, tuple(min(way) for way in ways if way), side)

    def missed(self, units: int) -> float:
        """How likely it is left open by so many new units, at most, if mean and spread hold."""
        if not isfinite(self.sd):
            return 1.0
        chances = []
        for gap in self.gaps:
            far = gap * sqrt(units) / self.sd if self.sd else FAR
            chance = stats.nct.cdf(_quantile(self.side, units), units - 1, min(far, FAR))
            chances.append(float(chance) if gap > 0 else 1.0)
        return sum(chances)


def needed(*questions: Question) -> int | None:
    """How many new units answer all questions together with `POWER`, if mean and spread hold.

    Power is that of Student's t test on a fresh sample, by the noncentral t; that of several
    together is bounded from below by the sum of what they miss. None where no number is known, or
    it is more than `MOST`.

    >>> needed(Question(1.0, (1.0,))), needed(Question(1.0, (0.0,)))
    (10, None)
    """

    def enough(units: int) -> bool:
        return sum(question.missed(units) for question in questions) <= 1 - POWER

    low, high = FEWEST, MOST
    if not questions or not enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def ratio_interval(
    above: Sequence[float], below: Sequence[float], side: float = SIDE
) -> tuple[float, float]:
    """Fieller's interval of mean(above) / mean(below), pairs; without limits where there is none.

    It holds every c for which "mean(above) = c mean(below)" is not refuted by the paired t test.

    >>> low, high = ratio_interval([4.0, 6.0, 5.0], [2.0, 3.0, 2.4])
    >>> low < 15 / 7.4 < high
    True
    """
    x, y = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    if len(x) < FEWEST:
        return -inf, inf
    t = _quantile(side, len(x))
    (xx, xy), (_, yy) = np.cov(x, y) / len(x)
    a, b, c = y.mean() ** 2 - t**2 * yy, x.mean() * y.mean() - t**2 * xy, x.mean() ** 2 - t**2 * xx
    if a <= 0:  # the denominator may be 0
        return -inf, inf
    half = sqrt(max(0.0, b * b - a * c)) / a
    return float(b / a - half), float(b / a + half)


def number(value: float) -> str:
    """A number as people read it: four digits, a true minus sign.

    >>> number(0.12345), number(-2.0), number(1234567.0)
    ('0.1235', '\N{MINUS SIGN}2', '1.235e+06')
    """
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}", 1) if value < 0 else f"{value:.4g}"
