"""What models of availability share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

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
