"""Balanced and pivotal designs: cohorts whose sums are those of the federation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from fedcohort._internal.types import Floats, Ints
from fedcohort.designs._fixed_size import Approximated, FixedSize, decided
from fedcohort.designs._pools import NearPools
from fedcohort.maths._cube import fly, fly_nearby, land_by_dropping, land_by_program, scaled
from fedcohort.maths._draws import Rng, Tickets
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Shares

FLAT = 1e-9
"""A direction in which features spread less than this, relative to the widest, is none."""


@dataclass(frozen=True, eq=False, repr=False)
class Cube(Approximated):
    """Of every column the weighted sum over a cohort is about what it is over all clients.

    The cube method (Deville and Tillé, 2004), see `fedcohort.maths._cube`: chances and the number
    of clients are exact, the sums of the columns are kept until too few clients are undecided.
    Then columns are given up one by one, the last first, or a linear program finds the best end.

    Parameters
    ----------
    columns
        (n, q) what is balanced: sum over the cohort ~ sum_i pi_i columns_i, so for the mean
        sum_i p_i f_i this is f_i p_i / pi_i. The number of clients is balanced always.
    program
        Whether the end is found by linear programming: less variance, more time.
    nearby
        Whether each step looks at neighbours (local cube, Grafström and Tillé, 2013): spread as
        well as balanced, and slower.
    """

    columns: Floats
    program: bool = False
    nearby: bool = False

    @classmethod
    def balancing(
        cls,
        shares: Shares,
        m: int,
        features: Floats,
        most: int,
        program: bool = False,
        nearby: bool = False,
    ) -> Self:
        """Chances by importance; balances the (at most ``most``) main components of features.

        (n, f); what counts is what they vary by under Poisson sampling with these chances, about
        the mean that the fixed number of clients takes care of already.
        """
        plain = cls.proportional(shares, m, np.zeros((len(shares), 0)), program, nearby)
        inside = plain.open
        columns = np.zeros((len(shares), 0))
        if len(inside) > 1 and features.shape[1]:
            found = components(features[inside], plain.count_variance()[inside], most)
            columns = np.zeros((len(shares), found.shape[1]))
            columns[inside] = found
        return cls(shares, plain.parts, plain.whole, columns, program, nearby)

    @property
    def exact_up_to(self) -> int:
        return 4 if self.nearby else 6  # where neighbours meet, the order is random as well

    def pools(self) -> NearPools:
        return NearPools.around(self.columns, self.inclusion(), self.drawn_with)

    def balanced_columns(self) -> Floats:
        return np.concatenate([np.ones((len(self.open), 1)), self.columns[self.open]], axis=1)

    @cached_property
    def _start(self) -> tuple[Ints, int, Floats]:
        masses, whole = scaled(self.parts[self.open], self.whole)
        return masses, whole, self.balanced_columns()

    def draw(self, rng: Rng) -> Cohort:
        masses, whole, columns = self._start
        if self.nearby:
            masses = fly_nearby(rng, masses, whole, columns, columns[:, 1:])
        else:
            masses = fly(rng, masses, whole, columns)
        land = land_by_program if self.program else land_by_dropping
        return decided(self, np.flatnonzero(land(rng, masses, whole, columns) == whole))


def components(features: Floats, weights: Floats, most: int) -> Floats:
    """(k, q) the main components of features (k, f), the widest first, q <= most.

    >>> components(np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]), np.ones(3), 2).round(3).shape
    (3, 1)
    """
    centred = features - weights @ features / weights.sum()
    spread = centred * np.sqrt(weights)[:, None]
    _, size, axes = np.linalg.svd(spread, full_matrices=False)
    if not len(size) or size[0] == 0:
        return np.zeros((len(features), 0))
    kept = axes[:most][size[:most] > FLAT * size[0]]
    return np.asarray(centred @ kept.T * (np.sqrt(weights.sum()) / size[0]))


# Pivotal sampling: two clients at a time, one of them is decided.


NEIGHBOURS = 16
"""So many neighbours of each client are found at once; further ones where they are needed."""


def duel(tickets: Tickets, one: int, other: int, whole: int) -> tuple[int, int]:
    """The masses after two undecided clients met; the mean of each is what it was.

    Their sum is kept. Below ``whole`` one of them takes it all, and the other is out; else one of
    them is in, and the other keeps the rest.

    >>> duel(Tickets(np.random.Generator(np.random.Philox(1))), 3, 4, 10)
    (7, 0)
    """
    both = one + other
    if both < whole:
        return (both, 0) if tickets.heads(one, both) else (0, both)
    if tickets.heads(whole - other, 2 * whole - both):
        return whole, both - whole
    return both - whole, whole


@dataclass(frozen=True, eq=False, repr=False)
class Pivotal(FixedSize):
    """Duels along a line: the client still undecided meets the next (Deville and Tillé, 1998).

    Masses stay integers, so the chances are exact. What is undecided after the i-th client has
    the mass F_i = the part of the line up to there beyond a whole number, *whoever it is*; hence
    a Markov chain, and the covariance is exact too (Chauvet, 2012). With f = F_{j-1}, a = pi_j:

        Cov(c_i, c_j) = P(i is undecided before j) d_j,   i before j,
        d_j = -f a  where f + a < 1,   -(1 - f)(1 - a)  else,

    and who is undecided stays so with probability f / (f + a), or (1 - f) / (2 - f - a).

    No aggregate varies more than under MD sampling, whatever the order (Chauvet and Ruiz-Gazen,
    2017); clients near on the line rarely meet in a cohort.

    Parameters
    ----------
    order
        (n,) the clients as they stand on the line.
    """

    order: Ints

    swaps: ClassVar[bool] = True

    @cached_property
    def _line(self) -> Ints:
        """Those of the order that chance decides on."""
        inside = np.zeros(self.n, dtype=bool)
        inside[self.open] = True
        return self.order[inside[self.order]]

    def pools(self) -> NearPools:
        return NearPools.along(self.order, self.inclusion(), self.drawn_with)

    def draw(self, rng: Rng) -> Cohort:
        tickets, whole = Tickets(rng), self.whole
        taken: list[int] = []
        last, left = -1, 0  # who is undecided, and its mass
        line = self._line
        for client, mass in zip(line.tolist(), self.parts[line].tolist(), strict=True):
            if left == 0:
                last, left = client, mass
                continue
            kept, other = duel(tickets, left, mass, whole)
            if kept == whole:
                taken.append(last)
            if other == whole:
                taken.append(client)
            if other not in (0, whole):
                last, left = client, other
            else:
                left = 0 if kept == whole else kept
        return self.cohort(np.concatenate([self.sure, np.array(taken, dtype=np.int64)]))

    @cached_property
    def _chain(self) -> tuple[list[float], list[float]]:
        """(open,) by place on the line: the chance to stay undecided, and d."""
        stays, drifts, left, whole = [], [], 0, self.whole
        for mass in self.parts[self._line].tolist():
            both = left + mass
            if both < whole:
                stays.append(left / both)
                drifts.append(-(left / whole) * (mass / whole))
            else:
                stays.append((whole - left) / (2 * whole - both))
                drifts.append(-((whole - left) / whole) * ((whole - mass) / whole))
            left = both % whole
        return stays, drifts

    def count_covariance_times(self, x: Floats) -> Floats:
        line, (stays, drifts) = self._line, self._chain
        inside = x[line].astype(np.float64)
        variance = self.count_variance()[line]
        rows = (inside.T * variance).T
        before = np.zeros_like(inside[:1].sum(axis=0))  # sum of x_i P(i is undecided before j)
        for j, (stay, drift) in enumerate(zip(stays, drifts, strict=True)):
            rows[j] += drift * before
            before = stay * before + (1.0 - stay) * inside[j]
        after = np.zeros_like(before)  # sum over j > i of d_j x_j P(i is undecided before j)
        for i in range(len(line) - 1, -1, -1):
            rows[i] += (1.0 - stays[i]) * after
            after = drifts[i] * inside[i] + stays[i] * after
        out = np.zeros_like(x, dtype=np.float64)
        out[line] = rows
        return out


@dataclass(frozen=True, eq=False, repr=False)
class LocalPivotal(Approximated):
    """Duels of neighbours: a random undecided client meets the nearest one (LPM2).

    Grafström, Lundström and Schelin (2012). Clients that are alike rarely meet in a cohort, in
    any number of dimensions. Chances are exact; as in any pivotal sampling no aggregate varies
    more than under MD sampling (Chauvet and Ruiz-Gazen, 2017). The approximate covariance of many
    clients knows nothing of the spread, so it is too large where neighbours are alike.

    Parameters
    ----------
    points
        (n, f) where the clients are. Of equally near ones any may be met.
    """

    points: Floats

    @property
    def exact_up_to(self) -> int:
        return 5  # the order of the duels is random as well

    def pools(self) -> NearPools:
        return NearPools.around(self.points, self.inclusion(), self.drawn_with)

    def balanced_columns(self) -> Floats:
        return np.ones((len(self.open), 1))

    @cached_property
    def _near(self) -> Ints:
        """(open, k) positions in ``open`` of the nearest, the nearest first."""
        from scipy.spatial import KDTree

        inside = self._inside
        k = min(NEIGHBOURS, len(inside))
        if k < 2 or inside.shape[1] == 0:
            return np.empty((len(inside), 0), dtype=np.int64)
        _, near = KDTree(inside).query(inside, k)
        return np.asarray(near, dtype=np.int64)

    @cached_property
    def _inside(self) -> Floats:
        return np.asarray(self.points[self.open], dtype=np.float64)

    def draw(self, rng: Rng) -> Cohort:
        tickets, whole = Tickets(rng), self.whole
        masses: list[int] = self.parts[self.open].tolist()
        near = self._near.tolist()
        left = list(range(len(masses)))  # who is undecided
        place = left.copy()  # where each of them stands in `left`
        while len(left) > 1:
            one = left[tickets.below(len(left)) if len(left) > 2 else 0]  # of two it is the same
            other = next((i for i in near[one] if i != one and 0 < masses[i] < whole), -1)
            if other < 0:
                other = self._nearest(one, left)
            masses[one], masses[other] = duel(tickets, masses[one], masses[other], whole)
            for each in (one, other):
                if masses[each] in (0, whole):
                    last = left.pop()
                    if last != each:
                        left[place[each]] = last
                        place[last] = place[each]
        return decided(self, np.flatnonzero(np.array(masses, dtype=object) == whole))

    def _nearest(self, one: int, left: list[int]) -> int:
        others = np.array([i for i in left if i != one])
        apart = ((self._inside[others] - self._inside[one]) ** 2).sum(axis=1)
        return int(others[np.argmin(apart)])
