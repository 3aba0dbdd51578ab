"""A bound on the gradients of a whole training, term by term, with its constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Checked, OneOf, Real, within_ranges
from fedcohort._internal.types import Floats, as_floats
from fedcohort.selection._design import CovarianceBound, Design
from fedcohort.theory._decomposition import require_near
from fedcohort.theory._ranges import COUNT, LARGEST, LISTED, NOT_NEGATIVE, POSITIVE, finite

MEAN_TOLERANCE = 1e-9
LARGEST_WEIGHT = 1e100
"""Squares of local weights, and sums of these, stay finite."""
SMALLEST_WEIGHT = 1e-100
"""What the weights of a client sum to at least."""


@dataclass(frozen=True)
class Training(Checked):
    """What Theorem 2 needs to know of a training, apart from who is chosen.

    Parameters
    ----------
    eta_l, steps, rounds
        Local step size, K local steps, T rounds.
    smoothness
        L: every local loss has an L-Lipschitz gradient (Assumption 2).
    gap
        L(theta^0) - min L, what there is to gain.
    noise
        sigma^2, a bound on the variance of a stochastic gradient (Assumption 1).
    dissimilarity
        kappa^2 of Assumption 3: for all weights w, sum w_i ||grad L_i||^2 is at most
        beta^2 ||grad L||^2 + kappa^2.
    beta
        beta^2 of the same, at least 1.
    eta_g
        Step size of the server.
    constants
        ``"sound"``, or ``"paper"`` for the constants as printed; see `convergence_bound`.
    """

    eta_l: Annotated[float, POSITIVE]
    steps: Annotated[int, COUNT]
    rounds: Annotated[int, COUNT]
    smoothness: Annotated[float, POSITIVE] = 1.0
    gap: Annotated[float, NOT_NEGATIVE] = 1.0
    noise: Annotated[float, NOT_NEGATIVE] = 0.0
    dissimilarity: Annotated[float, NOT_NEGATIVE] = 0.0
    beta: Annotated[float, Real(1, LARGEST)] = 1.0
    eta_g: Annotated[float, POSITIVE] = 1.0
    constants: Annotated[str, OneOf(("sound", "paper"))] = "sound"

    @property
    def factor(self) -> int:
        """What the printed constants must be multiplied by to be right: 1 or 2."""
        random_steps = self.steps > 1 and self.noise > 0
        return 2 if self.constants == "sound" and random_steps else 1


class Condition(NamedTuple):
    """A condition on the step sizes: ``value`` must stay within ``limit``."""

    name: str
    value: float
    limit: float
    holds: bool


class Terms(NamedTuple):
    """The terms of the bound; each is already divided by 1 - 4 Omega.

    start
        What there was to gain at the beginning, over eta_g eta_l K T.
    local_noise, local_dissimilarity
        Drift of the local models, in eta_l^2: independent of who is chosen (B and C).
    aggregate_noise
        Gradient noise in the aggregate, in Sigma + sum p^2 (A).
    sampling_noise, sampling_dissimilarity
        What sampling adds, in gamma (D and E): 0 when everybody takes part.
    """

    start: float
    local_noise: float
    local_dissimilarity: float
    aggregate_noise: float
    sampling_noise: float
    sampling_dissimilarity: float


@dataclass(frozen=True)
class ConvergenceBound:
    """An upper bound on (1/T) sum_t E||grad L(theta^t)||^2.

    ``valid`` says whether all conditions hold; where one does not, ``total`` is infinite: the
    theorem then says nothing. ``covariance`` says where the second moment came from.
    """

    terms: Terms
    omega: float
    sigma: float
    gamma: float
    alpha: float
    conditions: tuple[Condition, ...]
    covariance: str

    @property
    def valid(self) -> bool:
        """Whether every condition holds."""
        return all(condition.holds for condition in self.conditions)

    @property
    def total(self) -> float:
        """The bound."""
        return sum(self.terms) if self.valid else inf

    def __str__(self) -> str:
        lines = [f"{name:24s}{value:12.4g}" for name, value in self.terms._asdict().items()]
        lines.append(f"{'total':24s}{self.total:12.4g}")
        for name, value, limit, holds in self.conditions:
            lines.append(f"{'ok  ' if holds else 'FAILS'} {name}: {value:.4g} (limit {limit:.4g})")
        return "\n".join(lines)


def convergence_bound(
    design: Design,
    training: Training,
    *,
    local_weights: ArrayLike | None = None,
    importance: ArrayLike | None = None,
) -> ConvergenceBound:
    """Theorem 2, with the constants of its proof (Theorem 3).

    With a_i the weights of the local gradients, ||a_i||_1 = a_i, A_i = ||a_i||_2^2, l_i the
    last of them, K_eff = sum p_i a_i, w_i = p_i a_i / K_eff, and eta = eta_g eta_l::

        (1 - 4 Omega) (1/T) sum_t E||grad L(theta^t)||^2 <=
              4 gap / (eta K_eff T)
            + 3 eta_l^2 L^2 sigma^2 sum w_i (A_i - l_i^2)
            + 6 eta_l^2 L^2 kappa^2 max a_i (a_i - l_i)
            + (2 L eta / K_eff) sigma^2 sum E[omega_i^2] A_i
            + (3 L eta / K_eff) sigma^2 sum gamma_i (A_i - l_i^2)
            + (6 L eta / K_eff) kappa^2 sum gamma_i a_i^2
        Omega = (3/2) (L eta / K_eff) beta^2 sum gamma_i a_i^2

    Parameters
    ----------
    design
        An unbiased law with a covariance ratio alpha, m draws from rows (clustered sampling,
        by Corollary 2: gamma and alpha of MD sampling, Sigma its own), or independent strata
        of such laws.
    training
        Step sizes and constants.
    local_weights
        (K,) or (n, K) weights of the local gradients; all 1 (FedAvg) by default, see
        `proximal_weights` for FedProx. Where clients differ, L is the surrogate
        sum w_i L_i that is then minimised.
    importance
        (n,) p, to check that the design is unbiased for it; by default the mean weights.

    Where we differ: (120) and (130) lose a factor, -1/2 + 1/4 + Omega = -(1 - 4 Omega)/4, so
    that 4 Omega must stay below 1. And (80), (93), (111) drop an inner product that is not 0
    when several noisy steps follow each other; bounding it as Wang et al. (2020) do doubles R,
    R', Omega, condition (129) and every term but the first. That is ``constants="sound"``; one
    step or no noise needs no doubling. D and E are those of (121), which (125) and (126) only
    loosen.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=5).law(Federation.from_sizes([1] * 50))
    >>> bound = convergence_bound(md, Training(eta_l=0.01, steps=5, rounds=1000))
    >>> bound.valid, round(bound.total, 3)
    (True, 0.085)

    Reference: Fraboni, Vidal, Kameni, Lorenzi (2021), Theorem 2, (105)-(130), Corollary 2.
    """
    mean = design.mean()
    p = mean if importance is None else as_floats(importance, "'importance' must be numbers")
    if p.shape != mean.shape or np.max(np.abs(p - mean), initial=0.0) > MEAN_TOLERANCE:
        raise BadInput(
            "Theorem 2 holds for unbiased designs only: the expected weights must be the "
            "importance. This design is biased; no bound is known here."
        )
    if abs(float(mean.sum()) - 1.0) > 1e-6:
        raise BadInput(
            f"Theorem 2 holds for unbiased designs only; these weights sum to "
            f"{mean.sum():.6g} on average instead of 1."
        )
    alpha, gamma, covariance = _covariance(design)
    a = _local(local_weights, design.n, training.steps)
    return _bound(training, p, design.variance(), alpha, gamma, a, covariance)


class _Local(NamedTuple):
    """What the bound needs of the weights of local gradients, (n,) each."""

    ones: Floats  # ||a_i||_1
    squares: Floats  # ||a_i||_2^2
    last: Floats


def _bound(
    t: Training,
    p: Floats,
    variance: Floats,
    alpha: float,
    gamma: Floats,
    a: _Local,
    covariance: str,
) -> ConvergenceBound:
    c, eta, smooth = t.factor, t.eta_g * t.eta_l, t.smoothness
    effective = float(p @ a.ones)  # K_eff
    reach = float(gamma @ a.ones**2)
    before_last = a.squares - a.last**2
    drift = float(np.max(a.ones * (a.ones - a.last)))
    omega = 1.5 * c * smooth * eta / effective * t.beta * reach
    conditions = _conditions(t, alpha, effective, float(a.ones.max()), drift, omega)
    per = smooth * eta / effective
    left = 1.0 - 4.0 * omega
    local = t.eta_l**2 * smooth**2
    raw = (
        4.0 * t.gap / (eta * effective * t.rounds),
        3.0 * c * local * t.noise * float(p * a.ones @ before_last) / effective,
        6.0 * c * local * t.dissimilarity * drift,
        2.0 * c * per * t.noise * float((variance + p**2) @ a.squares),
        3.0 * c * per * t.noise * float(gamma @ before_last),
        6.0 * c * per * t.dissimilarity * reach,
    )
    terms = Terms(*(value / left if left > 0 else inf for value in raw))
    return ConvergenceBound(
        terms, omega, float(variance.sum()), float(gamma.sum()), alpha, conditions, covariance
    )


def _conditions(
    t: Training, alpha: float, effective: float, largest: float, drift: float, omega: float
) -> tuple[Condition, ...]:
    c = t.factor
    r = 2.0 * c * (t.eta_l * t.smoothness) ** 2 * drift
    reach = t.eta_l * t.smoothness * largest
    r_prime = 2.0 * c * reach * reach  # infinite where it must be, which is an answer
    common = c * t.smoothness * t.eta_g * t.eta_l * (1.0 - alpha) * effective
    limit = 1.0 / (2.0 * t.beta + 1.0)
    return (
        Condition("alpha >= 0 (pairs do not favour each other)", -alpha, 0.0, alpha >= 0),
        Condition("R, drift of local models (119)", r, limit, r <= limit),
        Condition("R', local steps (94)", r_prime, 1.0, r_prime < 1),
        Condition("common step (129)", common, 1.0, common <= 1),
        Condition("4 Omega, what sampling adds (130, corrected)", 4 * omega, 1.0, 4 * omega < 1),
    )


def largest_local_step(
    design: Design, training: Training, *, local_weights: ArrayLike | None = None
) -> float:
    """The largest eta_l for which all conditions hold with 4 Omega <= 1/2.

    With 4 Omega <= 1/2 every term is at most twice its numerator, which is how Theorem 2
    follows from Theorem 3. The value of ``training.eta_l`` itself plays no part.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=5).law(Federation.from_sizes([1] * 50))
    >>> round(largest_local_step(md, Training(eta_l=1, steps=5, rounds=1)), 4)
    0.0833
    """
    alpha, gamma, _ = _covariance(design)
    a, p = _local(local_weights, design.n, training.steps), design.mean()
    t, c = training, training.factor
    effective, reach = float(p @ a.ones), float(gamma @ a.ones**2)
    drift = float(np.max(a.ones * (a.ones - a.last)))
    steps = [sqrt(1.0 / (2.0 * c)) / (t.smoothness * float(a.ones.max()))]
    if drift > 0:
        steps.append(sqrt(1.0 / (2.0 * c * drift * (2.0 * t.beta + 1.0))) / t.smoothness)
    if alpha < 1:
        steps.append(1.0 / (c * t.smoothness * t.eta_g * (1.0 - alpha) * effective))
    if reach > 0:
        steps.append(effective / (12.0 * c * t.smoothness * t.eta_g * t.beta * reach))
    return min(steps)


@within_ranges
def proximal_weights(
    steps: Annotated[int, LISTED],
    mu: Annotated[float, NOT_NEGATIVE],
    eta_l: Annotated[float, NOT_NEGATIVE],
) -> Floats:
    """(K,) how much each local gradient is left of after FedProx's pull back, last first 1.

    A step theta - eta_l (g + mu (theta - theta_0)) shrinks what came before by 1 - eta_l mu,
    so a_k = (1 - eta_l mu)^(K - 1 - k). The paper writes mu for the product.

    >>> proximal_weights(3, mu=1.0, eta_l=0.5)
    array([0.25, 0.5 , 1.  ])
    """
    if not eta_l * mu < 1:
        raise BadParameter(
            "mu", "proximal_weights", "such that eta_l * mu is in [0, 1)", mu, "Lower eta_l."
        )
    out: Floats = (1.0 - eta_l * mu) ** np.arange(steps - 1, -1, -1, dtype=np.float64)
    return out


def _covariance(design: Design) -> CovarianceBound:
    """Alpha and gamma_i such that E||sum w_i x_i||^2 is at most Lemma 1 with them."""
    bound = design.covariance_bound()
    if bound is not None:
        return bound
    raise BadInput(
        f"No bound is known for {type(design).__name__}: it has no covariance ratio alpha and "
        "is not made of independent draws or strata."
    )


def _local(weights: ArrayLike | None, n: int, steps: int) -> _Local:
    if weights is None:  # FedAvg, without an (n, K) array
        ones = np.full(n, float(steps))
        return _Local(ones, ones, np.ones(n))
    must = f"'local_weights' must be ({steps},) or ({n}, {steps}) numbers from 0 to 1e100"
    a = as_floats(weights, must)
    a = np.broadcast_to(a, (n, a.shape[-1])) if a.ndim == 1 else a
    if a.shape != (n, steps) or not np.all(a <= LARGEST_WEIGHT) or np.any(a < 0):  # NaN included
        raise BadInput(f"{must}, one for each of the steps; got {a.shape}.")
    if np.any(a.sum(axis=1) < SMALLEST_WEIGHT):
        raise BadInput(
            "'local_weights' of a client must not all be 0, nor sum to less than "
            f"{SMALLEST_WEIGHT:g}: it would not train."
        )
    return _Local(a.sum(axis=1), (a**2).sum(axis=1), a[:, -1])


# A whole training of quadratic clients, on average, without a single draw.


def expected_gradients(
    design: Design, minima: ArrayLike, start: ArrayLike, training: Training
) -> Floats:
    """(T,) E||grad L(theta^t)||^2 before each round, exact for L_i = 1/2 ||theta - theta_i*||^2.

    A round is theta' = (1 - g W) theta + g sum omega_i theta_i* + noise with W = sum omega_i and
    g = eta_g (1 - (1 - eta_l)^K), so that E theta and E||theta - theta*||^2 follow from the
    moments of the weights. With z = theta - theta*, y_i = theta_i* - theta* and C = Cov(omega)::

        E||z'||^2 = [(1 - g)^2 + g^2 1'C1] E||z||^2 - 2 g^2 <E z, 1'C y> + g^2 tr(y'C y)
                    + eta_g^2 sum E[omega_i^2] v
        E z' = (1 - g) E z

    where v = eta_l^2 sigma^2 sum_k (1 - eta_l)^(2k), sigma^2 = ``training.noise`` being the whole
    variance of a stochastic gradient. ``smoothness`` is 1 for such clients.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=1).law(Federation.from_sizes([1, 1]))
    >>> one = Training(eta_l=0.5, steps=1, rounds=3)
    >>> expected_gradients(md, [[-1.0], [1.0]], [2.0], one)  # z -> z/2 +- 1/2
    array([4.    , 1.25  , 0.5625])
    """
    for name in ("steps", "rounds"):
        if not LISTED.accepts(getattr(training, name)):
            raise BadParameter(
                name, "expected_gradients", str(LISTED), getattr(training, name), "Lower it."
            )
    require_near(training.eta_l, training.steps, "expected_gradients")
    goals, here = finite(minima, "minima", 2), finite(start, "start", 1)
    if goals.ndim != 2 or goals.shape != (design.n, *here.shape):
        raise BadInput(
            f"'minima' must be ({design.n}, d) and 'start' (d,); got {goals.shape} and "
            f"{here.shape}."
        )
    p = design.mean()
    if abs(float(p.sum()) - 1.0) > 1e-9:
        raise BadInput("'design' must be unbiased: the expected weights must sum to 1.")
    t, apart = training, goals - p @ goals
    g = t.eta_g * (1.0 - (1.0 - t.eta_l) ** t.steps)
    kept = float(((1.0 - t.eta_l) ** (2.0 * np.arange(t.steps))).sum())
    noise = (t.eta_g * t.eta_l) ** 2 * t.noise * kept * float((design.variance() + p**2).sum())
    shrink = (1.0 - g) ** 2 + g**2 * design.weight_sum_variance()
    pull = g**2 * (design.covariance_times(np.ones(design.n)) @ apart)  # (d,)
    spread = g**2 * design.aggregate_variance(apart)
    mean = here - p @ goals
    second, out = float(mean @ mean), np.empty(t.rounds)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that is too large
        for round in range(t.rounds):
            out[round] = second
            second = shrink * second - 2.0 * float(mean @ pull) + spread + noise
            mean = (1.0 - g) * mean
    return out
