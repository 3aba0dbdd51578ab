"""Probabilities of being drawn: given, of maximum entropy, by length, and how often.

Two questions of sampling without replacement:

- which probabilities make the estimate of a sum vary least (`minimal_variance_inclusion`);
- which probabilities drawing one client after the other really gives
  (`sequential_inclusion`): not m p_i, the mistake that makes many implementations biased.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlog1py, xlogy

Floats = NDArray[np.float64]

MOST_CLIENTS = 20
"""`sequential_inclusion` visits every subset of the clients; beyond this it takes too long."""


def minimal_variance_inclusion(norms: ArrayLike, m: float) -> Floats:
    """Inclusion probabilities of least variance for an expected cohort of m.

    Client i contributes u_i and takes part with probability q_i, independently of the others;
    sum u_i / q_i over the cohort estimates sum u_i. Its variance
    ``sum (1/q_i - 1) ||u_i||**2`` subject to ``sum q_i = m`` and ``q_i <= 1`` is least for::

        q_i = min(1, c ||u_i||),   c such that the q_i sum to m.

    The c largest norms are capped at 1 and the others share what is left in proportion to
    their norms; the number of capped clients is found exactly (water-filling) in O(n log n).

    A zero norm gets probability 0, since its contribution is known to be zero; a caller who
    only *guesses* the norms mixes in a floor, or the estimate is biased. If fewer than m norms
    are positive, all of these get 1 and the sum is their number instead of m. Equal norms get
    exactly equal probabilities, and the order of the clients does not matter.

    Parameters
    ----------
    norms
        ||u_i|| >= 0, times the importance p_i if the target is the weighted mean. # (n,)
    m
        Expected number of clients, 0 < m <= n; need not be an integer.

    Examples
    --------
    >>> minimal_variance_inclusion([1.0, 1.0, 10.0], 2)
    array([0.5, 0.5, 1. ])

    References
    ----------
    Chen, Horvath and Richtarik, "Optimal client sampling for federated learning", TMLR 2022,
    equation (7). A known library compares one index too far and returns 2 * 10 / 12 > 1 here.
    """
    values = np.array(norms, dtype=np.float64)  # (n,)
    if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"norms must be one row of finite numbers >= 0, got shape {values.shape}")
    if not 0 < m <= values.size:
        raise ValueError(f"m must be in (0, {values.size}], got {m}")
    # A power of two is an exact factor; this one keeps the sums of huge norms finite, and makes
    # zeros of nothing above 1e-304.
    values = np.ldexp(values, -64)
    if np.count_nonzero(values) <= m:
        return (values > 0).astype(np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    largest_first = values[order]
    most = int(np.ceil(m))  # at least one more client than can be capped
    tails = np.cumsum(largest_first[::-1])[::-1][:most]  # sums of the norms from c on
    left = m - np.arange(most)  # the budget once c clients are capped
    capped = int(np.argmax(left * largest_first[:most] <= tails))
    rest = largest_first[capped:]
    share = np.ones_like(largest_first)
    share[capped:] = np.minimum(1.0, (m - capped) * rest / rest.sum())
    inclusion = np.empty_like(share)
    inclusion[order] = share
    return inclusion


def sequential_inclusion(weights: Sequence[Any] | NDArray[Any], m: int) -> NDArray[Any]:
    """Exact inclusion probabilities of m draws, one after the other, without replacement.

    Each draw takes one of the clients that are left, with probability proportional to its
    weight; this is what ``Generator.choice(n, m, replace=False, p=p)`` does. The result is
    **not** m p_i. It is found from every subset that the first draws can leave, which is for
    few clients only: this is an oracle to test against.

    Weights that are Fractions or integers give exact Fractions (dtype object); floats, floats.

    >>> [str(q) for q in sequential_inclusion([1, 2, 3], 2)]
    ['5/12', '11/15', '17/20']
    """
    n = len(weights)
    if n > MOST_CLIENTS:
        raise ValueError(f"at most {MOST_CLIENTS} clients can be enumerated, got {n}")
    exact = not any(isinstance(weight, float | np.floating) for weight in weights)
    masses: list[Any] = [Fraction(weight) if exact else float(weight) for weight in weights]
    if not all(0 <= mass < float("inf") for mass in masses):
        raise ValueError(f"weights must be finite and >= 0, got {list(weights)}")
    candidates = [i for i in range(n) if masses[i] > 0]
    if not 0 <= m <= len(candidates):
        raise ValueError(f"cannot draw {m} of {len(candidates)} clients of positive weight")
    # reached[S]: the probability that the first |S| draws are S, in any order.
    reached: dict[frozenset[int], Any] = {frozenset(): Fraction(1) if exact else 1.0}
    for size in range(1, m + 1):
        reached = {
            chosen: sum(_last_drawn(reached, masses, candidates, chosen, i) for i in chosen)
            for chosen in map(frozenset, combinations(candidates, size))
        }
    zero = Fraction(0) if exact else 0.0
    inclusion = [sum((p for chosen, p in reached.items() if i in chosen), zero) for i in range(n)]
    return np.array(inclusion, dtype=object if exact else np.float64)


def _last_drawn(
    reached: dict[frozenset[int], Any],
    masses: list[Any],
    candidates: list[int],
    chosen: frozenset[int],
    i: int,
) -> Any:
    """The probability that the draws so far are ``chosen`` and ``i`` came last."""
    before = chosen - {i}
    return reached[before] * masses[i] / sum(masses[j] for j in candidates if j not in before)


# Weights of conditional Poisson sampling that give the chances that are wanted.
#
# Poisson sampling with odds w_i, given that k units come, has the law P(S) ~ prod_{i in S} w_i:
# of all laws of k units with its chances the one of most entropy (Chen, Dempster and Liu, 1994).


STEPS = 200
"""Most steps towards the weights; ten or so are taken."""
LONGEST = 16.0
"""A weight changes by no more than this factor in a step."""
CLOSE = 1e-13
"""Chances that are as near as this to those wanted will do."""


def numbers_from(chances: Floats, k: int) -> Floats:
    """(n + 1, k + 1) the probability that r of the independent units i, i + 1, ... come.

    >>> numbers_from(np.array([0.5, 0.5]), 2)[0]
    array([0.25, 0.5 , 0.25])
    """
    out = np.zeros((len(chances) + 1, k + 1))
    out[-1, 0] = 1.0
    for i in range(len(chances) - 1, -1, -1):
        out[i] = (1.0 - chances[i]) * out[i + 1]
        out[i, 1:] += chances[i] * out[i + 1, :-1]
    return out


def inclusion_of(weights: Floats, k: int) -> Floats:
    """(n,) the chances of conditional Poisson sampling of k units with these weights (odds).

    >>> inclusion_of(np.array([1.0, 1.0, 2.0]), 2).round(6)
    array([0.6, 0.6, 0.8])
    """
    chances = weights / (1.0 + weights)
    after = numbers_from(chances, k)
    out, state = np.zeros(len(weights)), np.zeros(k + 1)  # how many are still to come
    state[k] = 1.0
    for i, chance in enumerate(chances.tolist()):
        takes = np.zeros(k + 1)
        takes[1:] = np.divide(
            chance * after[i + 1, :-1], after[i, 1:], out=np.zeros(k), where=after[i, 1:] > 0
        )
        moved = state * takes
        out[i] = moved.sum()
        state = state - moved
        state[:-1] += moved[1:]
    return out


def weights_for(inclusion: Floats, k: int) -> Floats:
    """(n,) weights whose conditional Poisson law has these chances in (0, 1), which sum to k.

    They are found up to a common factor, with which about k units would come by themselves.

    >>> found = weights_for(np.array([0.6, 0.6, 0.8]), 2)
    >>> (found / found[0]).round(6)
    array([1., 1., 2.])
    """
    odds = inclusion / (1.0 - inclusion)
    weights = odds.copy()
    for _ in range(STEPS):
        found = inclusion_of(weights, k)
        if np.abs(found - inclusion).max() < CLOSE:
            break
        # Odds for odds, a little less: of equal units a step of Newton's method. A long step is
        # cut, since from far away it leads nowhere.
        found = np.clip(found, 1e-300, 1.0 - 1e-16)
        step = (odds * (1.0 - found) / found) ** ((len(odds) - 1) / len(odds))
        weights *= np.clip(step, 1.0 / LONGEST, LONGEST)
    return weights


# How long the features of clients are, and what chances follow from that.
#
# Features are what clients say, and some may lie: a length far beyond the others would have its
# client drawn in every round. So lengths are capped.


Bools = NDArray[np.bool_]
Rows = NDArray[Any]  # float32 or float64


def lengths(rows: Rows) -> Floats:
    """The Euclidean length of each row, in float64. # (k, d) -> (k,)."""
    squares: Floats = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return np.sqrt(squares)


def capped(rows: Rows, cap: float | None) -> Rows:
    """Rows longer than ``cap`` times the median cut to that length. # (k, d) -> (k, d).

    The median is over rows that are not zero; None cuts nothing.

    >>> capped(np.array([[0.0, 1.0], [3.0, 4.0], [0.0, 900.0], [0.0, 0.0]]), 10.0)
    array([[ 0.,  1.],
           [ 3.,  4.],
           [ 0., 50.],
           [ 0.,  0.]])
    """
    norms = lengths(rows)
    some = norms[norms > 0]
    if cap is None or some.size == 0:
        return rows
    longest = cap * float(np.median(some))
    if norms.max() <= longest:
        return rows
    return (rows * shortening(norms, longest)[:, None]).astype(rows.dtype)


def shortening(norms: Floats, longest: float) -> Floats:
    """What rows of these lengths are multiplied with so that none is longer. # (k,) -> (k,).

    >>> shortening(np.array([1.0, 0.0, 4.0]), 2.0)
    array([1. , 1. , 0.5])
    """
    return np.asarray(longest / np.maximum(norms, longest))


def guessed_lengths(rows: Rows, known: Bools) -> Floats:
    """The length of each row; for a row that is not known, the mean of the others. # -> (k,).

    1 if none is known.
    """
    norms = lengths(rows)
    guess = float(norms[known].mean()) if known.any() else 1.0
    return np.where(known, norms, guess)


def relative(parts: ArrayLike) -> Floats:
    """Positive numbers divided by their mean; exactly 1 where all are the same. # (k,) -> (k,).

    >>> relative([3, 1, 2])
    array([1.5, 0.5, 1. ])
    """
    values = np.asarray(parts, dtype=np.float64)
    values = values / values.max()
    scaled: Floats = values / values.mean()
    return scaled


def chances_by_length(norms: Floats, floor: float) -> Floats:
    """Chances in proportion to lengths, but for a part that is shared equally. # (k,) -> (k,).

    All lengths zero: equal chances.

    >>> chances_by_length(np.array([3.0, 1.0]), 0.2)
    array([0.7, 0.3])
    """
    total = float(norms.sum())
    equal = np.full(len(norms), 1.0 / len(norms))
    return equal if total == 0 else floor * equal + (1 - floor) * norms / total


# How often clients are drawn, and what the others weigh.


UNLIKELY = 1e-18
"""Numbers of draws that are less likely than this are left out of a law."""


def largest_of_others(weight: Floats, possible: NDArray[Any]) -> Floats:
    """(n,) the largest weight among the other clients that can be drawn.

    >>> largest_of_others(np.array([1.0, 5.0, 2.0, 9.0]), np.array([1, 1, 1, 0]))
    array([5., 2., 5., 5.])
    """
    weight = np.where(possible > 0, weight, 0.0)
    if len(weight) < 2:
        return np.zeros(len(weight))
    second, first = np.sort(weight)[-2:]
    out = np.full(len(weight), first)
    out[int(np.argmax(weight))] = second
    return out


def count_tails(chances: Floats, repeats: int) -> Floats:
    """(n, k) P(c >= 1), ..., P(c >= k) of sums of binomial counts.

    ``chances`` (n, r): client i is drawn with each of its r chances ``repeats`` times,
    independently. Numbers of draws with a chance below 1e-18 for all clients are left out.

    >>> count_tails(np.array([[0.5, 0.0], [0.5, 1.0]]), 1)
    array([[0.5, 0. ],
           [1. , 0.5]])
    """
    most = repeats * int((chances > 0).sum(axis=1).max(initial=1))
    mean = float(repeats * chances.sum(axis=1).max(initial=0.0))
    kept = _enough(mean, most)
    counts = np.zeros((len(chances), kept + 1))  # the chance of 0, 1, ..., kept draws
    numbers = np.arange(min(repeats, kept) + 1)
    counts[:, numbers] = _binomial(numbers, repeats, chances[:, :1])
    for column in chances.T[1:]:
        some = column > 0
        one = _binomial(numbers, repeats, column[some, None])  # (s, numbers)
        old, new = counts[some], np.zeros((int(some.sum()), kept + 1))
        for number in numbers:
            new[:, number:] += one[:, number, None] * old[:, : kept + 1 - number]
        counts[some] = new
    tails: Floats = np.minimum(1.0, np.cumsum(counts[:, :0:-1], axis=1)[:, ::-1])
    return tails


def _binomial(numbers: NDArray[Any], repeats: int, chances: Floats) -> Floats:
    """(n, k) chances of so many draws; scipy.stats has it too, but takes its time to import."""
    ways = gammaln(repeats + 1) - gammaln(numbers + 1) - gammaln(repeats - numbers + 1)
    log = ways + xlogy(numbers, chances) + xlog1py(repeats - numbers, -chances)
    return np.asarray(np.exp(np.minimum(log, 0.0)))


def _enough(mean: float, most: int) -> int:
    """The first number of draws whose chance is below 1e-18 by Chernoff's bound, or all."""
    number = max(1, int(np.ceil(mean)))
    if mean == 0:
        return number
    while number < most and number - mean + number * np.log(mean / number) > np.log(UNLIKELY):
        number += 1
    return number
