"""Who is there: models of availability.

Each says for a round which clients can take part, from a generator of that round alone, so
that schemes are compared on the same weather.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.errors import BadInput
from fedcohort.core.parameters import Checked, Real, Whole
from fedcohort.core.streams import stream
from fedcohort.core.types import Floats, Ints
from fedcohort.server.named import named


class Availability(Checked, ABC):
    """A model of who can take part."""

    name: ClassVar[str]

    @abstractmethod
    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        """Positions of the clients that are there; None for all."""

    def latency(self, n: int, round: int, rng: np.random.Generator) -> Floats | None:
        """(n,) how long the round takes each client; None where the model does not say."""
        return None


@dataclass(frozen=True)
class Always(Availability):
    """Everyone, every round."""

    name: ClassVar[str] = "always"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        return None


@dataclass(frozen=True)
class Random(Availability):
    """Each client is there with its own probability, independently in every round.

    Parameters
    ----------
    probability
        Of every client, or of each (a tuple with one entry per client).
    """

    probability: float | tuple[float, ...] = 0.8

    name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        chances = np.atleast_1d(np.asarray(self.probability))
        if chances.dtype.kind not in "iuf" or not np.all((chances >= 0) & (chances <= 1)):
            raise BadInput(
                "The 'probability' parameter of random availability must be in [0, 1]. "
                f"Got {self.probability!r} instead."
            )

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        chances = np.asarray(self.probability, dtype=float)
        if chances.ndim and len(chances) != n:
            raise BadInput(
                f"Random availability needs one probability per client: {n} clients, "
                f"{len(chances)} probabilities."
            )
        return np.flatnonzero(rng.random(n) < chances)


@dataclass(frozen=True)
class Cyclic(Availability):
    """Groups of clients in turn: day and night, time zones.

    Client i belongs to group ``i mod groups``; each group is there for ``stay`` rounds.
    """

    groups: Annotated[int, Whole(1)] = 4
    stay: Annotated[int, Whole(1)] = 1

    name: ClassVar[str] = "cyclic"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        turn = round // self.stay % self.groups
        return np.arange(turn, n, self.groups, dtype=np.int64)


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


AVAILABILITIES: dict[str, type[Availability]] = {
    model.name: model for model in (Always, Random, Cyclic, Devices)
}


def availability(name: str, **parameters: object) -> Availability:
    """The availability model of that name.

    >>> availability("cyclic", groups=2).available(5, 1, np.random.default_rng(0))
    array([1, 3])
    """
    return named("availability model", AVAILABILITIES, name, parameters)
