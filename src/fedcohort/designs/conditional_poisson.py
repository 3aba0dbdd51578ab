"""Conditional Poisson sampling: independent clients, given that exactly k come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.core.types import Floats, Ints
from fedcohort.designs.list_sequential import ListSequential, Ways
from fedcohort.maths._inclusion import weights_for

FINE = 2.0**40
"""The largest weight as an integer; chances are within about 1e-12 of those wanted."""


def whole_numbers(weights: Floats) -> tuple[int, ...]:
    """Weights in proportion as positive integers.

    >>> whole_numbers(np.array([1.0, 0.5])) == (2**40, 2**39)
    True
    """
    scaled = np.rint(weights * (FINE / weights.max())) if len(weights) else weights
    return tuple(max(1, int(weight)) for weight in scaled)


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalPoisson(ListSequential):
    """P(S) ~ prod_{i in S} w_i: of all laws with its chances the one of most entropy.

    Hájek (1964); the weights are found as Chen, Dempster and Liu (1994). They are irrational in
    general: as integers they give chances that differ from m p_i by about 1e-12, which the
    weights p_i / pi_i know exactly. So the aggregate is unbiased to the last digit, and weights
    that should sum to 1 do so up to 1e-12.

    >>> from fedcohort.core import Shares
    >>> design = ConditionalPoisson.proportional(Shares.of(np.array([3, 3, 4])), 2)
    >>> design.inclusion().round(6), design.second_moments
    (array([0.6, 0.6, 0.8]), 'exact')
    """

    swaps: ClassVar[bool] = True

    @classmethod
    def ways_for(cls, parts: Ints, whole: int, k: int) -> Ways:
        chances = np.asarray(parts / whole, dtype=np.float64)
        return Ways(k, whole_numbers(weights_for(chances, k)))
