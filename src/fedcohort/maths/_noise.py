"""Discrete Laplace noise for counts: exact, from integers only.

The problem: a client reports how many samples of each class it has, and the report must not
tell whether any *one sample* was another. Replacing one sample lowers one count by 1 and
raises another by 1, so the histogram moves by Δ = 2 in L1. With independent noise
P(X = x) ∝ exp(-|x| / scale) and scale = Δ / ε on *every* count, two such histograms give any
report with probabilities within a factor e^ε of each other: ε-differential privacy.

The sampler is Algorithm 2 of Canonne, Kamath and Steinke (2020, arXiv:2004.00010). It compares
random integers with integers and never rounds; floating-point Laplace noise has gaps that
give the true count away. ``rng`` may be a generator (simulation) or anything with a method
``below(bound)``: on a real client that must be entropy of the operating system.

The protected unit is one sample, not the client: with ε = 1 a report still shows roughly which
classes a client has. The code of HACCS differs in two ways, neither of which is followed: it
uses floating-point noise, and adds none to classes the client does not have, so that a zero
stays a zero and reveals itself.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedcohort.maths._draws import WORD, Ints

REPLACE_ONE = 2
"""How far one replaced sample moves a histogram in L1."""

LARGEST_SCALE = 2**40
"""Beyond it the noise would drown any count, and might leave 64 bits."""


class Source(Protocol):
    """Where random integers come from."""

    def below(self, bound: int) -> int:
        """An integer in ``[0, bound)``, all equally likely."""
        ...


def noisy_counts(
    rng: np.random.Generator | Source,
    counts: ArrayLike,
    epsilon: float | Fraction,
    sensitivity: int = REPLACE_ONE,
) -> Ints:
    """Counts of any shape plus independent discrete Laplace noise of `scale_for` (ε, Δ).

    The result may be negative, and must be sent as it is: the receiver may apply `clipped`.

    >>> noisy_counts(np.random.default_rng(0), [40, 0, 60], epsilon=1.0)
    array([42,  0, 60])
    """
    values = np.asarray(counts)
    if values.dtype.kind not in "iu" or values.size == 0 or bool(np.any(values < 0)):
        raise ValueError(
            f"The counts must be integers, at least 0, and not none. Got {values.tolist()} instead."
        )
    noise = discrete_laplace(rng, scale_for(epsilon, sensitivity), values.size)
    return values.astype(np.int64) + noise.reshape(values.shape)


def clipped(noisy: ArrayLike) -> Ints:
    """What the receiver can use as histograms: (..., classes), negative counts set to 0.

    A histogram of which nothing is left becomes uniform: nothing is known about it.

    >>> clipped([[5, -2], [-1, -3]])
    array([[5, 0],
           [1, 1]])
    """
    kept = np.maximum(np.asarray(noisy, dtype=np.int64), 0)
    empty = ~np.any(kept > 0, axis=-1, keepdims=True)
    return np.where(empty, 1, kept)


def scale_for(epsilon: float | Fraction, sensitivity: int = REPLACE_ONE) -> Fraction:
    """Δ / ε as an exact fraction (a float is a fraction, too).

    >>> scale_for(0.5)
    Fraction(4, 1)
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"The privacy loss ε must be positive and finite. Got {epsilon} instead.")
    if sensitivity < 1:
        raise ValueError(f"The sensitivity Δ must be at least 1. Got {sensitivity} instead.")
    return Fraction(sensitivity) / Fraction(epsilon)


def discrete_laplace(rng: np.random.Generator | Source, scale: Fraction | int, size: int) -> Ints:
    """Independent integers with P(x) = (1 - q) / (1 + q) * q^|x|, q = exp(-1 / scale).

    >>> discrete_laplace(np.random.default_rng(1), Fraction(7, 2), 6)
    array([-1, -4, 13,  2,  3, -2])
    """
    scale = Fraction(scale)
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError(f"The scale must be positive and at most 2**40. Got {scale} instead.")
    source = _Words(rng) if isinstance(rng, np.random.Generator) else rng
    return np.array([_one(source, scale) for _ in range(size)], dtype=np.int64)


def variance(scale: Fraction | float) -> float:
    """Var X = 2 q / (1 - q)^2 of one noise value; close to 2 scale^2 for a large scale.

    >>> round(variance(4), 3)
    31.834
    """
    rate = 1 / float(scale)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def _one(source: Source, scale: Fraction) -> int:
    t, s = scale.numerator, scale.denominator
    while True:
        # X = u + t v has P(X = x) ∝ exp(-x / t): a remainder, and a number of whole turns.
        u = source.below(t)
        if not _bernoulli_exp(source, u, t):
            continue
        v = 0
        while _bernoulli_exp(source, 1, 1):
            v += 1
        magnitude = (u + t * v) // s
        negative = _bernoulli(source, 1, 2)
        if negative and magnitude == 0:
            continue  # or 0 would come up twice as often
        return -magnitude if negative else magnitude


def _bernoulli_exp(source: Source, numerator: int, denominator: int) -> bool:
    """True with probability exp(-γ), γ = numerator / denominator in [0, 1].

    The first k at which Bernoulli(γ / k) fails is odd with probability
    1 - γ + γ^2/2! - ... (their Algorithm 1).
    """
    k = 1
    while _bernoulli(source, numerator, denominator * k):
        k += 1
    return k % 2 == 1


def _bernoulli(source: Source, numerator: int, denominator: int) -> bool:
    return source.below(denominator) < numerator


class _Words:
    """Single integers out of a generator, whose words are fetched by the hundred.

    `fedcohort.maths.below` has the same law; it is made for many integers at once and
    would spend most of its time on being called.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        bits = (bound - 1).bit_length()
        words = -(-bits // WORD)
        while True:
            value = 0
            for _ in range(words):
                if not self._words:
                    self._words = self._rng.bit_generator.random_raw(128).tolist()
                value = value << WORD | self._words.pop()
            value >>= words * WORD - bits
            if value < bound:
                return value


def law(scale: Fraction | float, values: ArrayLike) -> NDArray[np.float64]:
    """P(x) of `discrete_laplace`, for tests and plots.

    >>> law(1, [0, 1, -1]).round(4)
    array([0.4621, 0.17  , 0.17  ])
    """
    rate = 1 / float(scale)
    at_zero = math.tanh(rate / 2)  # (1 - q) / (1 + q)
    p: NDArray[np.float64] = at_zero * np.exp(-rate * np.abs(np.asarray(values, dtype=np.float64)))
    return p
