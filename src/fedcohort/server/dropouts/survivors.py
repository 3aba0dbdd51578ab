"""The mean of whoever answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core.types import Floats
from fedcohort.server.dropouts.base import DropOutRule, Turnout, scaled


@dataclass(frozen=True)
class Survivors(DropOutRule):
    """The mean of whoever answered, as most frameworks do. Biased: see the package."""

    name: ClassVar[str] = "survivors"
    biased: ClassVar[bool] = True

    def weights(self, turnout: Turnout) -> Floats:
        return scaled(turnout.drawn, turnout.weights[turnout.replied])
