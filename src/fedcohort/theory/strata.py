"""How much stratified cohorts vary: Theorem 1 of HCSFed, computed instead of bounded.

All clients together would give sum_i p_i x_i. With z_i = N p_i x_i this is the mean of the z,
and the four ways of HCSFed to estimate it from m of N clients have exact variances. All
functions work on floats and, exactly, on Fractions.

Notation: N_h clients and m_h draws in stratum h, mean W_h and variance
s_h^2 = sum ||z_i - W_h||^2 / (N_h - 1), W and S^2 those of all clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedcohort.core.errors import BadInput
from fedcohort.core.types import Array, Ints
from fedcohort.maths.allocation import neyman_allocation, proportional_allocation

Number = Any
"""A float, or a Fraction where Fractions came in."""


class Bias(NamedTuple):
    """What a biased estimate is wrong by."""

    squared_bias: Number
    variance: Number

    @property
    def error(self) -> Number:
        """The expected squared error."""
        return self.squared_bias + self.variance


class Theorem1(NamedTuple):
    """The variances that Theorem 1 of HCSFed puts in order, for one population."""

    random: Number  # m clients at random, without replacement
    cluster: Number  # strata, m_h ~ N_h, without replacement
    reallocated: Number  # strata, Neyman's m_h, without replacement
    replaced: Number  # the same with replacement: what its proof compares the next one with
    hybrid: Number  # strata, Neyman's m_h, with replacement and chances ~ the length
    printed: Bias  # the same draws with the weights that are printed, N / m p_i

    @property
    def steps(self) -> tuple[bool, bool, bool]:
        """Which of hybrid <= reallocated, reallocated <= cluster, cluster <= random hold."""
        return (
            bool(self.hybrid <= self.reallocated),
            bool(self.reallocated <= self.cluster),
            bool(self.cluster <= self.random),
        )

    @property
    def holds(self) -> bool:
        """Whether the theorem does, for this population."""
        return all(self.steps)


def theorem_1(
    x: ArrayLike, labels: ArrayLike, m: int, importance: ArrayLike | None = None
) -> Theorem1:
    """All that Theorem 1 of HCSFed compares, for given updates and strata.

    The theorem orders them hybrid <= reallocated <= cluster <= random, "if 1/m_h, m_h/N_h and
    1/N are negligible", which they are in no experiment (m_h = 1 in most). What remains:

    - cluster <= random fails where strata are no better than chance (`gain_of_strata`), or
      where m N_h / N is far from whole; with k-means it held in nearly every population tried;
    - reallocated <= cluster always holds for the exact integer optimum of Neyman with the
      *true* standard deviations. Equation (5) has variances instead and gains nothing;
    - hybrid <= reallocated fails often (38 of 210 populations tried), because hybrid draws with
      replacement and may take a client twice; it always holds against ``replaced``;
    - with the printed weights the error is mostly *bias*, and larger than all of these.

    Parameters
    ----------
    x
        (N, d) or (N,) the updates.
    labels
        (N,) strata 0, 1, ..., none empty.
    m
        Draws, at least one for each stratum, at most N.
    importance
        (N,) p; equal by default.

    >>> found = theorem_1([[1, 0], [0, 1], [-1, 0], [0, -1]], [0, 0, 1, 1], 3)
    >>> found.hybrid, found.reallocated, found.cluster  # equal lengths: nothing to prefer
    (0.1875, 0.125, 0.125)
    >>> found.steps  # and 3 draws cannot be shared by 2 strata as they should
    (False, True, False)
    """
    z, groups = _population(x, labels, importance)
    sizes = np.bincount(groups)
    variances = np.array([_variance(z[mine]) for mine in _strata(groups)])
    deviations = np.array([float(value) ** 0.5 for value in variances])
    neyman = neyman_allocation(sizes, deviations, m)
    lengths = _lengths(z)
    return Theorem1(
        simple_random_variance(x, m, importance),
        stratified_variance(x, groups, proportional_allocation(sizes, m), importance),
        stratified_variance(x, groups, neyman, importance),
        hansen_hurwitz_variance(x, groups, neyman, np.ones(len(z), dtype=np.int64), importance),
        hansen_hurwitz_variance(x, groups, neyman, lengths, importance),
        printed_weights(x, groups, neyman, lengths, importance),
    )


def simple_random_variance(x: ArrayLike, m: int, importance: ArrayLike | None = None) -> Number:
    """(1/m - 1/N) S^2: m of N clients without replacement, weight (N / m) p_i.

    >>> simple_random_variance([0.0, 2.0, 4.0], 1)  # 8/3
    2.6666666666666665
    """
    n = len(np.asarray(x))
    return stratified_variance(x, np.zeros(n, dtype=np.int64), [m], importance)


def stratified_variance(
    x: ArrayLike, labels: ArrayLike, draws: ArrayLike, importance: ArrayLike | None = None
) -> Number:
    """sum_h (N_h / N)^2 (1/m_h - 1/N_h) s_h^2: without replacement inside strata.

    >>> stratified_variance([0.0, 2.0, 10.0, 10.0], [0, 0, 1, 1], [1, 1])
    0.25
    """
    z, groups = _population(x, labels, importance)
    given = _draws(draws, groups)
    total: Number = 0
    for mine, m_h in zip(_strata(groups), given, strict=True):
        # (N_h / N)^2 (1/m_h - 1/N_h), over one denominator: exact for Fractions.
        factor = len(mine) * (len(mine) - m_h) * _variance(z[mine])
        total = total + factor / (m_h * len(z) ** 2)
    return _plain(total)


def hansen_hurwitz_variance(
    x: ArrayLike,
    labels: ArrayLike,
    draws: ArrayLike,
    norms: ArrayLike,
    importance: ArrayLike | None = None,
) -> Number:
    """m_h draws with replacement, chances q_i ~ norms inside strata, weight p_i / (m_h q_i).

    sum_h 1/(m_h N^2) [sum_i ||z_i||^2 / q_i - ||N_h W_h||^2]. Equation (9) of HCSFed is one
    stratum and one draw of it.

    >>> hansen_hurwitz_variance([1.0, 3.0], [0, 0], [1], [1, 3])  # chances ~ lengths: no variance
    0.0
    """
    z, groups = _population(x, labels, importance)
    given, n = _draws(draws, groups), len(z)
    total: Number = 0
    for mine, m_h in zip(_strata(groups), given, strict=True):
        chances, some = _chances(norms, mine), z[mine]
        squares = (some * some).sum(axis=1)
        moving = squares != 0  # a client that moves nothing need not be drawn
        if any(chances[moving] == 0):
            raise BadInput("A client with an update needs a positive norm, or it is never drawn.")
        first = (squares[moving] / chances[moving]).sum()
        second = (some.sum(axis=0) ** 2).sum()
        total = total + (first - second) / (m_h * n**2)
    return _plain(total)


def printed_weights(
    x: ArrayLike,
    labels: ArrayLike,
    draws: ArrayLike,
    norms: ArrayLike,
    importance: ArrayLike | None = None,
) -> Bias:
    """The same draws with weight (N / m) p_i, as Algorithm 2 of HCSFed prints it in line 15.

    The mean is (1/m) sum_h m_h sum_i q_i z_i, which is the wanted mean only if every client is
    drawn m / N times on average.

    >>> printed_weights([4.0, 0.0], [0, 1], [1, 1], [1, 1])
    Bias(squared_bias=0.0, variance=0.0)
    >>> printed_weights([Fraction(4), Fraction(1)], [0, 0], [1], [4, 1])  # mean 17/5, not 5/2
    Bias(squared_bias=Fraction(81, 100), variance=Fraction(36, 25))
    """
    z, groups = _population(x, labels, importance)
    given = _draws(draws, groups)
    m = sum(given)
    mean, variance = z[0] * 0, z[0, 0] * 0
    for mine, m_h in zip(_strata(groups), given, strict=True):
        chances, some = _chances(norms, mine)[:, None], z[mine]
        centre = (chances * some).sum(axis=0)
        mean = mean + m_h * centre / m
        variance = variance + m_h * (chances * (some - centre) ** 2).sum() / m**2
    return Bias(_plain(((mean - z.mean(axis=0)) ** 2).sum()), _plain(variance))


def gain_of_strata(
    x: ArrayLike, labels: ArrayLike, m: int, importance: ArrayLike | None = None
) -> Number:
    """V_random - V_cluster for m_h = m N_h / N exactly (whole or not); equation (7), corrected.

    (1 - m/N) / (m (N - 1)) [sum_h N_h ||W_h - W||^2 - (1/N) sum_h (N - N_h) s_h^2]: negative
    where strata differ less than chance would have it. The paper leaves the second sum out.

    >>> gain_of_strata([0.0, 2.0, 0.0, 2.0], [0, 0, 1, 1], 2)  # strata that are all alike
    -0.16666666666666666
    """
    z, groups = _population(x, labels, importance)
    n, centre = len(z), z.mean(axis=0)
    total: Number = 0
    for mine in _strata(groups):
        apart = ((z[mine].mean(axis=0) - centre) ** 2).sum()
        total = total + len(mine) * apart - (n - len(mine)) * _variance(z[mine]) / n
    return _plain(total * (n - m) / (n * m * (n - 1)))


def _population(
    x: ArrayLike, labels: ArrayLike, importance: ArrayLike | None
) -> tuple[Array, Ints]:
    """The z (N, d), and the strata."""
    rows = np.asarray(x)
    rows = rows if rows.dtype == object else rows.astype(np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    groups = np.asarray(labels, dtype=np.int64)
    if groups.shape != (len(rows),) or not np.all(np.bincount(groups)):
        raise BadInput("'labels' must give every client a stratum 0, 1, ..., none of them empty.")
    if importance is None:
        return rows, groups
    return rows * (np.asarray(importance) * len(rows))[:, None], groups


def _strata(groups: Ints) -> Iterator[Ints]:
    return (np.flatnonzero(groups == h) for h in range(int(groups.max()) + 1))


def _draws(draws: ArrayLike, groups: Ints) -> list[int]:
    given = [int(m_h) for m_h in np.asarray(draws)]
    if len(given) != int(groups.max()) + 1 or min(given) < 1:
        raise BadInput(f"'draws' must be at least one for each stratum; got {given}.")
    return given


def _variance(rows: Array) -> Number:
    """s^2, 0 for one client."""
    if len(rows) < 2:
        return rows[0, 0] * 0
    return ((rows - rows.mean(axis=0)) ** 2).sum() / (len(rows) - 1)


def _plain(value: Number) -> Number:
    return float(value) if isinstance(value, np.floating) else value


def _lengths(z: Array) -> Array:
    return np.array([float((row * row).sum()) ** 0.5 for row in z])


def _chances(norms: ArrayLike, mine: Ints) -> Array:
    """Chances of one stratum: in proportion to the norms, equal if all are zero."""
    some = np.asarray(norms)[mine]
    if not np.any(some):
        some = np.ones(len(mine), dtype=np.int64)
    if some.dtype.kind in "iu":
        some = np.array([Fraction(int(value)) for value in some])
    chances: Array = some / some.sum()
    return chances
