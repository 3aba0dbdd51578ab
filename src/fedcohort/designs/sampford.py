"""Sampford's sampling: fixed size, the chances wanted, joint chances by formula."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import ClassVar

import numpy as np

from fedcohort.core.types import Ints
from fedcohort.designs.conditional_poisson import FINE, whole_numbers
from fedcohort.designs.list_sequential import ListSequential, Ways

BITS = 60_000
"""A law whose numbers of ways would be longer is rounded."""


@dataclass(frozen=True, eq=False, repr=False)
class Sampford(ListSequential):
    """P(S) ~ prod_{i in S} pi_i / (1 - pi_i) times sum_{i in S} (1 - pi_i).

    Sampford (1967): one client by pi, the others by pi / (1 - pi), until all are distinct. The
    chances are exactly pi. Drawn without a single rejection: one of the clients of a cohort is
    the first, the *mark* of `Ways`. Where the integers would become too long (many clients with
    very unequal sizes) odds are rounded, which moves chances by about 1e-12 and leaves the
    aggregate exactly unbiased.

    >>> from fedcohort.core import Shares
    >>> design = Sampford.proportional(Shares.of(np.array([3, 3, 4])), 2)
    >>> [str(10 * part / design.whole) for part in design.parts]
    ['6.0', '6.0', '8.0']
    """

    swaps: ClassVar[bool] = True

    @classmethod
    def ways_for(cls, parts: Ints, whole: int, k: int) -> Ways:
        rest = [whole - int(part) for part in parts]
        common = 1
        for each in rest:
            common = lcm(common, each)
            if k * common.bit_length() > BITS:
                chances = np.asarray(parts / whole, dtype=np.float64)
                marks = tuple(max(1, round((1.0 - chance) * FINE)) for chance in chances.tolist())
                return Ways(k, whole_numbers(chances / (1.0 - chances)), marks)
        takes = tuple(int(part) * (common // each) for part, each in zip(parts, rest, strict=True))
        return Ways(k, takes, tuple(rest))
