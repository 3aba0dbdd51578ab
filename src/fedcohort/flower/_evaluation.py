"""Who evaluates the model."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Ints
from fedcohort.flower import _monitoring, _wire
from fedcohort.flower._exchange import Outgoing, received
from fedcohort.flower._monitoring import Averaging, Told, metrics_of
from fedcohort.flower._session import Session
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._scheme import EVALUATED
from fedcohort.server._reply_validation import Fault, Form

log = logging.getLogger("flwr.fedcohort")
EVALUATORS = ("nobody", "cohort", "everyone")
Evaluators = str | float | None
"""Who evaluates: one of `EVALUATORS`, a share of the clients, or None for what is usual."""


class Evaluation:
    """The evaluation of the models of a run by clients.

    Parameters
    ----------
    who
        ``"nobody"``, ``"cohort"``, ``"everyone"``, a share of the clients; None for everyone who
        has an ``@app.evaluate()``, as Flower's own strategies do, unless the scheme hides sizes.
    session
        The run.
    averaging
        What becomes of the metrics.
    least
        How many evaluate at least, where a share does.
    """

    def __init__(self, who: Evaluators, session: Session, averaging: Averaging, least: int) -> None:
        self.session, self.averaging, self.least = session, averaging, least
        self.usual = who is None
        # Stock apps report how many samples they evaluate on: nobody asks for that unasked.
        hides = session.setup.scheme.counts_samples
        self.who = who or ("nobody" if hides else "everyone")
        self.certain = not self.usual and self.who != "nobody"
        """Whether it is known that clients evaluate: by default only when they have come."""
        self._letters: Sequence[Outgoing] = ()

    def check(self, arrays: ArrayRecord) -> None:
        """Say before the first round what evaluation costs, or that clients cannot do it."""
        told, nodes = self.session.population.offers, self.session.population.nodes
        unable = [key for key, offers in told.items() if _wire.EVALUATE not in offers]
        if self.usual and len(unable) == len(nodes):
            self.who = "nobody"
        if self.who == "nobody":
            hides = self.session.setup.scheme.counts_samples
            why = ": no client has an @app.evaluate()" if len(unable) == len(nodes) else ""
            why = ', so that no size is told; ask by evaluate="everyone"' if hides else why
            log.info("\t├──> Evaluation by clients: nobody%s", why if self.usual else "")
            return
        if unable and not self.usual:
            what = f"evaluate={self.who!r} needs an @app.evaluate() function in the client app"
            if len(unable) == len(nodes):
                raise BadInput(f"{what}, and no client has one: write it, or leave out evaluate=.")
            log.warning("\t├──> %s: %d of %d have none", what, len(unable), len(told))
        self.certain = True
        who = f"{self.who:.0%} of them" if isinstance(self.who, float) else self.who
        size, less = _monitoring.megabytes(arrays), ' (less: evaluate="cohort", 0.1 or "nobody")'
        log.info(
            "\t├──> Evaluation by clients: %s; each is sent the model once a round, %.2f MB%s",
            who,
            size,
            less if self.usual else "",
        )
        if self.usual:
            log.info("\t├──> so the server also learns: %s", EVALUATED)

    def invitations(
        self, arrays: ArrayRecord, config: Mapping[str, Any], cohort: Cohort, server_round: int
    ) -> list[Message]:
        """Ask the cohort, or everyone who is there, how good the new model is."""
        self._letters = ()
        if self.who == "nobody":
            return []
        wanted = self._wanted(cohort, server_round)
        config = {**config, "server-round": server_round}
        algorithm = self.session.setup.algorithm
        content = RecordDict({_wire.ARRAYS: arrays})
        if algorithm.models > 1:  # everybody evaluates the one that fits best
            config[_wire.ALGORITHM] = algorithm.spec
            content.update(self.session.vectors())
        content[_wire.CONFIG] = ConfigRecord(config)
        self._letters = self.session.letters(wanted, lambda _: content, _wire.EVALUATE)
        there = len(self.session.population.nodes)
        log.info("configure_evaluate: Sampled %d nodes (out of %d)", len(self._letters), there)
        return [letter.message for letter in self._letters]

    def _wanted(self, cohort: Cohort, server_round: int) -> Ints:
        """Positions of those who are asked."""
        session = self.session
        if self.who == "cohort":
            return cohort.clients
        here, offers = session.available, session.population.offers
        wanted = np.arange(len(session.federation)) if here is None else here
        if self.usual:  # whoever was not asked what it can do is taken at Flower's word
            ids = session.federation.ids
            can = [_wire.EVALUATE in offers.get(ids[i], (_wire.EVALUATE,)) for i in wanted.tolist()]
            wanted = wanted[np.array(can, dtype=bool)]
        if isinstance(self.who, float):
            number = min(len(wanted), max(int(self.who * len(wanted)), self.least))
            rng = stream(session.setup.seed, "evaluate", server_round)
            wanted = np.sort(rng.choice(wanted, number, replace=False))
        return wanted

    def metrics(self, replies: Iterable[Message]) -> dict[str, Any] | None:
        """The mean of what clients report, by importance; for show. None if nobody was asked."""
        if not self._letters:
            return None
        session, gate = self.session, self.session.gate
        before = gate.counts.total()
        reports = received(gate, self._letters, replies, session.round_name, Form({}), [])
        told, importance, useful = [], session.federation.importance, False
        for report in reports:
            good, bad = metrics_of(report.message)
            told.append(Told(float(importance[report.client]), report.message))
            useful = useful or bool(good)
            if bad:
                gate.found(report.client, Fault.NOT_FINITE, f"metrics that are no numbers: {bad}")
        failures = gate.counts.total() - before
        _monitoring.received("evaluate", len(reports), failures)
        _monitoring.rejected(gate)
        if not useful:
            ends = self.usual and not session.population.offers  # they may run any app
            more = " Nobody is asked again." if ends else ""
            quote = gate.quote() if failures else ""
            log.warning("\t├──> no client evaluated the model.%s%s", quote, more)
            self.who = "nobody" if ends else self.who
        return self.averaging(told)
