"""Devices of different speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.parameters import Real, Whole
from fedcohort.core.streams import stream
from fedcohort.core.types import Floats, Ints
from fedcohort.simulation.availability.base import Availability


@dataclass(frozen=True)
class Devices(Availability):
    """Everyone is there, on devices of different speed.

    The latency of client i in a round is ``exp(spread * s_i + jitter * e)``: s_i is standard
    normal and belongs to the device, e to the round. Seconds, if 1 is a second.

    Parameters
    ----------
    spread
        How different the devices are; 1 makes the slowest of 100 some 150 times slower than
        the fastest.
    jitter
        How much a device changes from round to round.
    seed
        Which devices.
    """

    spread: Annotated[float, Real(0)] = 1.0
    jitter: Annotated[float, Real(0)] = 0.1
    seed: Annotated[int, Whole(0)] = 0

    name: ClassVar[str] = "devices"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        return None

    def latency(self, n: int, round: int, rng: np.random.Generator) -> Floats:
        devices = stream(self.seed, "devices").standard_normal(n)
        return np.exp(self.spread * devices + self.jitter * rng.standard_normal(n))
