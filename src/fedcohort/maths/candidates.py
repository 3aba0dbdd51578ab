"""Lists of candidates, one for each of a few groups of clients.

The common part of Giunta's clustered Power-of-Choice (thesis 2024, Section 3.3): z candidates
from each group taken, short lists filled from outside. Clients and groups are positions and
numbers; ``labels`` (n,) says which group a client belongs to, ``here`` which clients there are,
ascending.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedcohort.maths.choice import top, weighted_without_replacement
from fedcohort.maths.draws import Ints, Rng, distinct, permutation

Floats: TypeAlias = NDArray[np.float64]
Array: TypeAlias = NDArray[Any]
Take: TypeAlias = Callable[[Ints, int], Ints]
"""(pool, k) -> k distinct members of the pool, or all of it; none for k <= 0."""


def by_weight(rng: Rng, weights: Array) -> Take:
    """Draw one after another in proportion to weights (n,); those of weight 0 last, uniformly.

    >>> by_weight(np.random.default_rng(0), np.array([0, 5, 0, 1]))(np.arange(4), 2)
    array([1, 3])
    """

    def take(pool: Ints, k: int) -> Ints:
        if k <= 0 or len(pool) <= k:
            return pool[: max(0, k)]
        drawn = weighted_without_replacement(rng, weights[pool], k)
        left = without(np.arange(len(pool)), drawn)
        more = left[distinct(rng, len(left), k - len(drawn))]
        chosen: Ints = pool[np.concatenate([drawn, more])]
        return chosen

    return take


def by_rank(rng: Rng, values: Floats) -> Take:
    """Take those with the highest values (n,), best first, ties at random; a NaN never."""
    return lambda pool, k: pool[top(rng, values[pool], k)] if k > 0 else pool[:0]


def without(pool: Ints, some: Ints) -> Ints:
    """The members of a sorted pool that are not among some of its members."""
    kept = np.ones(len(pool), dtype=bool)
    kept[np.searchsorted(pool, some)] = False
    return pool[kept]


def draw_groups(rng: Rng, labels: Ints, here: Ints, weights: Array, w: int) -> Ints:
    """At most w of the groups that have members here, by weight (groups,), in random order."""
    drawn = by_weight(rng, weights)(np.unique(labels[here]), w)
    return drawn[permutation(rng, len(drawn))]


def candidate_lists(
    taken: Ints,
    labels: Ints,
    here: Ints,
    z: int,
    least: int,
    take: Take,
    fill: Take | None = None,
    once: bool = True,
) -> list[Ints]:
    """List z candidates for each of the groups ``taken``, in their order.

    A group with fewer than z members is filled up from outside all groups taken, by ``fill`` or
    in the same way; if nobody is left there, its list stays short. Nobody stands twice, unless
    ``once`` is False: then a filler may stand in several lists. If all lists together have fewer
    than ``least`` candidates, one more list of others is added.

    >>> labels = np.array([0, 1, 2, 2, 2])
    >>> losses = np.array([50.0, 45.0, 90.0, 80.0, 1.0])
    >>> rank = by_rank(np.random.default_rng(0), losses)
    >>> [found.tolist() for found in
    ...  candidate_lists(np.array([0, 1]), labels, np.arange(5), 2, 2, rank)]
    [[0, 2], [1, 3]]
    """
    group = labels[here]
    outside = here[~np.isin(group, taken)]
    found = [here[:0]]
    for number in taken.tolist():
        inside = take(here[group == number], z)
        fillers = (fill or take)(outside, z - len(inside))
        if once:
            outside = without(outside, fillers)
        found.append(np.concatenate([inside, fillers]))
    listed = np.unique(np.concatenate(found))
    if len(listed) < least:
        found.append(take(without(here, listed), least - len(listed)))
    return [one for one in found if len(one)]


def group_means(values: Floats, labels: Ints, here: Ints) -> Floats:
    """(groups,) mean value of those who are here; 0 for a group without any.

    Sums are exact and rounded once, so that the order of the clients is no matter.
    """
    means = np.zeros(int(labels.max()) + 1)
    found: dict[int, list[float]] = {}
    for number, value in zip(labels[here].tolist(), values[here].tolist(), strict=True):
        found.setdefault(number, []).append(value)
    for number, members in found.items():
        means[number] = math.fsum(members) / len(members)
    return means


def group_mean_weights(parts: Array, labels: Ints, here: Ints) -> Array:
    """(groups,) weights in proportion to the mean of the parts, of integers exactly.

    >>> group_mean_weights(np.array([2, 4, 5]), np.array([0, 0, 1]), np.arange(3))
    array([6, 10], dtype=object)
    """
    if parts.dtype.kind == "f":
        return group_means(parts, labels, here)
    group = labels[here]
    counts = np.bincount(group, minlength=int(labels.max()) + 1).tolist()
    common = math.lcm(*{count for count in counts if count})
    totals: Array = np.zeros(len(counts), dtype=object)
    np.add.at(totals, group, parts[here].astype(object))
    pairs = zip(totals.tolist(), counts, strict=True)
    return np.array([t * (common // c) if c else 0 for t, c in pairs], dtype=object)
