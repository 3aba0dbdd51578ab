"""What schedules of the step size share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from fedcohort.core.parameters import Checked


class Schedule(Checked, ABC):
    """How the step size of clients depends on the round; the same for all steps of a round."""

    name: ClassVar[str]

    @abstractmethod
    def rate(self, lr: float, round: int) -> float:
        """The step size of a round (the first is 0), where ``lr`` is that of the first."""
