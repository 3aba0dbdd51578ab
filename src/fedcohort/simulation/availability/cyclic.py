"""Groups of clients come in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.parameters import Whole
from fedcohort.core.types import Ints
from fedcohort.simulation.availability.base import Availability


@dataclass(frozen=True)
class Cyclic(Availability):
    """Groups of clients in turn: day and night, time zones.

    Client i belongs to group ``i mod groups``; each group is there for ``stay`` rounds.
    """

    groups: Annotated[int, Whole(1)] = 4
    stay: Annotated[int, Whole(1)] = 1

    name: ClassVar[str] = "cyclic"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        turn = round // self.stay % self.groups
        return np.arange(turn, n, self.groups, dtype=np.int64)
