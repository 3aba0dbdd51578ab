"""Balanced sampling: cohorts whose sums are those of the federation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.shares import Shares
from fedcohort.core.types import Floats, Ints
from fedcohort.designs.approximated import Approximated, decided
from fedcohort.designs.pools import NearPools
from fedcohort.maths._cube import fly, fly_nearby, land_by_dropping, land_by_program, scaled
from fedcohort.maths._draws import Rng

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
