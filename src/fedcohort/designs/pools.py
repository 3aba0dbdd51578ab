"""Who may stand in for whom: the rows of clustered sampling, the strata of stratified sampling."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fedcohort.core.design import Pool, Pools
from fedcohort.core.types import Floats, Ints


class RowPools(Pools):
    """The rows of clustered sampling, a matrix of chances (rows, n).

    A client that lies in several rows is replaced from each in proportion to its own mass
    there: on average that is the row its draw came from.
    """

    def __init__(self, rows: sparse.csr_array) -> None:
        self.rows = rows
        self.columns = rows.tocsc()

    def of(self, client: int) -> Pool:
        rows, columns = self.rows, self.columns
        inside = slice(columns.indptr[client], columns.indptr[client + 1])
        parts = [
            (slice(rows.indptr[row], rows.indptr[row + 1]), own)
            for row, own in zip(columns.indices[inside], columns.data[inside], strict=True)
        ]
        clients = np.concatenate([rows.indices[part] for part, _ in parts]).astype(np.int64)
        chances = np.concatenate([own * rows.data[part] for part, own in parts])
        return Pool(clients[chances > 0], chances[chances > 0], True)

    def average(self, values: Floats) -> Floats:
        mass = np.asarray(self.rows.sum(axis=0)).ravel()
        sums = np.asarray(self.rows.T @ (self.rows @ values)).ravel()
        out: Floats = np.divide(sums, mass, out=np.ones(len(values)), where=mass > 0)
        return out


class StratumPools(Pools):
    """The strata of stratified sampling, and in which of them a client may be drawn again."""

    def __init__(self, strata: tuple[Ints, ...], chances: Floats, again: tuple[bool, ...]) -> None:
        self.strata, self.chances, self.again = strata, chances, again
        self.stratum = np.full(len(chances), -1)
        for number, members in enumerate(strata):
            self.stratum[members] = number

    def of(self, client: int) -> Pool:
        number = int(self.stratum[client])
        members = self.strata[number]
        some = members[self.chances[members] > 0]
        # Where a client may come twice, chances inside a stratum go by what clients told.
        return Pool(some, self.chances[some], self.again[number], rounded=self.again[number])

    def average(self, values: Floats) -> Floats:
        out = np.ones(len(values))
        for members in self.strata:
            mass = float(self.chances[members].sum())
            if mass > 0:
                out[members] = float(self.chances[members] @ values[members]) / mass
        return out


NEAREST = 50
"""No pool of neighbours has more clients."""


class NearPools(Pools):
    """The neighbours of each client, which look like it, so that a cohort stays balanced.

    ``near`` (n, k) holds the neighbours of each client and ``chances`` (n,) how likely they are.
    A client with the chance 1 is in the cohort already.
    """

    def __init__(self, near: Ints, chances: Floats) -> None:
        self.near = near
        self.chances = np.where(chances < 1.0, chances, 0.0)

    @classmethod
    def along(cls, order: Ints, chances: Floats) -> NearPools:
        """Neighbours on a line."""
        line = order[(chances[order] > 0) & (chances[order] < 1.0)]
        k = _how_many(chances)
        before = np.cumsum(np.isin(order, line))  # how many of the line stand before each
        first = np.clip(before - 1 - k // 2, 0, len(line) - k)
        near = np.empty((len(order), k), dtype=np.int64)
        near[order] = line[first[:, None] + np.arange(k)]
        return cls(near, chances)

    @classmethod
    def around(cls, points: Floats, chances: Floats) -> NearPools:
        """Neighbours in space. # (n, f)."""
        from scipy.spatial import KDTree

        inside = np.flatnonzero((chances > 0) & (chances < 1.0))
        k = _how_many(chances)
        if k == 0 or points.shape[1] == 0:
            return cls.along(np.arange(len(chances)), chances)
        _, places = KDTree(points[inside]).query(points, np.arange(1, k + 1))
        return cls(inside[places], chances)

    def of(self, client: int) -> Pool:
        near = self.near[client]
        return Pool(near, self.chances[near], False)

    def average(self, values: Floats) -> Floats:
        mass = self.chances[self.near]  # (n, k)
        total = mass.sum(axis=1)
        sums = (mass * values[self.near]).sum(axis=1)
        out: Floats = np.divide(sums, total, out=np.ones(len(values)), where=total > 0)
        return out


def _how_many(chances: Floats) -> int:
    """Twice as many as there are for each draw."""
    undecided = chances[(chances > 0) & (chances < 1.0)]
    if not len(undecided):
        return 0
    return min(len(undecided), NEAREST, 2 * int(np.ceil(len(undecided) / undecided.sum())))
