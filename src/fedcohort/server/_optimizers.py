"""Optimizers of the server: the step of the global model along a direction.

``theta + eta_g * direction``, or one of the adaptive rules of Reddi et al., "Adaptive Federated
Optimization" (ICLR 2021), Algorithm 2, in which the direction plays the part of a negative
gradient. All work with every scheme and every estimator. Other packages add theirs through the
entry point group ``fedcohort.optimisers``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.parameters import Checked, Real
from fedcohort._internal.registry import Kind
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Floats
from fedcohort.selection._citation import Citation

# What optimisers of the server share.
#
# ``theta + eta_g * direction``, or one of the adaptive rules of Reddi et al., "Adaptive Federated
# Optimization" (ICLR 2021), Algorithm 2, in which the direction plays the part of a negative
# gradient. All work with every scheme and every estimator.


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


# FedAdagrad.


@dataclass(frozen=True)
class Adagrad(Adaptive):
    """FedAdagrad: squares add up. ``beta2`` is not used."""

    beta1: Annotated[float, Real(0, 1)] = 0.0
    beta2: Annotated[float, Real(0, 1)] = field(default=1.0, repr=False)

    name: ClassVar[str] = "adagrad"

    def second_moment(self, second: Floats, square: Floats) -> Floats:
        return second + square


# FedAdam.


@dataclass(frozen=True)
class Adam(Adaptive):
    """FedAdam: squares decay. As published, without bias correction."""

    name: ClassVar[str] = "adam"

    def second_moment(self, second: Floats, square: Floats) -> Floats:
        return self.beta2 * second + (1 - self.beta2) * square


# The plain step, with or without momentum.


@dataclass(frozen=True)
class Sgd(Optimiser):
    """theta + eta_g v with v = momentum * v + direction: FedAvg, or FedAvgM."""

    eta_g: Annotated[float, Real(0, open_low=True)] = 1.0
    momentum: Annotated[float, Real(0, 1)] = 0.0

    name: ClassVar[str] = "sgd"

    def step(
        self, theta: Floats, direction: Floats, inertia: OptimiserState
    ) -> tuple[Floats, OptimiserState]:
        velocity = self.momentum * inertia.first + direction
        return theta + self.eta_g * velocity, OptimiserState(velocity, inertia.second)


# FedYogi.


@dataclass(frozen=True)
class Yogi(Adaptive):
    """FedYogi: squares move by a bounded step."""

    name: ClassVar[str] = "yogi"

    def second_moment(self, second: Floats, square: Floats) -> Floats:
        return second - (1 - self.beta2) * square * np.sign(second - square)


OPTIMISERS: Kind[Optimiser] = Kind("optimiser", (__name__,), Optimiser, default="sgd")


def optimiser(which: Optimiser | str | None = None, **parameters: Any) -> Optimiser:
    """The optimiser of that name; None is plain SGD, and an optimiser is itself.

    >>> optimiser("sgd", eta_g=0.5)
    Sgd(eta_g=0.5, momentum=0.0)
    >>> optimiser("adam:eta_g=0.5").spec
    'adam:eta_g=0.5,beta1=0.9,beta2=0.99,tau=0.001'
    """
    return OPTIMISERS.build(which, **parameters)
