"""All devices alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.simulation.devices.base import Speeds, Typical


@dataclass(frozen=True, kw_only=True)
class Equal(Typical):
    """All devices alike; those with more data still take longer, if they work by epochs."""

    name: ClassVar[str] = "equal"

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        return self.typical(n)
