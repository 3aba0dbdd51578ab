"""Day and night, by time zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.parameters import Real, Whole
from fedcohort.core.streams import stream
from fedcohort.core.types import Floats
from fedcohort.maths._draws import below
from fedcohort.simulation.availability.base import InTime

DAY, HOUR = 86_400.0, 3600.0


@dataclass(frozen=True)
class Diurnal(InTime):
    """Every client is there for some hours of its own day, for instance when its phone charges.

    Parameters
    ----------
    begins
        The hour of the local day at which a client comes, on average.
    hours
        For how long it stays.
    spread
        How much both differ between clients: the standard deviation, in hours.
    zones
        So many time zones, evenly around the globe; each client lives in one of them.
    """

    begins: Annotated[float, Real(0, 24)] = 22.0
    hours: Annotated[float, Real(0, 24)] = 8.0
    spread: Annotated[float, Real(0, 24)] = 1.0
    zones: Annotated[int, Whole(1, 24)] = 24

    name: ClassVar[str] = "diurnal"

    def until(self, n: int, now: float, seed: int) -> Floats:
        rng = stream(seed, "time zones")
        zone = below(rng, self.zones, n) * (24 / self.zones)
        begins, hours = self.spread * rng.standard_normal((2, n))
        stays = HOUR * np.clip(self.hours + hours, 0.0, 24.0)
        since = (now - HOUR * (self.begins + begins - zone)) % DAY  # since it last came
        stays = np.where(stays >= DAY, np.inf, stays)
        return np.where(since < stays, now + (stays - since), now)
