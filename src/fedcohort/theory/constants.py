"""Three constants (A, B, w) that say what a design costs, whatever the updates are.

Tyurin, Sun, Burlachenko and Richtárik (2022) analyse every unbiased sampling at once by one
inequality, the weighted AB inequality. For clients that count alike it reads

    E||S(a) - abar||^2 <= (A/n) sum_i ||a_i||^2 / (n w_i) - B ||abar||^2,   abar = (1/n) sum a_i,

with A, B >= 0 and weights w >= 0 that sum to 1. Clients of importance p are the case
a_i = n p_i x_i:

    E||sum omega_i x_i - sum p_i x_i||^2 <= A sum_i p_i^2 ||x_i||^2 / w_i - B ||sum p_i x_i||^2.

For all x at once this is a statement about the covariance of the weights alone,

    Cov <= diag(gamma) - B p p',    gamma_i = A p_i^2 / w_i

(the difference has no negative eigenvalue), which is what is computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, TooLarge
from fedcohort._internal.types import Floats, as_floats
from fedcohort.selection._design import Design
from fedcohort.theory.comparison import DOMINANCE_LIMIT
from fedcohort.theory.convergence import MEAN_TOLERANCE
from fedcohort.theory.decomposition import covariance_ratio
from fedcohort.theory.ranges import finite

EXACT = "exact"
"""The inequality is an equality, for all updates."""
TIGHT = "tight"
"""Some updates reach it: A cannot be smaller with this w and B, nor B larger with this A."""
APPROXIMATE = "approximate"
"""As tight, for a covariance that is known approximately: it may fail by as much."""
BOUND = "bound"
"""It holds; there are too many clients to find out whether A or B could be better."""
SAME = 1e-9
"""Relative size below which an eigenvalue or a component counts as 0."""


@dataclass(frozen=True, eq=False)
class Constants:
    """(A, B, w) of a design.

    ``w`` (n,) is 0 for clients that are sure to take part with their importance as weight (or
    have no importance): they add nothing to the variance, and the sum is over the others. If
    nobody varies, A = B = 0 and w is equal for all.
    """

    a: float
    b: float
    w: Floats  # (n,)
    p: Floats  # (n,) expected weights
    how: str  # EXACT, TIGHT, APPROXIMATE or BOUND

    @property
    def gamma(self) -> Floats:
        """(n,) A p_i^2 / w_i, what client i alone adds; 0 where it adds nothing."""
        out = np.zeros(len(self.w))
        some = self.w > 0
        out[some] = self.a * self.p[some] ** 2 / self.w[some]
        return out

    @property
    def unlike(self) -> float:
        """The bound for updates of length 1 that cancel out: A sum p_i^2 / w_i = sum gamma_i."""
        return float(self.gamma.sum())

    @property
    def alike(self) -> float:
        """The bound for updates of length 1 that are all the same: sum gamma_i - B."""
        return max(0.0, self.unlike - self.b)

    def bound(self, x: ArrayLike) -> float:
        """The right-hand side for updates x, (n, d) or (n,)."""
        rows = finite(x, "x", 1, 2)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if len(rows) != len(self.p):
            raise BadInput(f"'x' must have one row for each of {len(self.p)} clients.")
        step = self.p @ rows
        return float(self.gamma @ (rows**2).sum(axis=1)) - self.b * float(step @ step)


def constants(design: Design, *, importance: ArrayLike | None = None) -> Constants:
    """(A, B, w) of an unbiased design, from its covariance.

    - Where Cov_ij = -alpha p_i p_j for all pairs (alpha >= 0), Cov = diag(gamma) - alpha p p'
      with gamma_i = Var omega_i + alpha p_i^2. So B = alpha, A = 1 / sum_i (p_i^2 / gamma_i),
      w_i = A p_i^2 / gamma_i, and the inequality is an equality.
    - Elsewhere the shape of gamma is that of the design's own bound (of MD for clustered
      sampling), or the better one of Var omega_i + max(0, mean alpha) p_i^2 and p_i. For this
      shape, A and B are the pair with the smallest mean of `Constants.unlike` and
      `Constants.alike`, from the eigenvalues of the covariance: some updates reach the bound. Where
      the covariance itself is approximate, so are they.

    Parameters
    ----------
    design
        The law of a cohort.
    importance
        (n,) p, to check that the design is unbiased for it; by default the mean weights.

    >>> from fedcohort import Federation, scheme
    >>> clients = Federation.from_sizes([5, 4, 3, 2, 1])
    >>> md = constants(scheme("md", m=2).law(clients))
    >>> md.a, md.b, md.w.round(3).tolist(), md.how  # 1/m, 1/m, p
    (0.5, 0.5, [0.333, 0.267, 0.2, 0.133, 0.067], 'exact')
    >>> uniform = constants(scheme("uniform", m=2).law(clients))
    >>> round(uniform.a, 9), uniform.b, uniform.w.round(9).tolist()  # (n - m)/(m (n - 1)), 1/n
    (0.375, 0.375, [0.2, 0.2, 0.2, 0.2, 0.2])

    Reference: Tyurin, Sun, Burlachenko, Richtárik (2022), Sharper Rates and Flexible Framework
    for Nonconvex SGD with Client and Data Sampling, arXiv:2206.02275. The paper has (A, B, w) of
    a few samplings in a table; here they follow from the covariance of any.
    """
    p = design.mean()
    _check_unbiased(p, importance)
    if design.alpha is not None and design.alpha >= 0:
        gamma = design.variance() + design.alpha * p**2
        return _normalised(gamma, float(design.alpha), p, EXACT)
    own = design.covariance_bound()
    known = own is not None and own.alpha >= 0
    if design.n > DOMINANCE_LIMIT:
        if own is None or not known:
            raise TooLarge(
                f"The constants of {type(design).__name__} need the eigenvalues of its "
                f"covariance; {design.n} clients are more than {DOMINANCE_LIMIT}."
            )
        return _normalised(own.gamma, own.alpha, p, BOUND)
    if own is not None and known:
        shapes = [own.gamma]
    else:
        shapes = [design.variance() + max(0.0, covariance_ratio(design)) * p**2, p]
    covariance = design.covariance()
    best = min((_best(covariance, shape, p) for shape in shapes), key=lambda pair: pair.cost)
    how = TIGHT if design.second_moments == EXACT else APPROXIMATE
    return _normalised(best.gamma, best.b, p, how)


class _Pair(NamedTuple):
    """A shape of gamma, scaled, and the largest B that fits below it."""

    gamma: Floats
    b: float

    @property
    def cost(self) -> float:
        """The mean of `Constants.unlike` and `Constants.alike`."""
        return float(self.gamma.sum()) - self.b / 2.0


def _best(covariance: Floats, shape: Floats, p: Floats) -> _Pair:
    """Of all s and B with Cov <= s diag(shape) - B p p', those of the smallest cost.

    With K = G^(-1/2) Cov G^(-1/2), G = diag(shape), and q = G^(-1/2) p, the largest B for an s
    above all eigenvalues of K is 1 / (q' (s - K)^-1 q): increasing in s, and concave.
    """
    some = shape > SAME * shape.max(initial=0.0)
    if not np.any(some):
        return _Pair(0.0 * shape, 0.0)
    root, q = np.sqrt(shape[some]), p[some] / np.sqrt(shape[some])
    values, vectors = np.linalg.eigh(covariance[np.ix_(some, some)] / np.outer(root, root))
    largest = max(0.0, float(values[-1]))
    if largest == 0 or np.any(p[~some] > 0):  # B p p' would reach beyond what gamma covers
        return _Pair(largest * shape, 0.0)
    shares = (vectors.T @ q) ** 2
    top = values >= largest * (1.0 - SAME)
    held = float(shares[top].sum()) > SAME**2 * float(q @ q)  # p is in the way: B(largest) = 0
    shares[top] = shares[top] if held else 0.0
    if held and 2.0 * float(shape.sum()) * float(shares[top].sum()) >= 1.0:
        return _Pair(largest * shape, 0.0)

    def inverse(s: float, power: int) -> float:
        """Q' (s - K)^-power q."""
        some = shares > 0
        return float((shares[some] / (s - values[some]) ** power).sum())

    def rising(s: float) -> bool:
        """Whether a larger s costs more than its B is worth."""
        return float(shape.sum()) > inverse(s, 2) / inverse(s, 1) ** 2 / 2.0

    low = largest * (1.0 + (SAME if held else 0.0))
    if not rising(low):
        high = 2.0 * largest
        while not rising(high):
            high *= 2.0
        for _ in range(100):
            middle = (low + high) / 2.0
            low, high = (low, middle) if rising(middle) else (middle, high)
    return _Pair(low * shape, 1.0 / inverse(low, 1))


def _normalised(gamma: Floats, b: float, p: Floats, how: str) -> Constants:
    """A and w of gamma: w sums to 1 over the clients that vary."""
    some = gamma > SAME * p**2
    w = np.zeros(len(p))
    if not np.any(some):
        return Constants(0.0, 0.0, np.full(len(p), 1.0 / len(p)), p, how)
    w[some] = p[some] ** 2 / gamma[some]
    total = float(w.sum())
    return Constants(1.0 / total, b, w / total, p, how)


def _check_unbiased(mean: Floats, importance: ArrayLike | None) -> None:
    if importance is not None:
        p = as_floats(importance, "'importance' must be numbers")
        if p.shape != mean.shape or np.max(np.abs(p - mean), initial=0.0) > MEAN_TOLERANCE:
            raise BadInput(
                "The constants (A, B, w) are those of unbiased designs: the expected weights must "
                "be the importance. This design is biased."
            )
    elif abs(float(mean.sum()) - 1.0) > 1e-6:
        raise BadInput(
            "The constants (A, B, w) are those of unbiased designs; these weights sum to "
            f"{mean.sum():.6g} on average instead of 1."
        )
