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
