"""Algorithm 2, lines 4 to 20: from groups of clients to m distributions, in exact integers.

Client i has mass m n_i and every distribution holds M = sum n_i, so the masses fill the m
distributions to the brim. A *layout* is the whole of them as one line of segments: ``clients``
and ``masses``, end to end, such that distribution k is the stretch from k M to (k + 1) M. A
client may own several segments; a draw from distribution k is a point of its stretch.
"""

from __future__ import annotations

from functools import partial
from math import lcm
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
"""64-bit integers, or Python integers (dtype object) where 64 bits would overflow."""


def exact_masses(sizes: ArrayLike, m: int) -> Ints:
    """The masses m n_i: int64 while m M < 2**63, else Python integers. # (n,) -> (n,).

    >>> exact_masses([3, 1], 2)
    array([6, 2])
    >>> exact_masses([2**62, 1], 4)
    array([18446744073709551616, 4], dtype=object)
    """
    values = np.asarray(sizes)
    if values.ndim != 1 or values.dtype.kind not in "iuO":
        raise ValueError(f"sizes must be one row of integers, got {values.dtype} {values.shape}")
    numbers = [index(size) for size in values.tolist()]
    if m < 1 or not numbers or min(numbers) < 0 or sum(numbers) == 0:
        raise ValueError(f"sizes must be >= 0, not all 0, and m >= 1, got m = {m}")
    fits = m * sum(numbers) < 2**63
    return np.array([m * size for size in numbers], dtype=np.int64 if fits else object)


def split_large(masses: Ints, capacity: int) -> tuple[Ints, Ints]:
    """Distributions that a client fills alone, and what remains of it. # (n,) -> (n,), (n,).

    The remainders are the masses to `cut` a tree by: none exceeds the capacity.
    """
    return masses // capacity, masses % capacity


def evened(row: Ints, masses: Ints) -> Ints:
    """Scale the masses of each row, so that all rows have the same sum, exactly. # (s,), (s,).

    For distributions as they are printed, which do not sum to one number.

    >>> evened(np.array([0, 0, 1]), np.array([1, 2, 2]))
    array([2, 4, 6])
    """
    exact = masses.astype(object)
    sums = np.zeros(int(row.max()) + 1, dtype=object)
    np.add.at(sums, row, exact)
    width = lcm(*sums)
    scaled: Ints = exact * (width // sums)[row]
    return scaled.astype(np.int64) if width * len(sums) < 2**63 else scaled


def pour(groups: ArrayLike, masses: Ints, m: int, as_printed: bool = False) -> tuple[Ints, Ints]:
    """Fill m distributions with groups of similar clients.

    1. A client of mass >= M fills floor(m n_i / M) distributions alone; the rest of it takes
       part below. (In the paper's text; the authors' code loses it, hence is biased.)
    2. The heaviest groups become one distribution each, by decreasing mass.
    3. The clients of the other groups, in the same order, are poured into the room that is left,
       one distribution after the other, split where necessary. Ties by group number, clients of
       a group by index. (The authors' code lists and pours by increasing mass, and shuffles the
       clients of a group: other distributions, the same promise.)

    Every distribution sums to exactly M and every client to exactly m n_i, so the weights of a
    draw are unbiased (Proposition 1).

    Parameters
    ----------
    groups
        The group of each client, as `fedcohort.maths.tree.cut` returns them for the remainders
        of `split_large`: no group heavier than M. # (n,)
    masses
        m n_i of `exact_masses`. # (n,)
    m
        Number of distributions; M is the total mass divided by m.
    as_printed
        Pour by line 12 as it is printed. Distributions then do not sum to M; they are scaled to
        one sum, in which a client's share is not m n_i / M.

    Returns
    -------
    clients, masses
        The layout. # (s,), (s,), s <= n + 2 m

    Examples
    --------
    >>> clients, shares = pour([0, 0, 1, 1, 2, 3], exact_masses([1] * 6, 2), 2)
    >>> clients, shares
    (array([0, 1, 4, 2, 3, 5]), array([2, 2, 2, 2, 2, 2]))

    References
    ----------
    Fraboni et al., "Clustered Sampling", ICML 2021, Algorithm 2. Line 12 as printed stores
    b_i = q_k + u_i and never updates q_k; here u_i is stored and q_k grows.
    """
    capacity = _capacity(masses, m)
    labels = np.asarray(groups, dtype=np.int64)
    if labels.shape != masses.shape or np.any(labels < 0):
        raise ValueError(f"groups must be {masses.size} numbers >= 0, got shape {labels.shape}")
    full, rest = split_large(masses, capacity)
    alone = np.repeat(np.arange(masses.size), full.astype(np.int64))  # (dedicated,)
    rank, kept = _ranked_groups(labels, rest, m - alone.size, capacity)
    sequence = np.argsort(rank[labels], kind="stable")
    sequence = sequence[rest[sequence] > 0]
    stays = rank[labels[sequence]] < kept
    settled, poured = sequence[stays], sequence[~stays]
    rows = rank[labels[settled]]  # the distribution of every client that stays with its group
    room = np.full(kept, capacity, dtype=masses.dtype)
    np.subtract.at(room, rows, rest[settled])
    fill = partial(_fill_as_printed, capacity) if as_printed else _fill
    which, where, shares = fill(rest[poured], room)
    every = np.concatenate([rows, where])
    by_row = np.argsort(every, kind="stable")
    clients = np.concatenate([settled, poured[which]])[by_row]
    segments = np.concatenate([rest[settled], shares])[by_row]
    if as_printed and kept:
        segments = evened(every[by_row], segments)
        capacity = int(segments.sum()) // kept
    dedicated = np.full(alone.size, capacity, dtype=segments.dtype)
    return np.concatenate([alone, clients]), np.concatenate([dedicated, segments])


def _capacity(masses: Ints, m: int) -> int:
    capacity, left = divmod(int(masses.sum()), m)
    if left or capacity < 1:
        raise ValueError(f"masses must sum to a positive multiple of m = {m}, got {masses.sum()}")
    return capacity


def _ranked_groups(labels: Ints, rest: Ints, rows: int, capacity: int) -> tuple[Ints, int]:
    """The place of each group in the order of filling, and how many of them become rows."""
    count = int(labels.max()) + 1
    weight = np.zeros(count, dtype=rest.dtype)
    np.add.at(weight, labels, rest)  # exact, unlike bincount
    if np.any(weight > capacity):
        heaviest = int(np.argmax(weight))
        raise ValueError(
            f"groups must weigh at most {capacity}, group {heaviest} weighs {weight[heaviest]}; "
            "cut the tree by the remainders of split_large"
        )
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(-weight, kind="stable")] = np.arange(count)
    return rank, min(rows, count)


def _fill(amounts: Ints, room: Ints) -> tuple[Ints, Ints, Ints]:
    """Pour amounts into room, one after the other: which amount, into which room, how much.

    Both are stretches of the same line, so the segments lie between neighbouring ends of
    either; this is the loop "fill, split, next" for all at once.
    """
    ends: NDArray[Any] = np.cumsum(amounts)
    walls: NDArray[Any] = np.cumsum(room)
    borders = np.unique(np.concatenate([ends, walls]))
    borders = borders[borders > 0]
    shares = np.diff(borders, prepend=borders[:1] * 0)
    # A segment that ends at a border belongs to the first stretch that reaches this far.
    return np.searchsorted(ends, borders), np.searchsorted(walls, borders), shares


def _fill_as_printed(capacity: int, amounts: Ints, room: Ints) -> tuple[Ints, Ints, Ints]:
    """The same by lines 8 to 19 as printed: q_k, what lies in a distribution, is never updated."""
    found: list[tuple[int, int, int]] = []
    k = 0
    for which, amount in enumerate(amounts.tolist()):
        left = amount
        while left >= room[k]:  # lines 14 to 17
            found.append((which, k, int(room[k])))
            left, k = left - int(room[k]), k + 1
            if left == 0:
                break
        else:
            found.append((which, k, capacity - int(room[k]) + left))  # line 12: b_i = q_k + u_i
    some = [each for each in found if each[2]]
    columns = np.array(some, dtype=amounts.dtype).reshape(-1, 3).T
    return columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2]
