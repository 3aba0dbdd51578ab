"""What models with sessions of random lengths share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedcohort.core.parameters import Real
from fedcohort.core.streams import stream
from fedcohort.core.types import Floats
from fedcohort.simulation.availability.base import InTime

CYCLES = 16
"""Sessions that are drawn at a time; those of a client are the same whoever asks, and when."""


@dataclass(frozen=True)
class Alternating(InTime):
    """Sessions and absences in turn, of random lengths, each client on its own.

    Parameters
    ----------
    online
        Seconds that a session lasts, on average.
    offline
        Seconds between two sessions, on average.
    """

    online: Annotated[float, Real(0, open_low=True)] = 600.0
    offline: Annotated[float, Real(0, open_low=True)] = 1200.0

    @abstractmethod
    def lengths(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """Lengths of sessions with mean 1."""

    def until(self, n: int, now: float, seed: int) -> Floats:
        """Every client starts a while ago, within its first cycle: by now it is anywhere in one."""
        block, begin = 0, -(self.online + self.offline) * stream(seed, "sessions").random(n)
        out = np.full(n, float(now))
        waiting = np.arange(n)
        while len(waiting):
            rng = stream(seed, "sessions", block + 1)
            on = self.online * self.lengths(
                rng, (n, CYCLES)
            )  # all clients: each has its own numbers
            off = self.offline * rng.standard_exponential((n, CYCLES))
            ends = begin[:, None] + np.cumsum(on + off, axis=1)
            starts = ends - on - off
            inside = (starts <= now) & (now < starts + on)
            there = inside[waiting].any(axis=1)
            place = inside[waiting].argmax(axis=1)
            out[waiting[there]] = (starts + on)[waiting[there], place[there]]
            waiting = waiting[ends[waiting, -1] <= now]
            begin, block = ends[:, -1], block + 1
        return out
