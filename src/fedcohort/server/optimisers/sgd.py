"""The plain step, with or without momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Real
from fedcohort.core.types import Floats
from fedcohort.server.optimisers.base import Optimiser, OptimiserState


@dataclass(frozen=True)
class Sgd(Optimiser):
    """theta + eta_g v with v = momentum * v + direction: FedAvg, or FedAvgM."""

    eta_g: Annotated[float, Real(0, open_low=True)] = 1.0
    momentum: Annotated[float, Real(0, 1)] = 0.0

    name: ClassVar[str] = "sgd"

    def step(
        self, theta: Floats, direction: Floats, inertia: OptimiserState
    ) -> tuple[Floats, OptimiserState]:
        velocity = self.momentum * inertia.first + direction
        return theta + self.eta_g * velocity, OptimiserState(velocity, inertia.second)
