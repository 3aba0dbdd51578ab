"""How much a few liars count: a fleet of which some say whatever brings them into the cohort.

Clients are made up: log-normal sizes, labels, losses that vary from round to round, updates of some
typical length. Nobody trains; what is measured is who is chosen, with which weight, and how much of
the server's step comes from whom. A lie that a scheme does not listen to is not told.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fedcohort._internal.errors import FedcohortWarning
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.schemes import as_scheme
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import UPDATE, Ask, Signal
from fedcohort.selection._scheme import Scheme
from fedcohort.selection._scripted import ScriptedClient
from fedcohort.server._aggregators import Plain, weighted_sum
from fedcohort.server._dropouts import AsDrawn
from fedcohort.server._guards import LOSS_BIT, Hardened, guards
from fedcohort.server._ledger import Ledger
from fedcohort.server._membership import round_context
from fedcohort.server._round import run_round
from fedcohort.server._state import Setup, State
from fedcohort.server._transport import (
    CollectUpdates,
    Responses,
    TrainRequest,
    Transport,
    UpdateBlock,
)

LIES = {
    "size": "10,000 times the samples",
    "loss": "just above the highest honest loss",
    "huge loss": "1e30",
    "update": "10,000 times as long",
    "data": "all samples of one class, for a group of one's own",
    "latency": "0",
}
"""What attackers say, by what they lie about; ``"all"`` is everything at once."""
FACTOR = 10_000
CLASSES, DIMENSION = 10, 8


class Influence(NamedTuple):
    """What attackers had of all rounds together, each in [0, 1]."""

    places: float
    """Of the places in cohorts."""
    weight: float
    """Of the weight; where answers count per sample, of the step: nobody else knows the weight."""
    step: float
    """Of sum_i omega_i ||delta_i||, as it was added up."""


def lies_to(scheme: Scheme[Any]) -> list[str]:
    """The lies that a scheme can hear."""
    signals: set[Signal] = {*scheme.asks, *scheme.listens}
    needs = frozenset[str]().union(*(signal.needs or () for signal in signals))
    out = ["size", "update"]
    out += ["loss", "huge loss"] if needs & {"loss", "sample_losses"} else []
    out += ["data"] if needs & {"label_counts", "feature_counts"} else []
    out += ["latency"] if hasattr(scheme, "latencies") else []
    return [*out, "all"]


def attacked(
    scheme: Scheme[Any] | str,
    lie: str,
    *,
    n: int = 1000,
    attackers: int = 10,
    rounds: int = 400,
    hardened: Hardened = None,
    seed: int = 0,
) -> Influence:
    """What ``attackers`` of n clients that tell a lie have of ``rounds`` rounds of a scheme."""
    chooser = as_scheme(scheme)
    fleet = Fleet(n, attackers, lie, seed, {signal.name: signal for signal in chooser.listens})
    setup = Setup(
        chooser,
        seed,
        aggregator=_Watching(),
        dropouts=AsDrawn(),
        guards=guards(hardened),
    )
    federation = setup.admitted(Federation.from_sizes(fleet.sizes))
    state, ledger = State.first(setup, federation, np.zeros(DIMENSION)), Ledger()
    places = weight = total = draws = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedcohortWarning)
        for round in range(rounds):
            fleet.round = round
            context = round_context(state, None, fleet.latency)
            state, record = run_round(setup, state, context, fleet, ledger)
            cohort, bad = record.cohort, fleet.bad[record.cohort.clients]
            size = np.abs(cohort.weights)
            weight, total = weight + size[bad].sum(), total + size.sum()
            places, draws = places + cohort.draws[bad].sum(), draws + cohort.draws.sum()
    moved: Floats = state.aggregator.moved
    step = float(moved[fleet.bad].sum() / moved.sum()) if moved.any() else 0.0
    weighed = float(weight / total) if total else 0.0
    return Influence(
        float(places / max(draws, 1)), step if chooser.counts_samples else weighed, step
    )


@dataclass
class Fleet(Transport):
    """Made-up clients, the first of which lie."""

    n: int
    attackers: int
    lie: str
    seed: int = 0
    listened: dict[str, Signal] = field(default_factory=dict)
    """The signals that a scheme reads off answers, by name."""
    round: int = 0
    _rows: dict[Any, Array] = field(default_factory=dict)

    name: ClassVar[str] = "a fleet"

    def tells(self, lie: str) -> bool:
        """Whether that lie is told."""
        return self.lie in (lie, "all")

    @cached_property
    def bad(self) -> Bools:
        """(n,) who lies: spread over all positions."""
        out = np.zeros(self.n, dtype=bool)
        out[np.linspace(0, self.n - 1, self.attackers).astype(np.int64)] = True
        return out

    @cached_property
    def sizes(self) -> Ints:
        """(n,) as they are told."""
        told = 1 + (100 * stream(self.seed, "sizes").lognormal(0.0, 1.0, self.n)).astype(np.int64)
        return np.where(self.bad & self.tells("size"), FACTOR * told, told)

    @cached_property
    def latency(self) -> Floats:
        """(n,) as it seems."""
        takes = stream(self.seed, "latency").lognormal(0.0, 1.0, self.n)
        return np.where(self.bad & self.tells("latency"), 0.0, takes)

    def losses(self) -> Floats:
        """(n,) of this round, as they are told."""
        base = stream(self.seed, "losses").lognormal(0.0, 0.3, self.n)
        told = base * stream(self.seed, "losses", self.round + 1).lognormal(0.0, 0.3, self.n)
        if self.tells("huge loss") and self.lie != "all":
            return np.where(self.bad, 1e30, told)
        return np.where(self.bad & self.tells("loss"), 1.01 * told[~self.bad].max(), told)

    def ask(self, ask: Ask) -> Array:
        signal = ask.signal
        if signal.needs == {"loss"} and signal.shape == ():
            told = self.losses()[ask.clients]
            bit = signal == LOSS_BIT
            return (told > float(ask.settings["threshold"])) * 1.0 if bit else told
        key = signal, tuple(ask.settings.items())
        if key not in self._rows:
            self._rows[key] = np.array(
                [_Member(self, i).says(signal, ask.settings) for i in range(self.n)]
            )
        return self._rows[key][ask.clients]

    def train(self, train: TrainRequest) -> Responses:
        return Responses(train.clients)

    def answers(self, fold: CollectUpdates) -> Iterator[UpdateBlock]:
        cohort = fold.cohort
        if not len(cohort):
            return
        updates = self.ask(Ask(UPDATE, cohort.clients))
        heard = {
            name: self.ask(Ask(self.listened[name], cohort.clients))
            for name in fold.listens - {UPDATE.name}
        }
        counted = None
        if cohort.per_sample or cohort.data_rate < 1:
            rng = stream(self.seed, "samples", self.round)
            numbers = rng.binomial(self.sizes, cohort.data_rate)[cohort.clients]
            if cohort.per_sample:
                updates, counted = updates * numbers[:, None], cohort.weights * numbers
            else:  # who lies about its update always has one
                sent = (numbers > 0) | (self.bad[cohort.clients] & self.tells("update"))
                updates = updates * sent[:, None]
        yield UpdateBlock(cohort.clients, updates, heard, counted=counted)


class _Member(ScriptedClient):
    """A client of a fleet."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        super().__init__(number, int(fleet.sizes[number]), fleet.seed, DIMENSION, CLASSES)
        self._fleet, self._lies = fleet, bool(fleet.bad[number])

    def offer_update(self) -> Array:
        factor = FACTOR if self._lies and self._fleet.tells("update") else 1
        return factor * super().offer_update()

    def offer_label_counts(self) -> Ints:
        if not (self._lies and self._fleet.tells("data")):
            return super().offer_label_counts()
        before = int(np.count_nonzero(self._fleet.bad[: self._number]))
        return np.where(np.arange(CLASSES) == before % CLASSES, self._samples, 0)


@dataclass(frozen=True, eq=False)
class _Moved:
    """How far each client has moved the model, all rounds together."""

    moved: Floats  # (n,)


@dataclass(frozen=True)
class _Watching(Plain):
    """The plain sum, with a note of whose it is."""

    name: ClassVar[str] = "watching"

    def start(self, importance: Floats, dimension: int) -> Any:
        return _Moved(np.zeros(len(importance)))

    def begin(self, memory: Any, cohort: Cohort, importance: Floats | None = None) -> Any:
        return memory.moved.copy(), np.zeros(DIMENSION)

    def add(self, account: Any, clients: Ints, weights: Floats, updates: Array) -> Any:
        moved, total = account
        lengths = np.abs(weights) * np.linalg.norm(updates, axis=1)
        moved[clients] += lengths / max(float(lengths.sum()), 1e-300)
        return moved, total + weighted_sum(weights, updates)

    def finish(self, account: Any, dimension: int) -> Any:
        moved, total = account
        return total, _Moved(moved)
