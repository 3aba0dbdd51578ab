"""Which of two designs is better, and from when on."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated, NamedTuple

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Real, Whole, within_ranges
from fedcohort.selection._design import Design
from fedcohort.theory.moments import Moments, moments
from fedcohort.theory.ranges import COUNT

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
    n: Annotated[int, CLIENTS],
    m: Annotated[int, COUNT],
    sum_squares: Annotated[float, Real(0, 1)],
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
