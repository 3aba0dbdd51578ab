"""Who evaluates the model, and what becomes of the metrics that clients report."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from fedcohort.core.cohort import Cohort
from fedcohort.core.errors import BadInput
from fedcohort.core.latest import LARGEST
from fedcohort.flower import wire
from fedcohort.flower.exchange import Outgoing, received
from fedcohort.flower.session import Session
from fedcohort.server.gate import SHOWN_NAMES, Fault, Form

log = logging.getLogger("flwr.fedcohort")
EVALUATORS = ("nobody", "cohort", "everyone")
MOST, LONGEST = 100, 100
"""How many metrics of a report are looked at, and the letters of a name."""


class Evaluation:
    """The evaluation of the models of a run by clients.

    Parameters
    ----------
    who
        ``"nobody"``, ``"cohort"`` or ``"everyone"``.
    session
        The run.
    """

    def __init__(self, who: str, session: Session) -> None:
        self.who, self.session = who, session
        self._letters: Sequence[Outgoing] = ()

    def check(self) -> None:
        """Say before the first round if clients cannot evaluate."""
        told = self.session.population.offers
        unable = [key for key, offers in told.items() if wire.EVALUATE not in offers]
        if self.who == "nobody" or not unable:
            return
        what = f"evaluate={self.who!r} needs an @app.evaluate() function in the client app"
        if len(unable) == len(self.session.population.nodes):
            raise BadInput(f"{what}, and no client has one: write it, or leave out evaluate=.")
        log.warning("\t├──> %s: %d of %d have none", what, len(unable), len(told))

    def invitations(
        self, arrays: ArrayRecord, config: Mapping[str, Any], cohort: Cohort
    ) -> list[Message]:
        """Ask the cohort, or everyone who is there, how good the new model is."""
        self._letters = ()
        if self.who == "nobody":
            return []
        wanted, here = cohort.clients, self.session.available
        if self.who == "everyone":
            wanted = np.arange(len(self.session.federation)) if here is None else here
        content = RecordDict({wire.ARRAYS: arrays, wire.CONFIG: ConfigRecord(dict(config))})
        algorithm = self.session.setup.algorithm
        if algorithm.models > 1:  # everybody evaluates the one that fits best
            content[wire.CONFIG] = ConfigRecord({**config, wire.ALGORITHM: algorithm.spec})
            content.update(self.session.vectors())
        self._letters = self.session.letters(wanted, lambda _: content, wire.EVALUATE)
        return [letter.message for letter in self._letters]

    def metrics(self, replies: Iterable[Message]) -> dict[str, float]:
        """The mean of what clients report, by importance; for show."""
        session, gate = self.session, self.session.gate
        reports = received(gate, self._letters, replies, session.round_name, Form({}), [])
        told, importance = [], session.federation.importance
        for report in reports:
            good, bad = metrics_of(report.message)
            told.append((float(importance[report.client]), good))
            if bad:
                gate.found(report.client, Fault.NOT_FINITE, f"metrics that are no numbers: {bad}")
        if self._letters and not any(good for _, good in told):
            log.warning("\t├──> no client evaluated the model.%s", gate.quote())
        return mean_metrics(told)


def metrics_of(reply: Message) -> tuple[dict[str, float], list[str]]:
    """The metrics of a reply that are numbers to reckon with, and some names of the others.

    Lists are left out, as they have no mean.
    """
    good: dict[str, float] = {}
    bad: list[str] = []
    named = (pair for record in reply.content.metric_records.values() for pair in record.items())
    for name, value in itertools.islice(named, MOST):
        if isinstance(value, list) or not (name.isprintable() and len(name) <= LONGEST):
            continue
        if abs(value) <= LARGEST:  # NaN is not
            good[name] = value
        elif len(bad) < SHOWN_NAMES:
            bad.append(name)
    return good, bad


def mean_metrics(told: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """The weighted mean of every metric, over those who report it."""
    sums: dict[str, tuple[float, float]] = {}
    for weight, metrics in told:
        for name, value in metrics.items():
            total, mass = sums.get(name, (0.0, 0.0))
            sums[name] = (total + weight * value, mass + weight)
    return {name: total / mass for name, (total, mass) in sums.items() if mass > 0}
