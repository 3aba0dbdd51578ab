"""What models of availability share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fedcohort.core.errors import BadInput
from fedcohort.core.parameters import Checked
from fedcohort.core.types import Floats, Ints


class Availability(Checked, ABC):
    """A model of who can take part."""

    name: ClassVar[str]

    @abstractmethod
    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        """Positions of the clients that are there; None for all."""

    def latency(self, n: int, round: int, rng: np.random.Generator) -> Floats | None:
        """(n,) how long the round takes each client; None where the model does not say."""
        return None


class InTime(Availability):
    """A model of who can take part when, by the clock of devices; clients leave as they train."""

    @abstractmethod
    def until(self, n: int, now: float, seed: int) -> Floats:
        """(n,) when each client that is there at the second ``now`` leaves; ``now`` if it is away.

        The same for every scheme: it depends on nothing but what is given.
        """

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        raise BadInput(f"The availability model '{self.name}' needs devices, which make time.")
