"""Who was asked to train, and who did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Attendance:
    """How often each client was asked to train, and how often it did.

    >>> seen = Attendance.of(3).after(np.array([0, 2]), np.array([2]))
    >>> seen.chances
    array([0.5, 1. , 1. ])
    """

    asked: Annotated[Ints, Shaped("n", low=0)]
    answered: Annotated[Ints, Shaped("n", low=0)]

    @classmethod
    def of(cls, n: int) -> Self:
        """Nobody was asked yet."""
        return cls(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))

    def after(self, asked: Ints, answered: Ints) -> Attendance:
        """The counts after one more round."""
        out = replace(self, asked=self.asked.copy(), answered=self.answered.copy())
        out.asked[asked] += 1
        out.answered[answered] += 1
        return out

    def moved(self, came_from: Ints) -> Attendance:
        """The counts after clients came or left; -1 for a client that is new."""
        new = came_from < 0
        return Attendance(
            np.where(new, 0, self.asked[came_from]), np.where(new, 0, self.answered[came_from])
        )

    @property
    def chances(self) -> Floats:
        """(n,) what is believed of each client's availability."""
        return (self.answered + 1) / (self.asked + 1)
