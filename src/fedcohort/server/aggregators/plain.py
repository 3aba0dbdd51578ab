"""The weighted sum of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._cohort import Cohort
from fedcohort.server.aggregators.base import Aggregator, weighted_sum


@dataclass(frozen=True)
class Plain(Aggregator):
    """sum_{i in S} omega_i delta_i: what every paper writes."""

    name: ClassVar[str] = "plain"

    def start(self, importance: Floats, dimension: int) -> None:
        return None

    def begin(self, memory: None, cohort: Cohort, importance: Floats | None = None) -> None:
        return None

    def add(self, account: Floats | None, clients: Ints, weights: Floats, updates: Array) -> Floats:
        moved = weighted_sum(weights, updates)
        return moved if account is None else account + moved

    def finish(self, account: Floats | None, dimension: int) -> tuple[Floats, None]:
        return np.zeros(dimension) if account is None else account, None
