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

    A run starts in balance: at every second a client is online with probability
    online / (online + offline).

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

    @abstractmethod
    def remaining(self, rng: np.random.Generator, n: int) -> Any:
        """Remaining lengths of n such sessions that are under way at a random time.

        Long sessions are under way more often: the density of the remaining length is
        P(length > x).
        """

    def until(self, n: int, now: float, seed: int) -> Floats:
        """Each client starts within a session, or within an absence (exponential, no memory)."""
        rng = stream(seed, "sessions")
        starts_online = rng.random(n) < self.online / (self.online + self.offline)
        first_on = np.where(starts_online, self.online * self.remaining(rng, n), 0.0)
        block, begin, out = 0, np.zeros(n), np.full(n, float(now))
        waiting = np.arange(n)
        while len(waiting):
            rng = stream(seed, "sessions", block + 1)
            # Numbers of all clients are drawn, so that each client keeps its own.
            on = self.online * self.lengths(rng, (n, CYCLES))
            if block == 0:
                on[:, 0] = first_on
            off = self.offline * rng.standard_exponential((n, CYCLES))
            ends = begin[:, None] + np.cumsum(on + off, axis=1)
            starts = np.column_stack([begin, ends[:, :-1]])  # exact: `ends - on - off` is not
            inside = (starts <= now) & (now < starts + on)
            there = inside[waiting].any(axis=1)
            place = inside[waiting].argmax(axis=1)
            out[waiting[there]] = (starts + on)[waiting[there], place[there]]
            waiting = waiting[ends[waiting, -1] <= now]
            begin, block = ends[:, -1], block + 1
        return out
