"""What a run is made of: what does not change, what does, and who was chosen in a round."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Ask, Signal
from fedcohort.selection._scheme import Disclosure, RoundContext, Scheme
from fedcohort.server._aggregators import Aggregator, Plain
from fedcohort.server._dropouts import Attendance, DropOutRule, Redraw
from fedcohort.server._guards import Guard, wanted, withdrawn
from fedcohort.server._optimizers import Optimiser, OptimiserState, Sgd
from fedcohort.server._records import Latencies
from fedcohort.server._stages import Stages
from fedcohort.server._stragglers import StragglerRule, Wait
from fedcohort.training._algorithms import Algorithm, Layers, LocalSgd


class Statistics(NamedTuple):
    """Running statistics in a flat model, such as the running means of BatchNorm.

    No gradient moves them. The server averages them over the clients of a round, with weights
    divided by their sum; the optimizer does not step them.
    """

    positions: Ints
    """Positions of all running statistics."""
    variances: Ints
    """Positions of the running variances, which stay at 0 or above."""

    @classmethod
    def of(cls, layers: Layers, names: Collection[str], last: int = 0) -> Statistics:
        """Return the positions of these layers, and of the ``last`` numbers of the model.

        >>> Statistics.of({"w": (2,), "running_var": (1,)}, {"running_var"})
        Statistics(positions=array([2]), variances=array([2]))
        """
        ends = np.cumsum([math.prod(shape) for shape in layers.values()], dtype=np.int64)
        dimension = int(ends[-1]) if len(ends) else 0
        chosen, variance = np.zeros(dimension, dtype=bool), np.zeros(dimension, dtype=bool)
        chosen[dimension - last :] = True
        for (name, shape), end in zip(layers.items(), ends.tolist(), strict=True):
            part = slice(end - math.prod(shape), end)
            chosen[part] |= name in names
            variance[part] = name.endswith("running_var")
        return cls(np.flatnonzero(chosen), np.flatnonzero(chosen & variance))

    @staticmethod
    def named(names: Iterable[str]) -> set[str]:
        """Return the names that torch gives to running statistics.

        >>> Statistics.named(["bn.weight", "bn.running_mean"])
        {'bn.running_mean'}
        """
        return {name for name in names if name.rpartition(".")[2] in RUNNING}


RUNNING = ("running_mean", "running_var", "num_batches_tracked")
"""Names of BatchNorm's running statistics in torch."""
NO_STATISTICS = Statistics(np.empty(0, np.int64), np.empty(0, np.int64))


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
    guards: tuple[Guard, ...] = ()
    """What is done about clients that lie."""
    stragglers: StragglerRule = field(default_factory=Wait)
    """When a round stops waiting."""
    statistics: Statistics = field(default=NO_STATISTICS, compare=False)
    """The running statistics of the model; empty until the model is known."""
    stages: Stages = field(init=False, repr=False, compare=False)
    """The optional stages of a round, as the parts above need them."""
    listens: frozenset[str] = field(init=False, repr=False, compare=False)
    """Names of the signals that come with updates."""
    asks: frozenset[Signal] = field(init=False, repr=False, compare=False)
    """Signals that scheme and aggregator may ask clients for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", Stages.of(self))
        object.__setattr__(self, "asks", self.scheme.asks | self.aggregator.asks)
        object.__setattr__(self, "listens", frozenset(s.name for s in self.scheme.listens))

    def for_model(self, statistics: Statistics) -> Setup:
        """Return the setup for a model with these running statistics.

        Raise BadInput if the local algorithm or the aggregator cannot train such a model.
        """
        setup = replace(self, statistics=statistics)
        self.algorithm.fits(len(statistics.positions))
        if unfit := self.aggregator.unfit(setup):
            raise BadInput(unfit)
        return setup

    @property
    def m(self) -> int | None:
        """How many clients the scheme wants in a round; None where it does not say."""
        return wanted(self.scheme)

    def admitted(self, federation: Federation) -> Federation:
        """The clients as they are believed."""
        for guard in self.guards:
            federation = guard.admitted(federation)
        return federation

    def disclosures(self, rounds: int) -> tuple[Disclosure, ...]:
        """What the server learns by questions, as the guards let it ask."""
        told = self.scheme.disclosures(rounds)
        more = self.aggregator.asks - self.scheme.asks
        told += tuple(
            Disclosure(s.name, "once", s.discloses) for s in sorted(more, key=lambda s: s.name)
        )
        for guard in self.guards:
            told = tuple(guard.disclosed(each, self.scheme) for each in told)
        return told

    def hardening(self) -> dict[str, Any]:
        """The guards, and the claims of the scheme that do not hold so; {} where nothing is."""
        given_up = withdrawn(self.scheme, [*self.guards, self.aggregator, self.stragglers])
        out: dict[str, Any] = {}
        if self.guards:
            out["hardened"] = [guard.spec for guard in self.guards]
        if self.guards or given_up:
            out["withdrawn"] = sorted(claim.value for claim in given_up)
        return out


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
    guards: tuple[Any, ...] = ()  # what each of them remembers
    latencies: Latencies = field(default_factory=dict)  # how long clients take, as was measured

    @classmethod
    def first(
        cls, setup: Setup, federation: Federation, theta: Floats, layers: Layers | None = None
    ) -> State:
        """Before the first round; ``layers`` as for `fedcohort.training.Algorithm.start`."""
        n, dimension, algorithm = len(federation), len(theta), setup.algorithm
        return cls(
            0,
            federation,
            None,
            theta,
            setup.optimiser.start(algorithm.models * dimension),
            setup.aggregator.start(federation.importance, algorithm.width(dimension)),
            Attendance.of(n),
            algorithm.start(theta, stream(setup.seed, "models"), layers),
            np.full(n, -1, dtype=np.int64),
            tuple(
                guard.start(federation, setup.scheme, stream(setup.seed, f"guard {guard.name}"))
                for guard in setup.guards
            ),
        )

    def models(self, setup: Setup) -> Floats:
        """(models, d) every model: the first, and those that a local algorithm has beside it."""
        others = setup.algorithm.others
        if not others:
            return self.theta[None]
        return np.stack([self.theta, *(self.algorithm[name] for name in others)])

    def served(self, setup: Setup, theta: Floats) -> State:
        """The same rounds with another server or another model: what these remember is gone."""
        return replace(
            State.first(setup, self.federation, theta),
            round=self.round,
            scheme=self.scheme,
            attendance=self.attendance,
            counted=self.counted,
            guards=self.guards,
            latencies=self.latencies,
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
    drawn
        The cohort that the law gave, if `cohort` was put in its place; None otherwise.
    """

    round: int
    context: RoundContext
    cohort: Cohort
    law: Design | None = None
    heard: tuple[Heard, ...] = ()
    drawn: Cohort | None = None

    @property
    def deserted(self) -> bool:
        """Whether nobody was there to be chosen: not a draw of nobody."""
        return self.context.available is not None and len(self.context.available) == 0
