"""A step size that falls by stairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Real, Whole
from fedcohort.learning.schedules.base import Schedule


@dataclass(frozen=True)
class Step(Schedule):
    """lr, times ``factor`` after every so many rounds; halved every 150, as Cho et al. run it.

    >>> [Step(every=150).rate(0.4, t) for t in (149, 150, 300)]
    [0.4, 0.2, 0.1]
    """

    every: Annotated[int, Whole(1)] = 150
    factor: Annotated[float, Real(0, open_low=True)] = 0.5

    name: ClassVar[str] = "step"

    def rate(self, lr: float, round: int) -> float:
        return lr * self.factor ** (round // self.every)
