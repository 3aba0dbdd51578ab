"""Weights by learnt availability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core.types import Floats
from fedcohort.server.dropouts.base import DropOutRule, jackknifed


@dataclass(frozen=True)
class Hajek(DropOutRule):
    """Weights by learnt availability, scaled to the drawn sum; no further message."""

    name: ClassVar[str] = "hajek"

    def weights(self, drawn: float, answered: Floats, factors: Floats) -> Floats:
        return jackknifed(drawn, answered * factors)
