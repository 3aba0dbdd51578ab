"""Selection skew, and the bounds of Power-of-Choice for strongly convex losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Checked, Whole, within_ranges
from fedcohort._internal.types import Array, Floats, as_floats
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Answer
from fedcohort.selection._scheme import Scheme
from fedcohort.selection._scripted import Trial
from fedcohort.theory._moments import constants
from fedcohort.theory._ranges import COUNT, LARGEST_NUMBER, NOT_NEGATIVE, POSITIVE, finite

# What a biased selection gains and what it costs: selection skew and the bound of Cho et al.
#
# The problem. Power-of-Choice prefers clients on which the model is bad. That is faster, and it
# ends somewhere else than at the optimum of the federation. Two numbers say how much of each.
#
# Symbols. F = sum_k p_k F_k with the optimum w*, local optima F_k*, a selection pi of m clients.
#
# * The local-global gap, a property of the data alone (Definition 1)::
#
#       Gamma = F(w*) - sum_k p_k F_k*  >= 0.
#
# * The selection skew (Definition 2): how much worse the chosen clients are than the average,
#   when they are chosen at the model w and looked at with the model w'::
#
#       rho(w, w') = E[ 1/m sum_{k in S(w)} (F_k(w') - F_k*) ] / (F(w') - sum_k p_k F_k*).
#
#   ``lowest`` = min rho(w, w') speeds up, ``highest`` = max rho(w, w*) is paid for.
#
# Theorem 1. With L-smooth and mu-strongly convex F_k, stochastic gradients of variance at most
# sigma^2 and second moment at most G^2, tau local steps, step sizes 1 / (mu (t + gamma)) and
# gamma = 4 L / mu, after T iterations E F(w_T) - F(w*) is at most ::
#
#     1 / (T + gamma) [ 4 L (32 tau^2 G^2 + sigma^2 / m) / (3 mu^2 lowest) + 8 L^2 Gamma / mu^2
#                       + L gamma ||w_0 - w*||^2 / 2 ]
#     + 8 L Gamma / (3 mu) (highest / lowest - 1),
#
# where the first part vanishes with T and the second does not.
#
# Selections that draw with probability p have rho = 1 and no bias. (Equation (1.11) of Giunta's
# thesis says so of uniform selection, which is true only where all p_k are equal.)
#
# Reference: Cho, Wang, Joshi, "Towards Understanding Biased Client Selection in Federated
# Learning", AISTATS 2022, Definitions 1 and 2, Theorem 1.

DRAWS, MOST_DRAWS = 1_000, 1_000_000
"""Cohorts drawn where not all can be enumerated."""


def objective_gap(importance: ArrayLike, at_optimum: ArrayLike, local_optima: ArrayLike) -> float:
    """Gamma, from the losses F_k(w*) of the best common model and the local optima F_k*.

    >>> objective_gap([0.5, 0.5], [0.5, 0.5], [0.0, 0.0])  # two quadratics, minima 2 apart
    0.5
    """
    p, best, local = _aligned(importance, at_optimum, local_optima)
    gaps = best - local
    if np.any(gaps < -1e-9 * np.maximum(1.0, np.abs(best))):
        k = int(np.argmin(gaps))
        raise BadInput(
            f"A local optimum must not lie above the loss of the common model; client {k} has "
            f"{local[k]:.6g} and {best[k]:.6g}."
        )
    return max(0.0, float(p @ gaps))


@dataclass(frozen=True)
class Skew:
    """The selection skew over the models that were looked at."""

    lowest: float  # min rho(w, w')
    highest: float  # max rho(w, w*)
    table: Floats  # (models chosen at, models looked at), the last column is w*

    @property
    def bias(self) -> float:
        """What does not vanish is proportional to it: highest / lowest - 1."""
        return self.highest / self.lowest - 1.0


@within_ranges
def selection_skew(
    scheme: Scheme[Any],
    federation: Federation,
    losses: ArrayLike,
    local_optima: ArrayLike,
    *,
    answer: Answer | None = None,
    draws: Annotated[int, Whole(1, MOST_DRAWS)] = DRAWS,
    seed: int = 0,
) -> Skew:
    """Estimate rho of a scheme on a task, in its first round.

    The minimum and maximum are over the models given, so that ``lowest`` is at least, and
    ``highest`` at most, what the theorem means. `fedcohort.theory.simulated.skew_on` gathers
    the losses.

    Parameters
    ----------
    scheme, federation
        Whose selection, and among whom.
    losses
        (models, n) F_k of several models, for instance along a run; the *last* row is w*, the
        best model known. Clients are asked for these.
    local_optima
        (n,) F_k*, the best that each client could do alone.
    answer
        How clients answer other questions than ``loss`` (a histogram, say).
    draws
        Cohorts drawn for each model; with at most 8 clients all outcomes are enumerated.
    seed
        Of the draws.

    >>> from fedcohort import scheme
    >>> federation = Federation.from_sizes([1, 1, 1])
    >>> losses = [[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    >>> found = selection_skew(scheme("pow-d", m=1, d=3), federation, losses, [0.0, 0.0, 0.0])
    >>> found.table  # the worst client of three: 3 against a mean of 2
    array([[1.5, 1. ],
           [1. , 1. ]])
    """
    table, local = finite(losses, "losses", 1, 2), finite(local_optima, "local_optima", 1)
    n = len(federation)
    if table.ndim != 2 or table.shape[1] != n or local.shape != (n,) or len(table) == 0:
        raise BadInput(
            f"The skew needs losses (models, {n}) and {n} local optima; got {table.shape} and "
            f"{local.shape}."
        )
    excess = table - local  # (models, n)
    weights = np.stack(
        [_mean_share(scheme, federation, row, answer, draws, seed) for row in table]
    )  # (models, n) E[1/m 1(k in S(w))]
    average = excess @ federation.importance  # (models,)
    if np.any(average <= 0):
        raise BadInput(
            "The skew is not defined where the mean loss is that of the local optima: such a "
            "model is best for every client at once."
        )
    rho = weights @ excess.T / average  # (chosen at, looked at)
    return Skew(float(rho.min()), float(rho[:, -1].max()), rho)


def _mean_share(
    scheme: Scheme[Any],
    federation: Federation,
    losses: Floats,
    answer: Answer | None,
    draws: int,
    seed: int,
) -> Floats:
    """(n,) the expected share of a cohort that each client is, chosen at one model."""
    scripted = Trial.of(scheme, federation, answer).answer

    def told(ask: Any) -> Array:
        is_loss = ask.signal.name in ("loss", "batch_loss")
        return losses[ask.clients] if is_loss else scripted(ask)

    trial = Trial(scheme, federation, told, seed)
    state = trial.start()
    outcomes = trial.law(state)
    share = np.zeros(len(federation))
    if outcomes is None:
        cohorts = trial.sample(state, 0, None, draws)
        outcomes = [(1 / draws, cohort) for cohort in cohorts]  # type: ignore[misc]
    for chance, cohort in outcomes:
        times = cohort.draws / max(1, int(cohort.draws.sum()))
        share[cohort.clients] += float(chance) * times
    return share


@dataclass(frozen=True)
class SkewBound:
    """Theorem 1 for one number of iterations."""

    vanishing: float
    bias: float

    @property
    def total(self) -> float:
        """The bound on E F(w_T) - F(w*)."""
        return self.vanishing + self.bias


@dataclass(frozen=True)
class Smoothness(Checked):
    """The constants of Theorem 1.

    Parameters
    ----------
    L, mu
        Every F_k is L-smooth and mu-strongly convex.
    G, sigma
        Bounds on the length, and on the noise, of a stochastic gradient.
    tau
        Local steps in a round.
    distance
        ||w_0 - w*||.
    """

    L: Annotated[float, POSITIVE]
    mu: Annotated[float, POSITIVE]
    G: Annotated[float, NOT_NEGATIVE]
    sigma: Annotated[float, NOT_NEGATIVE]
    tau: Annotated[int, COUNT]
    distance: Annotated[float, NOT_NEGATIVE]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mu > self.L:
            raise BadParameter("mu", "Smoothness", f"at most L ({self.L})", self.mu)

    @property
    def gamma(self) -> float:
        """4 L / mu."""
        return 4 * self.L / self.mu


@within_ranges
def skew_bound(
    problem: Smoothness,
    gap: Annotated[float, NOT_NEGATIVE],
    lowest: Annotated[float, POSITIVE],
    highest: Annotated[float, POSITIVE],
    m: Annotated[int, COUNT],
    iterations: Annotated[int, COUNT],
) -> SkewBound:
    """The bound of Theorem 1 and its two parts.

    ``gap`` is Gamma; ``lowest`` and ``highest`` as in `Skew`. Without heterogeneity, or without
    skew, nothing is left in the end.

    >>> problem = Smoothness(L=1.0, mu=1.0, G=1.0, sigma=0.0, tau=1, distance=1.0)
    >>> unbiased = skew_bound(problem, gap=0.5, lowest=1.0, highest=1.0, m=3, iterations=10**6)
    >>> biased = skew_bound(problem, gap=0.5, lowest=1.5, highest=2.0, m=3, iterations=10**6)
    >>> biased.vanishing < unbiased.vanishing, round(biased.bias, 4), unbiased.bias
    (True, 0.4444, 0.0)
    """
    if lowest > highest:
        must = "numbers with 0 < lowest <= highest"
        raise BadParameter("lowest, highest", "skew_bound", must, (lowest, highest))
    L, mu = problem.L, problem.mu
    noise = 4 * L * (32 * problem.tau**2 * problem.G**2 + problem.sigma**2 / m)
    start = L * problem.gamma * problem.distance**2 / 2
    bracket = noise / (3 * mu**2 * lowest) + 8 * L**2 * gap / mu**2 + start
    return SkewBound(
        bracket / (iterations + problem.gamma), 8 * L * gap / (3 * mu) * (highest / lowest - 1)
    )


def _aligned(*vectors: ArrayLike) -> Sequence[Floats]:
    must = "Importance, losses and local optima must be finite, one each per client"
    arrays = [as_floats(vector, must) for vector in vectors]
    shape = arrays[0].shape
    fine = [a.shape == shape and np.all(np.abs(a) <= LARGEST_NUMBER) for a in arrays]
    if len(shape) != 1 or not all(fine):
        raise BadInput(f"{must}; got shapes " + ", ".join(str(a.shape) for a in arrays) + ".")
    return arrays


# Strongly convex losses and decaying steps: Theorem 2 of HCSFed with Lemmas 4 and 5, corrected.
#
# The theorem is that of Li et al. (2020) for FedAvg, with the sampling of HCSFed put into two
# lemmas: *Lemma 4*, the sampled mean is unbiased; *Lemma 5*, its variance is bounded. Both are
# statements about a design, so here they are computed from it, for any design.


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
