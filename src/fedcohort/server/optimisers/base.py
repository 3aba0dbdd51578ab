"""What optimisers of the server share.

``theta + eta_g * direction``, or one of the adaptive rules of Reddi et al., "Adaptive Federated
Optimization" (ICLR 2021), Algorithm 2, in which the direction plays the part of a negative
gradient. All work with every scheme and every estimator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.citation import Citation
from fedcohort.core.parameters import Checked, Real
from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Floats


@dataclass(frozen=True, eq=False)
class OptimiserState:
    """What an optimiser remembers: first and second moments of the directions."""

    first: Annotated[Floats, Shaped("d")]
    second: Annotated[Floats, Shaped("d")]


class Optimiser(Checked, ABC):
    """Configuration only; what it remembers goes in and comes out."""

    name: ClassVar[str]
    paper: ClassVar[Citation | None] = None
    """Where it was published, for a bibliography."""

    def start(self, dimension: int) -> OptimiserState:
        """The memory before the first round."""
        return OptimiserState(np.zeros(dimension), np.zeros(dimension))

    @abstractmethod
    def step(
        self, theta: Floats, direction: Floats, inertia: OptimiserState
    ) -> tuple[Floats, OptimiserState]:
        """The next model, and the memory afterwards."""


@dataclass(frozen=True)
class Adaptive(Optimiser):
    """theta + eta_g first / (sqrt(second) + tau); subclasses say how ``second`` moves."""

    paper: ClassVar[Citation | None] = Citation(
        "Sashank J. Reddi, Zachary Charles, Manzil Zaheer, Zachary Garrett, Keith Rush, "
        "Jakub Konečný, Sanjiv Kumar, H. Brendan McMahan",
        "Adaptive Federated Optimization",
        "ICLR",
        2021,
        "Algorithm 2",
    )

    eta_g: Annotated[float, Real(0, open_low=True)] = 0.1
    beta1: Annotated[float, Real(0, 1)] = 0.9
    beta2: Annotated[float, Real(0, 1)] = 0.99
    tau: Annotated[float, Real(0, open_low=True)] = 1e-3

    def start(self, dimension: int) -> OptimiserState:
        return OptimiserState(np.zeros(dimension), np.full(dimension, self.tau**2))

    def step(
        self, theta: Floats, direction: Floats, inertia: OptimiserState
    ) -> tuple[Floats, OptimiserState]:
        first = self.beta1 * inertia.first + (1 - self.beta1) * direction
        second = self.second_moment(inertia.second, direction**2)
        moved = theta + self.eta_g * first / (np.sqrt(second) + self.tau)
        return moved, OptimiserState(first, second)

    @abstractmethod
    def second_moment(self, second: Floats, square: Floats) -> Floats: ...
