"""FedAdam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core.types import Floats
from fedcohort.server.optimisers.base import Adaptive


@dataclass(frozen=True)
class Adam(Adaptive):
    """FedAdam: squares decay. As published, without bias correction."""

    name: ClassVar[str] = "adam"

    def second_moment(self, second: Floats, square: Floats) -> Floats:
        return self.beta2 * second + (1 - self.beta2) * square
