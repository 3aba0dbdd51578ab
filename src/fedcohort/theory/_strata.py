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
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter, shown
from fedcohort._internal.parameters import is_whole
from fedcohort._internal.types import Array, Ints
from fedcohort.maths._groups import neyman_allocation, proportional_allocation
from fedcohort.theory._ranges import LARGEST, LARGEST_NUMBER

Number = Any
"""A float, or a Fraction where Fractions came in."""
Measure = Literal["contribution", "update"]


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
    importance: Number  # m draws with replacement, chances ~ the length, no strata
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
    x: ArrayLike,
    labels: ArrayLike,
    m: int,
    importance: ArrayLike | None = None,
    measure: Measure = "contribution",
) -> Theorem1:
    """All that Theorem 1 of HCSFed compares, for given updates and strata.

    The theorem orders them hybrid <= reallocated <= cluster <= random, "if 1/m_h, m_h/N_h and
    1/N are negligible", which they are in no experiment (m_h = 1 in most). What remains:

    - cluster <= random fails where strata are no better than chance (`gain_of_strata`), or
      where m N_h / N is far from whole; with k-means it held in nearly every population tried;
    - reallocated <= cluster always holds for the exact integer optimum of Neyman with the
      *true* standard deviations. Equation (5) has variances instead and, but for strata that
      do not vary at all, gains nothing (m_h not rounded);
    - hybrid <= reallocated fails often (38 of 210 populations tried), because hybrid draws with
      replacement and may take a client twice; it always holds against ``replaced``;
    - with the printed weights the error is mostly *bias*, and larger than all of these.

    ``importance`` is not part of the theorem: the last ingredient of hybrid, without strata.

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
    measure
        What lengths and standard deviations are those of: ``"contribution"``, z_i = N p_i x_i,
        the best that can be done and what the theorem needs; ``"update"``, x_i as the paper
        writes it and as the scheme `hcsfed` does by default (it has the same parameter, and a
        ``floor`` under the chances, which is 0 here). The same where all p are equal.

    >>> found = theorem_1([[1, 0], [0, 1], [-1, 0], [0, -1]], [0, 0, 1, 1], 3)
    >>> found.hybrid, found.reallocated, found.cluster  # equal lengths: nothing to prefer
    (0.1875, 0.125, 0.125)
    >>> found.steps  # and 3 draws cannot be shared by 2 strata as they should
    (False, True, False)
    """
    if measure not in get_args(Measure):
        raise BadParameter("measure", "theorem_1", f"one of {get_args(Measure)}", measure)
    z, groups = _population(x, labels, importance)
    sizes = np.bincount(groups)
    _check_draws(m, len(z), "theorem_1", low=len(sizes))
    measured = z if measure == "contribution" else _population(x, labels, None)[0]
    variances = [_variance(measured[mine]) for mine in _strata(groups)]
    neyman = neyman_allocation(sizes, [float(value) ** 0.5 for value in variances], m)
    lengths, nothing = _lengths(measured), np.ones(len(z), dtype=np.int64)
    return Theorem1(
        simple_random_variance(x, m, importance),
        hansen_hurwitz_variance(x, 0 * groups, [m], lengths, importance),
        stratified_variance(x, groups, proportional_allocation(sizes, m), importance),
        stratified_variance(x, groups, neyman, importance),
        hansen_hurwitz_variance(x, groups, neyman, nothing, importance),
        hansen_hurwitz_variance(x, groups, neyman, lengths, importance),
        printed_weights(x, groups, neyman, lengths, importance),
    )


def simple_random_variance(x: ArrayLike, m: int, importance: ArrayLike | None = None) -> Number:
    """(1/m - 1/N) S^2: m of N clients without replacement, weight (N / m) p_i.

    >>> simple_random_variance([0.0, 2.0, 4.0], 1)  # 8/3
    2.6666666666666665
    """
    n = len(_rows(x))
    _check_draws(m, n, "simple_random_variance")
    return stratified_variance(x, np.zeros(n, dtype=np.int64), [m], importance)


def stratified_variance(
    x: ArrayLike, labels: ArrayLike, draws: ArrayLike, importance: ArrayLike | None = None
) -> Number:
    """sum_h (N_h / N)^2 (1/m_h - 1/N_h) s_h^2: without replacement inside strata.

    >>> stratified_variance([0.0, 2.0, 10.0, 10.0], [0, 0, 1, 1], [1, 1])
    0.25
    """
    z, groups = _population(x, labels, importance)
    given = _draws(draws, groups, replacement=False)
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
    lengths = _numbers(norms, "norms", n)
    total: Number = 0
    for mine, m_h in zip(_strata(groups), given, strict=True):
        chances, some = _chances(lengths[mine]), z[mine]
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
    lengths = _numbers(norms, "norms", len(z))
    m = sum(given)
    mean, variance = z[0] * 0, z[0, 0] * 0
    for mine, m_h in zip(_strata(groups), given, strict=True):
        chances, some = _chances(lengths[mine])[:, None], z[mine]
        centre = (chances * some).sum(axis=0)
        mean = mean + m_h * centre / m
        variance = variance + m_h * (chances * (some - centre) ** 2).sum() / m**2
    return Bias(_plain(((mean - z.mean(axis=0)) ** 2).sum()), _plain(variance))


def gain_of_strata(
    x: ArrayLike, labels: ArrayLike, m: int, importance: ArrayLike | None = None
) -> Number:
    """V_random - V_cluster for m_h = m N_h / N exactly (whole or not); equation (7), corrected.

    (1 - m/N) / (m (N - 1)) [sum_h N_h ||W_h - W||^2 - (1/N) sum_h (N - N_h) s_h^2]: negative
    where strata differ less than chance would have it. The paper leaves the second sum out. One
    client alone gains nothing.

    >>> gain_of_strata([0.0, 2.0, 0.0, 2.0], [0, 0, 1, 1], 2)  # strata that are all alike
    -0.16666666666666666
    """
    z, groups = _population(x, labels, importance)
    n, centre = len(z), z.mean(axis=0)
    _check_draws(m, n, "gain_of_strata")
    total: Number = 0
    for mine in _strata(groups):
        apart = ((z[mine].mean(axis=0) - centre) ** 2).sum()
        total = total + len(mine) * apart - (n - len(mine)) * _variance(z[mine]) / n
    return _plain(total * (n - m) / (n * m * max(n - 1, 1)))


def _population(
    x: ArrayLike, labels: ArrayLike, importance: ArrayLike | None
) -> tuple[Array, Ints]:
    """The z (N, d), and the strata."""
    rows = _rows(x)
    n = len(rows)
    given = _numbers(labels, "labels", n)
    groups = given.astype(np.int64)
    if np.any(groups != given) or groups.max() >= n or not np.all(np.bincount(groups)):
        raise BadInput("'labels' must give every client a stratum 0, 1, ..., none of them empty.")
    if importance is None:
        return rows, groups
    p = _numbers(importance, "importance", n)
    if abs(float(p.sum()) - 1) > 1e-6:
        raise BadInput(f"'importance' must sum to 1; got {float(p.sum()):g}.")
    return rows * (p * n)[:, None], groups


def _rows(x: ArrayLike) -> Array:
    """(N, d) floats, or Fractions."""
    rows = _finite(x, "x")
    if rows.ndim not in (1, 2) or rows.size == 0:
        raise BadInput(f"'x' must be (N, d) or (N,), N and d >= 1; got shape {rows.shape}.")
    rows = rows if rows.dtype == object else rows.astype(np.float64)
    return rows[:, None] if rows.ndim == 1 else rows


def _numbers(values: ArrayLike, name: str, n: int) -> Array:
    """(n,) numbers >= 0, one for each client."""
    given = _finite(values, name)
    if given.shape != (n,):
        raise BadInput(f"'{name}' must have one number for each of {n} clients; got {given.shape}.")
    if np.any(given < 0):
        raise BadInput(f"'{name}' must not be negative; got {given.min()}.")
    return given


def _finite(values: ArrayLike, name: str) -> Array:
    """An array of real numbers, as exact as they came."""
    try:
        given = np.asarray(values)
        real = given.dtype.kind in "biufO"
        fine = real and np.all(np.abs(given.astype(np.float64)) <= LARGEST_NUMBER)  # NaN: no
    except (TypeError, ValueError, OverflowError):  # of unequal rows, or of no numbers
        fine = False
    if not fine:
        raise BadInput(f"'{name}' must be an array of real numbers without NaN or infinity.")
    return given


def _strata(groups: Ints) -> Iterator[Ints]:
    return (np.flatnonzero(groups == h) for h in range(int(groups.max()) + 1))


def _check_draws(m: int, n: int, owner: str, low: int = 1) -> None:
    if not is_whole(m) or not low <= m <= n:
        raise BadParameter("m", owner, f"an int in [{low}, {n}]", m)


def _draws(draws: ArrayLike, groups: Ints, replacement: bool = True) -> list[int]:
    """The m_h; without replacement no more than there are clients."""
    sizes = np.bincount(groups)
    given = _finite(draws, "draws")
    few = given.shape == sizes.shape and np.all((given >= 1) & (given <= LARGEST))
    if not few or np.any(given % 1 != 0):
        raise BadInput(
            f"'draws' must be an int of at least one for each stratum; got {shown(draws)}."
        )
    if not replacement and np.any(given > sizes):
        raise BadInput(
            f"'draws' must be at most the clients of each stratum, {shown(sizes.tolist())}, if "
            f"none is drawn twice; got {shown(draws)}."
        )
    return [int(m_h) for m_h in given]


def _variance(rows: Array) -> Number:
    """s^2, 0 for one client."""
    if len(rows) < 2:
        return rows[0, 0] * 0
    return ((rows - rows.mean(axis=0)) ** 2).sum() / (len(rows) - 1)


def _plain(value: Number) -> Number:
    return float(value) if isinstance(value, np.floating) else value


def _lengths(z: Array) -> Array:
    return np.array([float((row * row).sum()) ** 0.5 for row in z])


def _chances(lengths: Array) -> Array:
    """Chances of one stratum: in proportion to the lengths, equal if all are zero."""
    if not np.any(lengths):
        lengths = np.ones(len(lengths), dtype=np.int64)
    if lengths.dtype.kind in "iu":
        lengths = np.array([Fraction(int(value)) for value in lengths])
    chances: Array = lengths / lengths.sum()
    return chances
