"""Clients come and go without memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedcohort.simulation.availability._alternating import Alternating


@dataclass(frozen=True)
class Markov(Alternating):
    """Each client is a Markov chain in continuous time: exponential sessions and absences."""

    name: ClassVar[str] = "markov"

    def lengths(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.standard_exponential(shape)

    def remaining(self, rng: np.random.Generator, n: int) -> Any:
        return rng.standard_exponential(n)
