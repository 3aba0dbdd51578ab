"""FedAdagrad."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Real
from fedcohort.core.types import Floats
from fedcohort.server.optimisers.base import Adaptive


@dataclass(frozen=True)
class Adagrad(Adaptive):
    """FedAdagrad: squares add up. ``beta2`` is not used."""

    beta1: Annotated[float, Real(0, 1)] = 0.0
    beta2: Annotated[float, Real(0, 1)] = field(default=1.0, repr=False)

    name: ClassVar[str] = "adagrad"

    def second_moment(self, second: Floats, square: Floats) -> Floats:
        return second + square
