"""Nothing is done about drop-outs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core.types import Floats
from fedcohort.server.dropouts.base import DropOutRule, Turnout


@dataclass(frozen=True)
class AsDrawn(DropOutRule):
    """Weights as they were; who does not answer counts as unchanged. Biased, and slower."""

    name: ClassVar[str] = "none"
    biased: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False

    def weights(self, turnout: Turnout) -> Floats:
        return turnout.weights[turnout.replied]
