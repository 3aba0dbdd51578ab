"""K-Medoids of a distance matrix: k points stand for all, the sum of distances to them is small.

FasterPAM (Schubert and Rousseeuw 2021) from the greedy start BUILD of PAM (Kaufman and Rousseeuw
1987). A swap of a medoid for another point is done as soon as one is found that makes the sum
smaller, best medoid for that point; candidates are looked at in turn until all of them have been
since the last swap. What one swap changes takes O(n) to tell, for all k medoids together:
with near_o and second_o the distances of a point to its two nearest medoids, candidate j changes

    sum_o min(d_jo - near_o, 0)                                  whichever medoid goes, and
    sum_{o nearest to i} second_o - near_o                       if medoid i goes, which the points
        + min(max(d_jo, near_o), second_o) - second_o            that j takes from it soften.

Nothing is random, and no compiled code is needed: a block of candidates is one product with
the sparse (k, n) indicator of who is nearest to whom.

References
----------
Schubert and Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101, 2021,
Algorithm 3. Kaufman and Rousseeuw, "Clustering by means of medoids", 1987.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TILE = 256
"""Rows of the distances that are looked at together, at most."""
ROUNDING = 1e-12
"""A gain below this part of the sum is none.

Of a cluster of two either may be the medoid, so that ties are common. The package ``kmedoids``
lets rounding decide and goes sideways there, with other results on other processors; here a swap
has to help.
"""


class Medoids(NamedTuple):
    """The points that stand for the others."""

    medoids: Ints  # (k,)
    labels: Ints  # (n,) the place in `medoids` of the nearest one
    loss: float  # the sum of all distances to it


def build(distances: Floats, k: int) -> Ints:
    """(k,) medoids, each the one that helps most beside those before it; the first of equals.

    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> build(abs(line[:, None] - line), 2)
    array([2, 4])
    """
    n = len(distances)
    chosen = [int(np.argmin(distances.sum(axis=1)))]
    near = distances[chosen[0]].copy()
    while len(chosen) < k:
        gains = np.concatenate(
            [
                np.minimum(distances[start : start + TILE] - near, 0.0).sum(axis=1)
                for start in range(0, n, TILE)
            ]
        )
        gains[chosen] = np.inf
        chosen.append(int(np.argmin(gains)))
        near = np.minimum(near, distances[chosen[-1]])
    return np.array(chosen, dtype=np.int64)


def fasterpam(distances: Floats, start: Ints) -> Medoids:
    """The medoids after all swaps that help, from those of ``start``.

    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> fasterpam(abs(line[:, None] - line), np.array([0, 1]))
    Medoids(medoids=array([4, 1]), labels=array([1, 1, 1, 0, 0, 0]), loss=4.0)
    """
    n, medoids = len(distances), start.astype(np.int64)
    now = _Standing.of(distances, medoids)
    at, unchanged, width = 0, 0, 8
    while unchanged < n and len(medoids) < n:
        block = np.arange(at, min(at + width, n))
        change, leaving = now.best_swaps(distances[block])
        change[np.isin(block, medoids)] = np.inf
        better = np.flatnonzero(change < -ROUNDING * max(now.loss, 1e-300))
        if len(better):
            first = int(better[0])
            medoids[leaving[first]] = block[first]
            now = _Standing.of(distances, medoids, now.labels, int(leaving[first]))
            at, unchanged, width = int(block[first]) + 1, 0, 8
        else:  # look at more of them at a time while nothing happens
            at, unchanged, width = int(block[-1]) + 1, unchanged + len(block), min(2 * width, TILE)
        at %= n
    return Medoids(medoids, now.labels, now.loss)


class _Standing(NamedTuple):
    """Where every point stands with the present medoids."""

    labels: Ints  # (n,)
    near: Floats  # (n,) the distance to the nearest medoid
    second: Floats  # (n,) to the next one; of a single medoid, infinite
    owners: csr_array  # (k, n) 1 where a point is nearest to a medoid
    loss: float

    @classmethod
    def of(
        cls, distances: Floats, medoids: Ints, before: Ints | None = None, new: int = -1
    ) -> _Standing:
        """With these medoids; of equals the first, or whom a point was nearest to ``before``.

        ``new`` is the place of the medoid that came last, which has to be nearer to win.
        """
        rows, everyone = distances[medoids], np.arange(distances.shape[1])  # (k, n)
        labels, n = np.argmin(rows, axis=0), len(everyone)
        if before is not None:
            coming = rows[new].copy()
            rows[new] = np.inf
            labels = np.argmin(rows, axis=0)
            stays = (before != new) & (rows[before, everyone] == rows[labels, everyone])
            labels = np.where(stays, before, labels)
            labels = np.where(coming < rows[labels, everyone], new, labels)
            rows[new] = coming
        near = rows[labels, everyone]
        rows[labels, everyone] = np.inf
        second = rows.min(axis=0)
        members = np.argsort(labels, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=len(medoids)))])
        owners = csr_array((np.ones(n), members, ends), (len(medoids), n))
        return cls(labels, near, second, owners, float(near.sum()))

    def best_swaps(self, rows: Floats) -> tuple[Floats, Ints]:
        """(b,) the change of the sum for each of b candidates, and which medoid would go."""
        anyway = np.minimum(rows - self.near, 0.0).sum(axis=1)
        if self.owners.shape[0] == 1:  # the only one goes, and nobody has a second
            return (rows - self.near).sum(axis=1), np.zeros(len(rows), dtype=np.int64)
        # second - near, softened by min(max(d, near), second) - second: both in one sum.
        rest = np.minimum(np.maximum(rows, self.near), self.second) - self.near  # (b, n)
        going = self.owners @ rest.T  # (k, b)
        leaving = np.argmin(going, axis=0)
        return anyway + going[leaving, np.arange(len(rows))], leaving
