"""Moments of weights: exact, enumerated, by simulation; constants and closed forms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter, TooLarge
from fedcohort._internal.parameters import Real, Whole, within_ranges
from fedcohort._internal.types import Array, Bools, Floats, Ints, as_floats
from fedcohort.designs import Bernoulli, Everyone, Rows, Simple, Stratified
from fedcohort.maths._draws import coins, pick
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Design, Distinct
from fedcohort.theory._convergence import MEAN_TOLERANCE
from fedcohort.theory._decomposition import covariance_ratio
from fedcohort.theory._ranges import COUNT, finite

# What the weights of a design do on average, and how much they vary.


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


# Which of two designs is better, and from when on.

TOLERANCE = 1e-12
"""Differences below this, relative to the larger value, count as equal."""
DOMINANCE_LIMIT = 2_000
"""Above this many clients no eigenvalues are computed."""
CLIENTS = Whole(2, COUNT.high)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two designs side by side.

    ``better`` is 0 or 1 where one design has the smaller or equal Sigma *and* gamma (then its
    bound of Theorem 2 is smaller), else None. ``dominates`` says more: that design has the
    smaller variance of the aggregate whatever the updates are; None where n is too large to
    find out, or where neither does.
    """

    moments: tuple[Moments, Moments]
    sigma_ratio: float  # of the second to the first
    gamma_ratio: float | None
    better: int | None
    dominates: int | None


def compare_designs(first: Design, second: Design, *, dominance: bool = True) -> Comparison:
    """Which of two designs of the same federation has smaller Sigma and gamma (Corollary 1).

    A design without a covariance ratio (clustered sampling) has no gamma; it is then compared
    by Sigma alone, and by dominance.

    Dominance: E||sum omega_i x_i - mean||^2 = tr(X' Cov X), so one design is at least as good
    as another for *every* set of updates exactly when the difference of the covariances has
    no negative eigenvalue. Clustered sampling always dominates MD (Lemma 2); uniform sampling
    never does while its weight sum varies, as equal updates show.

    >>> from fedcohort import Federation, scheme
    >>> equal = Federation.from_sizes([1] * 6)
    >>> found = compare_designs(scheme("uniform", m=3).law(equal), scheme("md", m=3).law(equal))
    >>> found.better, found.dominates, round(found.sigma_ratio, 6)
    (0, 0, 1.666667)
    """
    if first.n != second.n:
        raise BadInput(
            f"Two designs are compared on the same clients; got {first.n} and {second.n}."
        )
    one, two = moments(first), moments(second)
    signs = [_sign(one.sigma, two.sigma)]
    gamma_ratio = None
    if one.gamma is not None and two.gamma is not None:
        signs.append(_sign(one.gamma, two.gamma))
        gamma_ratio = _ratio(two.gamma, one.gamma)
    better = 0 if max(signs) <= 0 else 1 if min(signs) >= 0 else None
    return Comparison(
        (one, two),
        _ratio(two.sigma, one.sigma),
        gamma_ratio,
        better,
        dominating(first, second) if dominance and first.n <= DOMINANCE_LIMIT else None,
    )


def dominating(first: Design, second: Design) -> int | None:
    """0 if the first has no more variance than the second for all updates, 1 if so the other."""
    values = np.linalg.eigvalsh(second.covariance() - first.covariance())
    slack = TOLERANCE * first.n * max(1e-300, float(np.abs(values).max(initial=0.0)))
    slack = max(slack, 1e-15)
    if values.min() >= -slack:
        return 0
    return 1 if values.max() <= slack else None


class Threshold(NamedTuple):
    """Largest sum p^2 for which uniform is at least as good as MD, by Sigma and by gamma."""

    sigma: float
    gamma: float


@within_ranges
def uniform_or_md(n: Annotated[int, CLIENTS], m: Annotated[int, COUNT]) -> Threshold:
    """Corollary 1: below which sum p^2 uniform sampling beats MD sampling.

    Sigma_U <= Sigma_MD iff sum p^2 <= 1/(n - m + 1), gamma_U <= gamma_MD iff
    sum p^2 <= (n - 1)/(n (n - m)); the first is the smaller one, so it decides. As sum p^2 is
    at least 1/n, equal sizes are always below; sum p^2 = 1/n + Var(n_i)/(n mean^2) measures how
    unequal sizes are.

    Where we differ: (144) and (147) are printed with the inequality the wrong way round.

    >>> uniform_or_md(10, 5).sigma == 1 / 6
    True
    """
    _check(n, m)
    return Threshold(1.0 / (n - m + 1), inf if m == n else (n - 1) / (n * (n - m)))


@within_ranges
def crossing_share(n: Annotated[int, CLIENTS], m: Annotated[int, COUNT]) -> float:
    """The share r of one client, the others being equal, at which uniform and MD cross.

    p_1 = r and p_i = (1 - r)/(n - 1) give sum p^2 = r^2 + (1 - r)^2/(n - 1); it passes
    1/(n - m + 1) at r = (1 + sqrt((n - 1)(n/(n - m + 1) - 1))) / n. Up to there uniform has the
    smaller Sigma and gamma, beyond it MD has the smaller Sigma.

    >>> round(crossing_share(10, 5), 5)
    0.34495
    """
    _check(n, m)
    return min(1.0, (1.0 + sqrt((n - 1) * (n * uniform_or_md(n, m).sigma - 1.0))) / n)


class ClosedForm(NamedTuple):
    """Sigma, alpha, gamma and Var(sum omega) of a scheme."""

    sigma: float
    alpha: float
    gamma: float
    weight_sum_variance: float


@within_ranges
def closed_forms(
    n: Annotated[int, CLIENTS], m: Annotated[int, COUNT], sum_squares: Annotated[float, Real(0, 1)]
) -> dict[str, ClosedForm]:
    """Table 1 as functions of n, m and s = sum p^2 alone, for drawing (Corollary 1 at large).

    >>> forms = closed_forms(5, 2, 11 / 45)
    >>> round(forms["md"].sigma, 6), round(forms["uniform"].gamma, 6)  # 17/45, 11/24
    (0.377778, 0.458333)
    """
    _check(n, m)
    s = sum_squares
    if s < 1 / n - TOLERANCE:
        raise BadParameter("sum_squares", "closed_forms", f"in [1/n, 1] = [{1 / n:.4g}, 1]", s)
    alpha_uniform = (n - m) / (m * (n - 1)) if n > 1 else 0.0
    raw = {
        "full": (0.0, 0.0),
        "md": ((1.0 - s) / m, 1.0 / m),
        "uniform": ((n / m - 1.0) * s, alpha_uniform),
        "binomial": ((n / m - 1.0) * s, 0.0),
        "poisson": (1.0 / m - s, 0.0),
    }
    return {
        name: ClosedForm(sigma, alpha, sigma + alpha * s, sigma - alpha * (1.0 - s))
        for name, (sigma, alpha) in raw.items()
        if sigma >= -TOLERANCE  # Poisson needs m p_i <= 1, hence m s <= 1
    }


def _check(n: int, m: int) -> None:
    if m > n:
        raise BadParameter("m", "this comparison", f"an int in [1, {n}]", m)


def _sign(one: float, two: float) -> int:
    if abs(one - two) <= TOLERANCE * max(abs(one), abs(two)):
        return 0
    return -1 if one < two else 1


def _ratio(numerator: float, denominator: float) -> float:
    if denominator == 0:
        return 1.0 if numerator == 0 else inf
    return numerator / denominator


# Three constants (A, B, w) that say what a design costs, whatever the updates are.
#
# Tyurin, Sun, Burlachenko and Richtárik (2022) analyse every unbiased sampling at once by one
# inequality, the weighted AB inequality. For clients that count alike it reads
#
#     E||S(a) - abar||^2 <= (A/n) sum_i ||a_i||^2 / (n w_i) - B ||abar||^2,   abar = (1/n) sum a_i,
#
# with A, B >= 0 and weights w >= 0 that sum to 1. Clients of importance p are the case
# a_i = n p_i x_i:
#
#     E||sum omega_i x_i - sum p_i x_i||^2 <= A sum_i p_i^2 ||x_i||^2 / w_i - B ||sum p_i x_i||^2.
#
# For all x at once this is a statement about the covariance of the weights alone,
#
#     Cov <= diag(gamma) - B p p',    gamma_i = A p_i^2 / w_i
#
# (the difference has no negative eigenvalue), which is what is computed here.

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


# Many cohorts of a design at once: the Monte-Carlo twin of every formula here.
#
# `Design.draw` makes one cohort, as a server would. A check by simulation wants 100,000; this
# draws the same law as one matrix of weights.

WEIGHT_LIMIT = 200_000_000
"""Above this many weights (rounds x clients) nothing is drawn."""


@within_ranges
def drawn_weights(
    design: Design, rounds: Annotated[int, Whole(0, COUNT.high)], rng: np.random.Generator
) -> Floats:
    """(rounds, n) the weights of independent cohorts; a client that was not drawn has 0.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=2).law(Federation.from_sizes([6, 3, 1]))
    >>> drawn_weights(md, 3, np.random.Generator(np.random.Philox(1))).sum(axis=1)
    array([1., 1., 1.])
    """
    if rounds * design.n > WEIGHT_LIMIT:
        raise TooLarge(
            f"{rounds} rounds of {design.n} clients are {rounds * design.n:.1e} weights; "
            f"draw at most {WEIGHT_LIMIT:.0e} at once."
        )
    match design:
        case Everyone():
            return np.tile(design.value, (rounds, 1))
        case Rows():
            return _counts(design, rounds, rng) * design.value
        case Simple():
            return _chosen(design, rounds, rng) * design.value
        case Bernoulli():
            shown = coins(rng, np.tile(design.parts, rounds), design.whole)
            return shown.reshape(rounds, design.n) * design.value
        case Stratified():
            return _by_stratum(design, rounds, rng)
        case _:
            return one_by_one(design, rounds, rng)


class Estimate(NamedTuple):
    """A variance found by drawing cohorts, with its 95 % interval."""

    variance: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return (
            f"Monte Carlo, {self.rounds} cohorts: between {self.low:.3g} and {self.high:.3g} (95 %)"
        )


def estimated_variance(design: Design, x: Floats, rounds: int, rng: Any) -> Estimate:
    """E ||sum_i omega_i x_i - E(...)||^2 where no formula gives it: a mean over cohorts. # (n, d).

    The mean of the sum is known exactly, so the squared distances are independent and their mean
    is unbiased.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=2).law(Federation.from_sizes([1, 1]))
    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> estimated_variance(md, np.array([[1.0], [-1.0]]), 400, rng).low < 0.5
    True
    """
    centre = design.mean() @ x
    squares = np.empty(rounds)
    for number in range(rounds):
        cohort = design.draw(rng)
        squares[number] = np.sum((cohort.weights @ x[cohort.clients] - centre) ** 2)
    mean, error = float(squares.mean()), float(squares.std(ddof=1)) / rounds**0.5
    return Estimate(mean, max(0.0, mean - 1.96 * error), mean + 1.96 * error, rounds)


def one_by_one(design: Design, rounds: int, rng: Any) -> Floats:
    """The slow, obvious twin of `drawn_weights`: one `Design.draw` after the other."""
    out = np.zeros((rounds, design.n))
    for row in out:
        cohort = design.draw(rng)
        row[cohort.clients] = cohort.weights
    return out


def _counts(design: Rows, rounds: int, rng: np.random.Generator) -> Ints:
    """(rounds, n) how often each client is drawn."""
    rows = np.tile(np.repeat(np.arange(design.rows), design.repeats), rounds)
    segments = pick(rng, design.cumulative, design.width, rows)
    clients = segments if design.clients is None else design.clients[segments]
    cells = np.repeat(np.arange(rounds), design.draws) * design.n + clients
    return np.bincount(cells, minlength=rounds * design.n).reshape(rounds, design.n)


def _chosen(design: Simple, rounds: int, rng: np.random.Generator) -> Bools:
    """(rounds, n) who is chosen: the m smallest of as many random words as there are clients."""
    total = len(design.support)
    out = np.zeros((rounds, design.n), dtype=bool)
    if design.m >= total:
        out[:, design.support] = True
        return out
    words = rng.bit_generator.random_raw(rounds * total).reshape(rounds, total)
    smallest = np.argpartition(words, design.m, axis=1)[:, : design.m]
    np.put_along_axis(out, design.support[smallest], True, axis=1)
    return out


def _by_stratum(design: Stratified, rounds: int, rng: np.random.Generator) -> Floats:
    out = np.zeros((rounds, design.n))
    for positions, part, scale in zip(design.strata, design.parts, design.scale, strict=True):
        out[:, positions] = float(scale) * drawn_weights(part, rounds, rng)
    return out
