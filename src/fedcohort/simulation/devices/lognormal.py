"""Devices of log-normal speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.parameters import Maybe, Real
from fedcohort.simulation.devices.base import Speeds, Typical


@dataclass(frozen=True, kw_only=True)
class Lognormal(Typical):
    """Seconds per sample and line speeds are log-normal around a typical device.

    Parameters
    ----------
    sigma
        How different processors are: 1 makes the slowest of 100 some 150 times slower than the
        fastest.
    network
        The same of their lines, independently of the processor; as ``sigma`` by default.
    """

    sigma: Annotated[float, Real(0, 10)] = 1.0
    network: Annotated[float | None, Maybe(Real(0, 10))] = None

    name: ClassVar[str] = "lognormal"

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        seconds, down, up = self.typical(n)
        processor, line = np.exp(rng.standard_normal((2, n)))  # a slow line is slow both ways
        spread = self.sigma if self.network is None else self.network
        return Speeds(seconds * processor**self.sigma, down / line**spread, up / line**spread)
