"""What drop-out rules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from fedcohort.core.parameters import Checked
from fedcohort.core.types import Bools, Floats, Ints


class Turnout(NamedTuple):
    """Who replied in a round, and whose draws are lost: (k,) clients, in ascending order.

    A client whose lost draws all went to others is not among them.
    """

    drawn: float
    """The sum of the weights of the cohort as drawn."""
    weights: Floats
    """What the draws of each client weigh; of a client that did not reply, its lost draws."""
    draws: Ints
    factors: Floats
    """By how much the chance of each client to reply must be made up for."""
    replied: Bools


class DropOutRule(Checked, ABC):
    """What becomes of the weights when chosen clients do not answer."""

    name: ClassVar[str]
    biased: ClassVar[bool] = False
    """Whether the step leans towards clients that answer more often."""
    attempts: int = 0
    """How often a lost draw is made again."""
    needs_rows: ClassVar[bool] = True
    """Whether weights are known only once it is known who answered."""

    @abstractmethod
    def weights(self, turnout: Turnout) -> Floats:
        """Return what the replies weigh, one number for each client that replied."""


def scaled(drawn: float, weights: Floats) -> Floats:
    """Weights of the sum ``drawn``; the ratio estimate."""
    total = float(weights.sum())
    return weights * (drawn / total) if total > 0 else weights
