"""Strongly convex losses and decaying steps: Theorem 2 of HCSFed with Lemmas 4 and 5, corrected.

The theorem is that of Li et al. (2020) for FedAvg, with the sampling of HCSFed put into two
lemmas: *Lemma 4*, the sampled mean is unbiased; *Lemma 5*, its variance is bounded. Both are
statements about a design, so here they are computed from it, for any design.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import within_ranges
from fedcohort._internal.types import Floats, as_floats
from fedcohort.selection._design import Design
from fedcohort.theory.constants import constants
from fedcohort.theory.ranges import COUNT, NOT_NEGATIVE
from fedcohort.theory.skew import Smoothness


def lemma_4(design: Design, importance: ArrayLike) -> Floats:
    """(n,) E omega_i - p_i, by how much each client counts too much: 0 is Lemma 4.

    It holds for Hansen-Hurwitz weights p_i / (m_h q_i), and fails for the weights (N / m) p_i of
    Algorithm 2, line 15, unless m_h q_i = m / N for all.

    >>> from fedcohort import Federation, scheme
    >>> clients = Federation.from_sizes([3, 1])
    >>> lemma_4(scheme("md", m=2).law(clients), clients.importance)
    array([0., 0.])
    """
    p = as_floats(importance, "'importance' must be numbers")
    if p.shape != (design.n,):
        raise BadInput(f"'importance' must be ({design.n},); got {p.shape}.")
    return np.asarray(design.mean() - p)


def lemma_5(design: Design) -> float:
    """The smallest c known with E||sum omega_i x_i - sum p_i x_i||^2 <= c max_i ||x_i||^2.

    In a round of tau steps that begins with step size eta_0 <= 2 eta, ||x_i||^2 is at most
    4 eta^2 tau^2 G^2, which makes Lemma 5: E||wbar - vbar||^2 <= 4 c eta^2 tau^2 G^2. With the
    constants (A, B, w) of the design, c = A sum p_i^2 / w_i:

    - 1/m for MD and clustered sampling (Scheme I of Li et al.);
    - (n - m) / (m (n - 1)) for uniform sampling of clients that count alike (Scheme II);
    - sum_h (1/m_h) sum_{i in h} p_i^2 / q_i for draws with chances q in strata.

    Where we differ: HCSFed says that Lemma 5 holds with 1/m "naturally", by its Theorem 1. It
    does not: every stratum needs a draw, and with strata of 8 and 1 clients and m = 2 the variance
    of unit updates reaches 64/81, where 1/m is 1/2.

    >>> from fedcohort import Federation, scheme
    >>> clients = Federation.from_sizes([1] * 5)
    >>> round(lemma_5(scheme("md", m=2).law(clients)), 9)
    0.5
    >>> round(lemma_5(scheme("uniform", m=2).law(clients)), 9)  # 3 / (2 * 4)
    0.375
    """
    return constants(design).unlike


class Noises(NamedTuple):
    """What is added to the squared distance in every step, over eta^2: B + C.

    gradient
        sum p_i^2 sigma^2.
    heterogeneity
        6 L Gamma.
    drift
        8 (tau - 1)^2 G^2.
    sampling
        4 c tau^2 G^2, c of `lemma_5`: C, 0 if everybody takes part.
    """

    gradient: float
    heterogeneity: float
    drift: float
    sampling: float


@dataclass(frozen=True)
class StronglyConvexBound:
    """An upper bound on E F(w_T) - F*."""

    noises: Noises
    total: float
    shift: float  # gamma of the step sizes 2 / (mu (gamma + t))
    starting: bool  # whether the distance at the beginning still decides


@within_ranges
def strongly_convex_bound(
    design: Design,
    problem: Smoothness,
    gap: Annotated[float, NOT_NEGATIVE],
    iterations: Annotated[int, COUNT],
) -> StronglyConvexBound:
    """Theorem 2 of HCSFed, corrected: FedAvg with any unbiased design.

    With step sizes 2 / (mu (gamma + t)), gamma = max(8 L / mu, tau), and B + C the sum of
    `Noises`::

        E F(w_T) - F* <= (L / 2) max{4 (B + C) / mu^2, (gamma + 1) ||w_1 - w*||^2} / (gamma + T)

    because Delta_{t+1} <= (1 - eta_t mu) Delta_t + eta_t^2 (B + C) for Delta_t = E||w_t - w*||^2:
    Lemmas 1 to 3 of Li et al. give B, Lemma 4 makes the sampling error orthogonal to the rest,
    and Lemma 5 gives C.

    Where we differ: (10) *subtracts* terms O(rho^2/m) and O(chi^2/m) that do not vanish with T, so
    that it is negative from some T on, while the left-hand side is not. What strata gain
    belongs into C, as the constant c of the design; the weights must be unbiased (`lemma_4`), and
    updates be added up, not models, as the weights of a cohort need not sum to 1.

    Parameters
    ----------
    design
        An unbiased law; where it changes from round to round, the one with the largest
        `lemma_5`.
    problem
        L, mu, G, sigma, tau and the distance ||w_1 - w*||; G must bound the gradients along the
        whole run.
    gap
        Gamma, see `objective_gap`.
    iterations
        T, local steps in all.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=5).law(Federation.from_sizes([1] * 50))
    >>> problem = Smoothness(L=1.0, mu=1.0, G=1.0, sigma=0.0, tau=2, distance=1.0)
    >>> bound = strongly_convex_bound(md, problem, gap=0.5, iterations=992)
    >>> bound.noises.drift, round(bound.noises.sampling, 9), round(bound.total, 6)
    (8.0, 3.2, 0.0284)

    Reference: Song et al. (UAI 2023), Theorem 2; Li, Huang, Yang, Wang, Zhang (ICLR 2020),
    Theorems 1 to 3, Lemmas 1 to 5.
    """
    p, t = design.mean(), problem
    noises = Noises(
        float(p @ p) * t.sigma**2,
        6.0 * t.L * gap,
        8.0 * (t.tau - 1) ** 2 * t.G**2,
        4.0 * lemma_5(design) * t.tau**2 * t.G**2,
    )
    shift = max(8.0 * t.L / t.mu, float(t.tau))
    later, start = 4.0 * sum(noises) / t.mu**2, (shift + 1.0) * t.distance**2
    total = 0.5 * t.L * max(later, start) / (shift + iterations)
    return StronglyConvexBound(noises, total, shift, start > later)
