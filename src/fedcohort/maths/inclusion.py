"""Probabilities of being included in a cohort.

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
