"""Clients come and go independently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.core.errors import BadInput, shown
from fedcohort.core.types import Ints
from fedcohort.simulation.availability.base import Availability


@dataclass(frozen=True)
class Random(Availability):
    """Each client is there with its own probability, independently in every round.

    Parameters
    ----------
    probability
        Of every client, or of each (a tuple with one entry per client).
    """

    probability: float | tuple[float, ...] = 0.8

    name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        chances = np.atleast_1d(np.asarray(self.probability))
        if chances.dtype.kind not in "iuf" or not np.all((chances >= 0) & (chances <= 1)):
            raise BadInput(
                "The 'probability' parameter of random availability must be in [0, 1]. "
                f"Got {shown(self.probability)} instead."
            )

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        chances = np.asarray(self.probability, dtype=float)
        if chances.ndim and len(chances) != n:
            raise BadInput(
                f"Random availability needs one probability per client: {n} clients, "
                f"{len(chances)} probabilities."
            )
        return np.flatnonzero(rng.random(n) < chances)
