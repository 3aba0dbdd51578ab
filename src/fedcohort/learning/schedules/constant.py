"""The same step size in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.learning.schedules.base import Schedule


@dataclass(frozen=True)
class Constant(Schedule):
    """lr in every round."""

    name: ClassVar[str] = "constant"

    def rate(self, lr: float, round: int) -> float:
        return lr
