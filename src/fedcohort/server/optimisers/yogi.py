"""FedYogi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.core.types import Floats
from fedcohort.server.optimisers.base import Adaptive


@dataclass(frozen=True)
class Yogi(Adaptive):
    """FedYogi: squares move by a bounded step."""

    name: ClassVar[str] = "yogi"

    def second_moment(self, second: Floats, square: Floats) -> Floats:
        return second - (1 - self.beta2) * square * np.sign(second - square)
