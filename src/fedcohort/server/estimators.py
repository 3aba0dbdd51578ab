"""From the answers of a cohort to the direction of the server's step.

All clients together would move the model by sum_i p_i delta_i. An estimator guesses this from
the cohort alone; it is unbiased whenever the weights are (E omega_i = p_i).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.errors import BadInput, UnknownName
from fedcohort.core.types import Array, Floats, Ints


class Estimator(ABC):
    """Configuration only; what it remembers goes in and comes out."""

    name: ClassVar[str]

    @abstractmethod
    def start(self, importance: Floats, dimension: int) -> Any:
        """The memory before the first round."""

    @abstractmethod
    def direction(
        self, memory: Any, cohort: Cohort, clients: Ints, updates: Array
    ) -> tuple[Floats, Any]:
        """The estimate of sum_i p_i delta_i, and the memory afterwards.

        ``updates`` (k, d) are the answers of ``clients`` (k,), all members of the cohort; who
        did not answer counts as unchanged.
        """


@dataclass(frozen=True)
class Plain(Estimator):
    """sum_{i in S} omega_i delta_i: what every paper writes."""

    name: ClassVar[str] = "plain"

    def start(self, importance: Floats, dimension: int) -> None:
        return None

    def direction(
        self, memory: None, cohort: Cohort, clients: Ints, updates: Array
    ) -> tuple[Floats, None]:
        return weighted_sum(weights_of(cohort, clients), updates), None


@dataclass(eq=False)
class Remembered:
    """What the memory estimator keeps: the last update of every client, and their average."""

    importance: Floats  # (n,)
    last: Array  # (n, d), float32; zero before a client was seen
    average: Floats  # (d,) sum_i p_i last_i, kept up to date


@dataclass(frozen=True)
class Memory(Estimator):
    """sum_i p_i y_i + sum_{i in S} omega_i (delta_i - y_i), y_i = the last update of client i.

    Unbiased for the same target as the plain sum, because E omega_i = p_i; its variance is
    that of the *changes* delta_i - y_i only. It costs no message, but an (n, d) store on the
    server. The store is updated in place: the memory that went in is the one that comes out.
    It remembers what a client does, so it is of no use where answers count per sample.

    References: Gu et al. (MIFA, NeurIPS 2021), Jhunjhunwala et al. (FedVARP, UAI 2022).
    """

    name: ClassVar[str] = "memory"

    def start(self, importance: Floats, dimension: int) -> Remembered:
        n = len(importance)
        return Remembered(importance, np.zeros((n, dimension), np.float32), np.zeros(dimension))

    def direction(
        self, memory: Remembered, cohort: Cohort, clients: Ints, updates: Array
    ) -> tuple[Floats, Remembered]:
        if cohort.per_sample:
            raise BadInput(
                "The memory estimator keeps the update of a client, but here a client sends the "
                "sum over its samples of the round; use the plain estimator."
            )
        changes = updates - memory.last[clients]
        direction = memory.average + weighted_sum(weights_of(cohort, clients), changes)
        memory.average += weighted_sum(memory.importance[clients], changes)
        memory.last[clients] = updates
        return direction, memory


def weights_of(cohort: Cohort, clients: Ints) -> Floats:
    """The weights of those members of the cohort that answered."""
    return cohort.weights[np.searchsorted(cohort.clients, clients)]


def weighted_sum(weights: Floats, rows: Array) -> Floats:
    """sum_i weights_i rows_i in float64; never divided by the sum of the weights."""
    return np.asarray(weights @ rows.astype(np.float64), dtype=np.float64)


ESTIMATORS: dict[str, type[Estimator]] = {Plain.name: Plain, Memory.name: Memory}


def estimator(name: str) -> Estimator:
    """The estimator of that name."""
    if name not in ESTIMATORS:
        raise UnknownName("estimator", name, ESTIMATORS)
    return ESTIMATORS[name]()
