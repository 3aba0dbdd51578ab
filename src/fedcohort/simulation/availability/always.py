"""Nobody is ever away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.core.types import Ints
from fedcohort.simulation.availability.base import Availability


@dataclass(frozen=True)
class Always(Availability):
    """Everyone, every round."""

    name: ClassVar[str] = "always"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        return None
