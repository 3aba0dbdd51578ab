"""What a run is made of: what does not change, what does, and who was chosen in a round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fedcohort.algorithms.base import Algorithm
from fedcohort.algorithms.sgd import LocalSgd
from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Ask
from fedcohort.core.design import Design
from fedcohort.core.federation import Federation
from fedcohort.core.scheme import RoundContext, Scheme
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.server.aggregators import Aggregator, Plain
from fedcohort.server.dropouts import Attendance, DropOutRule, Redraw
from fedcohort.server.optimisers import Optimiser, OptimiserState, Sgd


@dataclass(frozen=True)
class Setup:
    """What does not change during a run."""

    scheme: Scheme[Any]
    seed: int
    optimiser: Optimiser = field(default_factory=Sgd)
    aggregator: Aggregator = field(default_factory=Plain)
    dropouts: DropOutRule = field(default_factory=Redraw)
    quorum: float = 0.0
    """The share of the draws that must be answered; below it the round is void."""
    algorithm: Algorithm = field(default_factory=LocalSgd)


@dataclass(frozen=True, eq=False)
class State:
    """What a run knows between two rounds."""

    round: int  # how many are over
    federation: Federation
    scheme: Any  # what the scheme remembers; None before its first question
    theta: Floats  # (d,) the model
    optimiser: OptimiserState
    aggregator: Any
    attendance: Attendance
    algorithm: Mapping[str, Floats]  # what the server keeps for the local algorithm
    counted: Ints  # (n,) the last round in which each client's answer counted; -1 for never

    @classmethod
    def first(cls, setup: Setup, federation: Federation, theta: Floats) -> State:
        """Before the first round."""
        n, dimension, algorithm = len(federation), len(theta), setup.algorithm
        return cls(
            0,
            federation,
            None,
            theta,
            setup.optimiser.start(algorithm.models * dimension),
            setup.aggregator.start(federation.importance, algorithm.width(dimension)),
            Attendance.of(n),
            algorithm.start(theta, stream(setup.seed, "models")),
            np.full(n, -1, dtype=np.int64),
        )

    def models(self, setup: Setup) -> Floats:
        """(models, d) every model: the first, and those that a local algorithm has beside it."""
        return np.stack([self.theta, *(self.algorithm[name] for name in setup.algorithm.others)])

    def served(self, setup: Setup, theta: Floats) -> State:
        """The same rounds with another server or another model: what these remember is gone."""
        return replace(
            State.first(setup, self.federation, theta),
            round=self.round,
            scheme=self.scheme,
            attendance=self.attendance,
            counted=self.counted,
        )


class Heard(NamedTuple):
    """A question and its answers, as they came."""

    ask: Ask
    rows: Array


@dataclass(frozen=True, eq=False)
class Selection:
    """Who was chosen in a round, and how that came about.

    Parameters
    ----------
    round
        Which.
    context
        Who could take part.
    cohort
        The clients and their weights.
    law
        What the cohort was drawn from; None where there is none.
    heard
        The answers to the scheme's questions: from them the law is found again.
    """

    round: int
    context: RoundContext
    cohort: Cohort
    law: Design | None = None
    heard: tuple[Heard, ...] = ()

    @property
    def deserted(self) -> bool:
        """Whether nobody was there to be chosen: not a draw of nobody."""
        return self.context.available is not None and len(self.context.available) == 0
