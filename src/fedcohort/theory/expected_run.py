"""A whole training of quadratic clients, on average, without a single draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.types import Floats
from fedcohort.selection._design import Design
from fedcohort.theory.convergence import Training
from fedcohort.theory.decomposition import require_near
from fedcohort.theory.ranges import LISTED, finite


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
