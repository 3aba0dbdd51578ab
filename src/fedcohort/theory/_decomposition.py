"""How far from the optimum one round is expected to end, and which part is due to what."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import log10
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter, shown
from fedcohort._internal.parameters import within_ranges
from fedcohort._internal.types import Floats
from fedcohort.designs import Rows
from fedcohort.selection._design import Design
from fedcohort.theory._ranges import LISTED, NOT_NEGATIVE, POSITIVE, finite, rows_of

LARGEST_POWER = 150
"""Powers of ten beyond which the square of a distance is no number any more."""


@dataclass(frozen=True)
class Decomposition:
    """The parts of E||theta' - theta*||^2, which add up to it exactly.

    With mu_i the expected weights (p_i for an unbiased design), D_i the expected updates and
    ``theta' = theta + eta_g * sum_i omega_i Delta_i``:

    start
        ||theta - theta*||^2: where the round begins.
    direction
        2 eta_g <sum mu_i D_i, theta - theta*>: negative where the average update helps.
    noise
        eta_g^2 times what the randomness of local training adds: sum_i E[omega_i^2] v_i for
        clients that train independently, v_i the total variance of update i.
    local_drift
        eta_g^2 sum_i gamma_i ||D_i||^2, gamma_i = Var(omega_i) + alpha mu_i^2: every client
        counts by itself, however the updates point.
    global_drift
        eta_g^2 (1 - alpha) ||sum mu_i D_i||^2: the length of the common step.
    pairs
        eta_g^2 sum_{i != j} (Cov_ij + alpha mu_i mu_j) <D_i, D_j>: what pairs of clients add
        that do not follow the common ratio alpha. 0 for every design with a true alpha;
        for clustered sampling this is what the clustering gains or loses.

    Where a design has no alpha (clustered sampling), ``alpha`` is the ratio on average,
    -sum_{i != j} Cov_ij / sum_{i != j} mu_i mu_j, which is equation (24) of the paper.
    """

    start: float
    direction: float
    noise: float
    local_drift: float
    global_drift: float
    pairs: float
    alpha: float

    @property
    def total(self) -> float:
        """E||theta' - theta*||^2."""
        return sum(self.parts.values())

    @property
    def parts(self) -> dict[str, float]:
        """The parts by name, in the order in which one would stack them."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "alpha"}


@within_ranges
def decomposition(
    design: Design,
    updates: ArrayLike,
    theta: ArrayLike,
    optimum: ArrayLike,
    eta_g: Annotated[float, POSITIVE] = 1.0,
    *,
    variance: ArrayLike | None = None,
    products: ArrayLike | None = None,
) -> Decomposition:
    """Expected squared distance to the optimum after one round, for any design.

    The form used is exact for every local work, number of steps and noise, because it speaks
    of the updates themselves and not of the gradients they are made of.

    Parameters
    ----------
    design
        The law of the cohort.
    updates
        (n, d) the updates Delta_i = theta_i - theta; their expectations D_i where local
        training is random.
    theta, optimum
        (d,) the model before the round, and the one to be near to.
    eta_g
        Step size of the server.
    variance
        (n,) v_i = E||Delta_i - D_i||^2, for clients whose randomness is independent.
    products
        (n, n) E<Delta_i, Delta_j>, instead of ``variance``, for any dependence.

    Where we differ: equation (8) of the paper adds up the noise of single gradients and holds
    for one local step or no noise only (later gradients depend on earlier noise); this form
    holds always. The direction needs a negative inner product, not collinearity.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=2).law(Federation.from_sizes([1, 1]))
    >>> step = decomposition(md, [[2.0], [0.0]], theta=[0.0], optimum=[1.0])
    >>> step.total, step.parts["local_drift"], step.parts["global_drift"]
    (0.5, 1.0, 0.5)

    Reference: Fraboni, Vidal, Kameni, Lorenzi (2021), Theorem 1, in the form of (78)-(79).
    """
    x, here, goal = _checked(design, updates, theta, optimum)
    mean, spread, alpha = design.mean(), design.variance(), covariance_ratio(design)
    squares = np.einsum("ij,ij->i", x, x)  # (n,)
    step = mean @ x  # (d,)
    local = float((spread + alpha * mean**2) @ squares)
    common = (1.0 - alpha) * float(step @ step)
    # What is left of the whole second moment; 0 by definition where alpha holds for all pairs.
    rest = 0.0
    if design.alpha is None:
        rest = second_moment(design, x) - local - common
    scale = eta_g**2
    return Decomposition(
        start=float((here - goal) @ (here - goal)),
        direction=2.0 * eta_g * float(step @ (here - goal)),
        noise=scale * _noise(design, x, variance, products),
        local_drift=scale * local,
        global_drift=scale * common,
        pairs=scale * rest,
        alpha=alpha,
    )


def second_moment(design: Design, x: ArrayLike) -> float:
    """E||sum_i omega_i x_i||^2 = sum_ij (Cov_ij + mu_i mu_j) <x_i, x_j>, for any design.

    ``x`` is (n, d). The covariance is used as an operator: O(n d) for the designs here.
    """
    rows = rows_of(design, x, "x")
    mean = design.mean() @ rows
    return float(np.sum(rows * design.covariance_times(rows))) + float(np.sum(mean * mean))


def lemma_1(design: Design, x: Floats) -> float:
    """The same by (70): sum gamma_i ||x_i||^2 + (1 - alpha) ||sum mu_i x_i||^2.

    Only for designs with Cov_ij = -alpha mu_i mu_j for all pairs.
    """
    if design.alpha is None:
        raise BadInput(
            f"{type(design).__name__} has no common covariance ratio alpha; use second_moment."
        )
    mean = design.mean()
    gamma = design.variance() + design.alpha * mean**2
    step = mean @ x
    return float(gamma @ np.einsum("ij,ij->i", x, x)) + (1.0 - design.alpha) * float(step @ step)


def clustered_second_moment(design: Rows, x: Floats) -> float:
    """The same for m draws of weight 1/m from rows r_k.

    ||xbar||^2 + (1/m) sum p_i ||x_i||^2 - (1/m^2) sum_k ||xbar_k||^2, where xbar_k is the mean
    of row k: the variance is that *within* rows, over m^2. Equation (87), with (62) put in.
    """
    m, mean = design.draws, design.mean()
    row_means = design.matrix @ x  # (rows, d)
    whole = mean @ x
    return (
        float(whole @ whole)
        + float(mean @ np.einsum("ij,ij->i", x, x)) / m
        - design.repeats * float(np.sum(row_means**2)) / m**2
    )


def product_moment(design: Design, products: Floats) -> float:
    """E||sum_i omega_i Delta_i||^2 from ``products`` (n, n) = E<Delta_i, Delta_j>.

    sum_ij (Cov_ij + mu_i mu_j) E<Delta_i, Delta_j>: the form that is always exact.
    """
    mean = design.mean()
    return float(np.trace(design.covariance_times(products))) + float(mean @ products @ mean)


def covariance_ratio(design: Design) -> float:
    """Alpha, or where pairs differ its average -sum Cov_ij / sum mu_i mu_j over i != j."""
    if design.alpha is not None:
        return design.alpha
    mean = design.mean()
    pairs = float(mean.sum() ** 2 - mean @ mean)
    if pairs <= 0:
        return 0.0
    return (float(design.variance().sum()) - design.weight_sum_variance()) / pairs


@within_ranges
def quadratic(
    design: Design,
    minima: ArrayLike,
    theta: ArrayLike,
    *,
    eta_l: Annotated[float, POSITIVE],
    steps: Annotated[int, LISTED],
    eta_g: Annotated[float, POSITIVE] = 1.0,
    sigma: Annotated[float, NOT_NEGATIVE] = 0.0,
    importance: ArrayLike | None = None,
) -> Decomposition:
    """The decomposition for clients with L_i = 1/2 ||theta - theta_i*||^2, in closed form.

    K = ``steps`` gradient steps of size eta_l give D_i = phi (theta_i* - theta) with
    phi = 1 - (1 - eta_l)^K, and noise ``sigma`` per coordinate of a gradient gives
    v_i = d eta_l^2 sigma^2 sum_k (1 - eta_l)^(2k). For a design with alpha::

        E||theta' - theta*||^2 = (1 - 2 eta_g phi) ||theta - theta*||^2 + noise
            + eta_g^2 phi^2 [sum gamma_i ||theta - theta_i*||^2 + (1 - alpha) ||theta - theta*||^2]

    ``importance`` defaults to the expected weights, and sets the optimum sum p_i theta_i*.

    Where we differ: (155) prints 1 - 2 eta_g eta_l in the first term, right for K = 1 only.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=2).law(Federation.from_sizes([5, 4, 3, 2, 1]))
    >>> minima = [[1, 0], [0, 2], [-1, 1], [2, -1], [-2, -2]]
    >>> round(quadratic(md, minima, [0.5, -1.0], eta_l=0.1, steps=3).total, 6)
    1.271676
    """
    goals = finite(minima, "minima", 2)
    here = finite(theta, "theta", 1)
    p = design.mean() if importance is None else finite(importance, "importance", 1)
    if p.shape != (design.n,) or goals.shape != (design.n, len(here)):
        raise BadInput(
            f"'minima' must be ({design.n}, {len(here)}) and 'importance' ({design.n},); "
            f"got {goals.shape} and {p.shape}."
        )
    require_near(eta_l, steps, "quadratic")
    phi = 1.0 - (1.0 - eta_l) ** steps
    kept = (1.0 - eta_l) ** (2 * np.arange(steps))  # of the variance of each step's noise
    each = len(here) * (eta_l * sigma) ** 2 * float(kept.sum())
    return decomposition(
        design,
        phi * (goals - here),
        here,
        p @ goals,
        eta_g,
        variance=np.full(design.n, each) if sigma else None,
    )


def require_near(eta_l: float, steps: int, owner: str) -> None:
    """Refuse local steps on a quadratic loss that lead beyond all numbers."""
    if 2 * steps * log10(max(1.0, abs(1.0 - eta_l))) > LARGEST_POWER:
        raise BadParameter(
            "eta_l",
            owner,
            f"at most 2, or not so large that {steps} steps lead beyond all numbers",
            eta_l,
            "Lower it, or take fewer steps.",
        )


def _noise(
    design: Design, x: Floats, variance: ArrayLike | None, products: ArrayLike | None
) -> float:
    if variance is not None and products is not None:
        raise BadInput("Give 'variance' or 'products' to decomposition, not both.")
    if products is not None:
        given = finite(products, "products", 2)
        if given.shape != (design.n, design.n):
            raise BadInput(f"'products' must be ({design.n}, {design.n}); got {given.shape}.")
        return product_moment(design, given - x @ x.T)
    if variance is None:
        return 0.0
    spread = finite(variance, "variance", 1)
    if spread.shape != (design.n,) or np.any(spread < 0):
        raise BadInput(
            f"'variance' must be {design.n} numbers of at least 0; got {shown(variance)}."
        )
    return float((design.variance() + design.mean() ** 2) @ spread)


def _checked(
    design: Design, updates: ArrayLike, theta: ArrayLike, optimum: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    x, here, goal = (
        finite(updates, "updates", 2),
        finite(theta, "theta", 1),
        finite(optimum, "optimum", 1),
    )
    if len(x) != design.n:
        raise BadInput(
            f"'updates' must have one row per client ({design.n}); got {len(x)}. For a random "
            "local training pass the expected updates, and 'variance' or 'products'."
        )
    if not x.shape[1] == len(here) == len(goal):
        raise BadInput(
            "'updates', 'theta' and 'optimum' must have the same dimension; "
            f"got {x.shape[1]}, {len(here)} and {len(goal)}."
        )
    return x, here, goal
