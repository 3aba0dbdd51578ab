"""What the weights of a design do on average, and how much they vary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fedcohort._internal.types import Array, Floats
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Design, Distinct


@dataclass(frozen=True, eq=False)
class Moments:
    """The statistics of Table 1 of "A General Theory for Client Sampling".

    With Sigma = sum_i Var(omega_i) and Cov(omega_i, omega_j) = -alpha p_i p_j,
    gamma = Sigma + alpha sum_i p_i^2 and Var(sum omega) = gamma - alpha.
    ``alpha`` and ``gamma`` are None where pairs of clients differ (clustered sampling).
    """

    mean: Floats  # (n,)
    variance: Floats  # (n,)
    inclusion: Floats  # (n,)
    sigma: float
    alpha: float | None
    gamma: float | None
    weight_sum_variance: float
    expected_distinct: float
    second_moments: str = "exact"
    """How covariances are known: exactly, by enumeration, or by which approximation."""


def moments(design: Design) -> Moments:
    """The moments of a design, in O(n); exact unless ``second_moments`` says otherwise.

    Means, inclusion and the variances of single weights are exact in any case.

    >>> from fedcohort import Federation, scheme
    >>> md = moments(scheme("md", m=2).law(Federation.from_sizes([5, 4, 3, 2, 1])))
    >>> round(md.sigma, 4), md.alpha, round(md.gamma, 4)  # 17/45, 1/2, 1/2
    (0.3778, 0.5, 0.5)
    """
    mean, variance, inclusion = design.mean(), design.variance(), design.inclusion()
    sigma, alpha = float(variance.sum()), design.alpha
    gamma = None if alpha is None else sigma + alpha * float(mean @ mean)
    return Moments(
        mean,
        variance,
        inclusion,
        sigma,
        alpha,
        gamma,
        design.weight_sum_variance(),
        float(inclusion.sum()),
        design.second_moments,
    )


@dataclass(frozen=True, eq=False)
class ExactMoments:
    """The same by summing over all outcomes, in Fractions (object arrays)."""

    mean: Array  # (n,)
    covariance: Array  # (n, n)
    inclusion: Array  # (n,)
    distinct_mean: Fraction
    distinct_variance: Fraction

    @property
    def variance(self) -> Array:
        """(n,)."""
        return np.diagonal(self.covariance)

    @property
    def weight_sum_variance(self) -> Fraction:
        """1' Cov 1."""
        total: Fraction = self.covariance.sum()
        return total

    @property
    def distinct(self) -> Distinct:
        """As floats."""
        return Distinct(float(self.distinct_mean), float(self.distinct_variance))


def enumerated_moments(outcomes: Iterable[tuple[Fraction, Cohort]], n: int) -> ExactMoments:
    """The slow, obvious twin of `moments`: sums over outcomes and their probabilities.

    Weights that are floats are taken at their exact binary value.
    """
    zero = Fraction(0)
    mean: Array = np.full(n, zero, dtype=object)
    second: Array = np.full((n, n), zero, dtype=object)
    inclusion: Array = np.full(n, zero, dtype=object)
    total, count, square = zero, zero, zero
    for chance, cohort in outcomes:
        weights: Array = np.full(n, zero, dtype=object)
        weights[cohort.clients] = [Fraction(weight) for weight in cohort.weights]
        mean += chance * weights
        second += chance * np.outer(weights, weights)
        inclusion[cohort.clients] += chance
        total += chance
        count += chance * len(cohort)
        square += chance * len(cohort) ** 2
    if abs(total - 1) > 1e-12:  # probabilities may be rounded floats
        raise ValueError(f"the probabilities of all outcomes must add up to 1, not {total}")
    covariance = second - np.outer(mean, mean)
    return ExactMoments(mean, covariance, inclusion, count, square - count**2)
