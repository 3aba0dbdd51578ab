"""What the server does with a direction: the step of the global model.

``theta + eta_g * direction``, or one of the adaptive rules of Reddi et al., "Adaptive Federated
Optimization" (ICLR 2021), Algorithm 2, in which the direction plays the part of a negative
gradient. All work with every scheme and every estimator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core.parameters import Checked, Real
from fedcohort.core.types import Floats
from fedcohort.server.named import named


@dataclass(frozen=True, eq=False)
class Inertia:
    """What an optimiser remembers: first and second moments of the directions."""

    first: Floats
    second: Floats


class Optimiser(Checked, ABC):
    """Configuration only; what it remembers goes in and comes out."""

    name: ClassVar[str]

    def start(self, dimension: int) -> Inertia:
        """The memory before the first round."""
        return Inertia(np.zeros(dimension), np.zeros(dimension))

    @abstractmethod
    def step(self, theta: Floats, direction: Floats, inertia: Inertia) -> tuple[Floats, Inertia]:
        """The next model, and the memory afterwards."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sgd(Optimiser):
    """theta + eta_g v with v = momentum * v + direction: FedAvg, or FedAvgM."""

    eta_g: Annotated[float, Real(0, open_low=True)] = 1.0
    momentum: Annotated[float, Real(0, 1)] = 0.0

    name: ClassVar[str] = "sgd"

    def step(self, theta: Floats, direction: Floats, inertia: Inertia) -> tuple[Floats, Inertia]:
        velocity = self.momentum * inertia.first + direction
        return theta + self.eta_g * velocity, Inertia(velocity, inertia.second)


@dataclass(frozen=True)
class _Adaptive(Optimiser):
    """theta + eta_g first / (sqrt(second) + tau); subclasses say how ``second`` moves."""

    eta_g: Annotated[float, Real(0, open_low=True)] = 0.1
    beta1: Annotated[float, Real(0, 1)] = 0.9
    beta2: Annotated[float, Real(0, 1)] = 0.99
    tau: Annotated[float, Real(0, open_low=True)] = 1e-3

    def start(self, dimension: int) -> Inertia:
        return Inertia(np.zeros(dimension), np.full(dimension, self.tau**2))

    def step(self, theta: Floats, direction: Floats, inertia: Inertia) -> tuple[Floats, Inertia]:
        first = self.beta1 * inertia.first + (1 - self.beta1) * direction
        second = self._second(inertia.second, direction**2)
        moved = theta + self.eta_g * first / (np.sqrt(second) + self.tau)
        return moved, Inertia(first, second)

    @abstractmethod
    def _second(self, second: Floats, square: Floats) -> Floats: ...


@dataclass(frozen=True)
class Adagrad(_Adaptive):
    """FedAdagrad: squares add up. ``beta2`` is not used."""

    beta1: Annotated[float, Real(0, 1)] = 0.0
    beta2: Annotated[float, Real(0, 1)] = field(default=1.0, repr=False)

    name: ClassVar[str] = "adagrad"

    def _second(self, second: Floats, square: Floats) -> Floats:
        return second + square


@dataclass(frozen=True)
class Adam(_Adaptive):
    """FedAdam: squares decay. As published, without bias correction."""

    name: ClassVar[str] = "adam"

    def _second(self, second: Floats, square: Floats) -> Floats:
        return self.beta2 * second + (1 - self.beta2) * square


@dataclass(frozen=True)
class Yogi(_Adaptive):
    """FedYogi: squares move by a bounded step."""

    name: ClassVar[str] = "yogi"

    def _second(self, second: Floats, square: Floats) -> Floats:
        return second - (1 - self.beta2) * square * np.sign(second - square)


OPTIMISERS: dict[str, type[Optimiser]] = {o.name: o for o in (Sgd, Adagrad, Adam, Yogi)}


def optimiser(which: Optimiser | str | None = None, **parameters: float) -> Optimiser:
    """The optimiser of that name; None is plain SGD, and an optimiser is itself.

    >>> optimiser("sgd", eta_g=0.5)
    Sgd(eta_g=0.5, momentum=0.0)
    """
    if isinstance(which, Optimiser) and not parameters:
        return which
    return named("optimiser", OPTIMISERS, Sgd.name if which is None else which, parameters)
