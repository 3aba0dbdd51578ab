"""A step size that falls by the same share in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Real
from fedcohort.learning.schedules.base import Schedule


@dataclass(frozen=True)
class Exponential(Schedule):
    """A share of it is left in every round: lr factor^t.

    >>> round(Exponential(factor=0.9).rate(1.0, 2), 2)
    0.81
    """

    factor: Annotated[float, Real(0, open_low=True)] = 0.99

    name: ClassVar[str] = "exponential"

    def rate(self, lr: float, round: int) -> float:
        return lr * self.factor**round
