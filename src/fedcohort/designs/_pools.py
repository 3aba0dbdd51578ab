"""Who may stand in for whom: the rows of clustered sampling, the strata of stratified sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from fedcohort._internal.types import Bools, Floats, Ints
from fedcohort.selection._design import Pool, Pools


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


Drawn = Callable[[Ints, int, Any], Ints]
WHOLE = 2**50
"""The mass that each missing client spreads over its neighbours."""
NEAREST = 50
"""No pool of neighbours has more clients."""


class NearPools(Pools):
    """The neighbours of each client, which look like it, so that a cohort stays balanced.

    Stand-ins of all who are missing are drawn at once, by the design itself with other chances:
    each missing client spreads the mass 1 over its neighbours that were not asked yet. So their
    sums are about those of the neighbours, and no two stand-ins are too much alike.

    Pools overlap, and a client between many others is in more of them. Who was drawn with the
    chance pi_i, answers with a_i, and has neighbours that answer with A_i on average hands

        pi_i (1 - a_i) (1 + (1 - A_i) + ...)

    draws on to its pool; what client j gets of it all, beside pi_j, is `visits`.

    Parameters
    ----------
    near
        (n, k) the neighbours of each client, none with the chance 1: those are in the cohort.
    chances
        (n,) how likely each is drawn.
    drawn
        Draws clients, given masses (n,) and what is a whole; None: each draw is made by itself.
    """

    def __init__(self, near: Ints, chances: Floats, drawn: Drawn | None = None) -> None:
        self.near, self.chances, self.drawn = near, chances, drawn

    @classmethod
    def along(cls, order: Ints, chances: Floats, drawn: Drawn | None = None) -> NearPools:
        """Neighbours on a line."""
        line = order[(chances[order] > 0) & (chances[order] < 1.0)]
        k = _how_many(chances)
        before = np.cumsum(np.isin(order, line))  # how many of the line stand before each
        first = np.clip(before - 1 - k // 2, 0, len(line) - k)
        near = np.empty((len(order), k), dtype=np.int64)
        near[order] = line[first[:, None] + np.arange(k)]
        return cls(near, chances, drawn)

    @classmethod
    def around(cls, points: Floats, chances: Floats, drawn: Drawn | None = None) -> NearPools:
        """Neighbours in space. # (n, f)."""
        from scipy.spatial import KDTree

        inside = np.flatnonzero((chances > 0) & (chances < 1.0))
        k = _how_many(chances)
        if k == 0 or points.shape[1] == 0:
            return cls.along(np.arange(len(chances)), chances, drawn)
        _, places = KDTree(points[inside]).query(points, np.arange(1, k + 1))
        return cls(inside[places], chances, drawn)

    def of(self, client: int) -> Pool:
        near = self.near[client]
        return Pool(near, self.chances[near], False)

    @cached_property
    def _shares(self) -> Floats:
        """(n, k) the chance of each neighbour to stand in for a client: itself never.

        Who is in the cohort does not, either; it is as often as its own chance says, whoever else
        is missing (which is nearly so).
        """
        own = self.near == np.arange(len(self.near))[:, None]
        mass = np.where(own, 0.0, (self.chances * (1.0 - self.chances))[self.near])
        total = mass.sum(axis=1, keepdims=True)
        out: Floats = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
        return out

    def average(self, values: Floats) -> Floats:
        out = (self._shares * values[self.near]).sum(axis=1)
        return np.where(self._shares.any(axis=1), out, 1.0)

    def visits(self, answers: Floats, tries: int) -> Floats:
        passed = self.chances * (1.0 - answers) * super().visits(answers, tries - 1)
        came = np.zeros(len(answers))
        np.add.at(came, self.near, passed[:, None] * self._shares)
        return 1.0 + np.divide(came, self.chances, out=np.zeros_like(came), where=self.chances > 0)

    def together(self, lost: Sequence[int], free: Bools, rng: Any) -> list[int | None] | None:
        if self.drawn is None:
            return None
        masses, able = np.zeros(len(free), dtype=np.int64), []
        for client in lost:
            near = self.near[client]
            mass = np.where(free[near], self.chances[near], 0.0)
            if not mass.any():
                continue
            parts = (mass * (WHOLE / mass.sum())).astype(np.int64)
            parts[mass.argmax()] += WHOLE - parts.sum()
            masses[near] += parts
            able.append(client)
        if np.any(masses > WHOLE):  # too few neighbours for so many: one after the other
            return None
        pairs = self._paired(able, self.drawn(masses, WHOLE, rng).tolist()) if able else {}
        return [pairs.get(client) for client in lost]

    def _paired(self, lost: list[int], chosen: list[int]) -> dict[int, int]:
        """Who stands in for whom: a neighbour where there is one, else any that is left."""
        left, out = dict.fromkeys(chosen), {}
        for client in lost:
            near = next((i for i in self.near[client].tolist() if i in left), None)
            if near is not None:
                out[client] = near
                del left[near]
        rest = [client for client in lost if client not in out]
        return out | dict(zip(rest, left, strict=True))


def _how_many(chances: Floats) -> int:
    """Twice as many as there are for each draw."""
    undecided = chances[(chances > 0) & (chances < 1.0)]
    if not len(undecided):
        return 0
    return min(len(undecided), NEAREST, 2 * int(np.ceil(len(undecided) / undecided.sum())))
