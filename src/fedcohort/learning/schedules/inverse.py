"""A step size that falls as one over the round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Real
from fedcohort.learning.schedules.base import Schedule


@dataclass(frozen=True)
class Inverse(Schedule):
    """lr gamma / (t + gamma): the 1/t of the convergence proofs.

    With ``lr = 1 / (mu gamma)`` it is ``1 / (mu (t + gamma))``, as Cho, Wang and Joshi, "Towards
    Understanding Biased Client Selection in Federated Learning", AISTATS 2022, Theorem 3.1, has it.

    Parameters
    ----------
    gamma
        After so many rounds the step is half as large.

    >>> [round(Inverse(gamma=2).rate(0.1, t), 3) for t in (0, 2, 6)]
    [0.1, 0.05, 0.025]
    """

    gamma: Annotated[float, Real(0, open_low=True)] = 1.0

    name: ClassVar[str] = "inverse"

    def rate(self, lr: float, round: int) -> float:
        return lr * self.gamma / (round + self.gamma)
