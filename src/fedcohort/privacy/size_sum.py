"""The sum of all sizes with noise that the clients share: for secure aggregation.

The problem. Under local privacy every size is hidden by itself, and the total N has the noise of
all clients. Where secure aggregation shows nothing but a *sum*, noise is needed once: each client
adds a small share of it, and only the sum has enough.

The rule. Sizes are clipped to 1..M-1. The sum is to have discrete Laplace noise,
P(x) ~ q^|x| with q = exp(-eps / (M - 2)): the difference of two geometric numbers. A geometric
number is the sum of t numbers of Pólya's law (negative binomial with 1/t successes), so each
client adds the difference of two of these: the answers of any t clients have all the noise. More
answers have more, and the sum of the rest is as private as before; of fewer none may be opened.

*Replacing the size of one client by any other changes the chance of any sum by at most e^eps.* A
single share hides next to nothing: it must never be seen, so a client agrees to it by name
(``ClientPolicy(mechanisms=(..., "sum"))``).

Noise is in whole numbers, so it has no holes; its chances are exact but for the rounding of
double precision, where `fedcohort.privacy.response` is exact in integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import is_real, is_whole
from fedcohort.core.types import Array, Ints
from fedcohort.maths._noise import Source, variance
from fedcohort.privacy.estimator import TotalEstimate, WhenImprecise, refuse_imprecise
from fedcohort.privacy.response import (
    LARGEST_EPSILON,
    LARGEST_THRESHOLD,
    SMALLEST_EPSILON,
    entropy_below,
    whole_size,
)

MECHANISM = "sum"
NO_SHARE = -(2**62)
"""Stands for no answer: no share comes near it."""
DIGITS = 2**53


@dataclass(frozen=True)
class SizeShare:
    """The law of one client's share of the noisy sum of sizes.

    Parameters
    ----------
    threshold
        M: sizes are clipped to 1..M-1.
    epsilon
        Of the sum of at least ``least`` shares.
    least
        t, how many shares have all the noise; fewer are not summed up.

    >>> share = SizeShare(threshold=300, epsilon=3.0, least=80)
    >>> round(share.deviation(100))  # of the sum of a hundred shares
    157
    """

    threshold: int
    epsilon: float
    least: int

    def __post_init__(self) -> None:
        owner = "SizeShare"
        if not is_whole(self.threshold) or not 3 <= self.threshold <= LARGEST_THRESHOLD:
            must = f"an int in [3, {LARGEST_THRESHOLD}]"
            raise BadParameter("threshold", owner, must, self.threshold)
        if not is_real(self.epsilon) or not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            must = f"a number in [{SMALLEST_EPSILON}, {LARGEST_EPSILON:g}]"
            raise BadParameter("epsilon", owner, must, self.epsilon)
        if not is_whole(self.least) or not 1 <= self.least <= 10**9:
            raise BadParameter("least", owner, "an int in [1, 10**9]", self.least)

    @property
    def scale(self) -> float:
        """How far one client moves the sum, over epsilon."""
        return (self.threshold - 2) / self.epsilon

    def deviation(self, shares: int) -> float:
        """The standard deviation of the noise in the sum of so many shares."""
        return math.sqrt(variance(self.scale) * shares / self.least)

    def clip(self, size: int) -> int:
        """The size inside 1..M-1."""
        return min(max(size, 1), self.threshold - 1)

    def noise(self, source: Source) -> int:
        """One share of the noise."""
        return self._polya(source) - self._polya(source)

    def _polya(self, source: Source) -> int:
        """A Poisson number of logarithmic ones: Pólya's law with 1/t successes."""
        log_rest = math.log(-math.expm1(-1 / self.scale))  # of 1 - q
        limit, product, total = math.exp(log_rest / self.least), 1.0, 0
        while True:
            product *= _uniform(source)
            if product <= limit:
                return total
            total += _logarithmic(source, log_rest)


def _logarithmic(source: Source, log_rest: float) -> int:
    """P(k) ~ q^k / k, by Kemp's algorithm (1981)."""
    first = _uniform(source)
    x = -math.expm1(_uniform(source) * log_rest)
    if first > x:
        return 1
    if first > x * x:
        return 2
    return max(1, math.floor(1 + math.log(first) / math.log(x)))


def _uniform(source: Source) -> float:
    return (source.below(DIGITS) + 0.5) / DIGITS


class _Entropy:
    """Whole numbers of the operating system."""

    def below(self, bound: int) -> int:
        return entropy_below(bound)


def draw_share(share: SizeShare, size: int) -> int:
    """What a client puts into the sum; from the operating system, and booked elsewhere."""
    return share.clip(whole_size(size, "draw_share")) + share.noise(_Entropy())


def possible(rows: Array) -> Ints:
    """Shares as they came; what cannot be one is none."""
    told = np.asarray(rows, dtype=np.float64)
    good = np.isfinite(told) & (np.abs(told) < 2.0**53) & (told == np.rint(told))
    out = np.full(len(told), NO_SHARE, dtype=np.int64)
    out[good] = told[good].astype(np.int64)
    return out


def estimate_sum(
    shares: Sequence[int] | Ints,
    share: SizeShare,
    asked: int | None = None,
    confidence: float = 0.95,
    tolerance: float = 0.25,
    when_imprecise: WhenImprecise = "refuse",
) -> TotalEstimate:
    """N with its standard error, from the sum of shares; nothing else is looked at.

    >>> estimate_sum([40] * 100, SizeShare(300, 3.0, 80)).total
    4000.0
    """
    told = np.asarray(shares, dtype=np.int64)
    told = told[told != NO_SHARE]
    number, wanted = len(told), len(shares) if asked is None else asked
    if number < share.least:
        raise BadInput(
            f"A sum of sizes is opened only with the shares of {share.least} clients, whose noise "
            f"hides each of them; {number} of {wanted} answered. Ask more, or lower 'quorum'."
        )
    factor = wanted / number
    total, error = factor * float(told.sum()), factor * share.deviation(number)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    estimate = TotalEstimate(
        total, error, total - reach, total + reach, confidence, wanted, number, 0, float(number)
    )
    refuse_imprecise(estimate, tolerance, when_imprecise)
    return estimate
