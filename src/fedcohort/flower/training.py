"""Invitations to train, and what comes back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict

from fedcohort.core.cohort import Cohort, Replies
from fedcohort.core.conversation import UPDATE
from fedcohort.core.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.post import Admitted, Letter, received
from fedcohort.flower.session import Session
from fedcohort.server.gate import SPARE, Fault, Form

log = logging.getLogger("flwr.fedcohort")


@dataclass
class Training:
    """The training of one round.

    Parameters
    ----------
    session
        The run.
    config
        What the user wants every client to know.
    timeout
        Seconds to wait for replacements.
    largest
        The largest change of a parameter that is believed.
    per_draw
        Whether a client is invited once per draw.
    """

    session: Session
    config: Mapping[str, Any]
    timeout: float
    largest: float
    per_draw: bool
    trained: dict[int, list[Admitted]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listens = {s.name for s in self.session.scheme.listens if s != UPDATE}

    # -- out ---------------------------------------------------------------------------------

    def invitations(self, clients: Ints, cohort: Cohort) -> list[Letter]:
        """One message to every client, or one for each of its draws."""
        config = {
            **self.config,
            "server-round": self.session.selector.round + 1,
            **self.session.context(),
            wire.DATA_RATE: float(cohort.data_rate),
            wire.PER_SAMPLE: bool(cohort.per_sample),
            **({wire.LISTENS: sorted(self.listens)} if self.listens else {}),
        }
        times = dict(zip(cohort.clients.tolist(), cohort.draws.tolist(), strict=True))
        most = max(times.values(), default=1) if self.per_draw else 1
        letters = []
        for draw in range(most):
            wanted = [c for c in clients.tolist() if draw == 0 or times.get(c, 1) > draw]
            letters += self._letters(np.array(wanted, dtype=np.int64), config, draw)
        return letters

    def _letters(self, clients: Ints, config: Mapping[str, Any], draw: int) -> list[Letter]:
        def content(client: int) -> RecordDict:
            streams = self.session.streams(client, draw)
            return RecordDict(
                {wire.ARRAYS: self.session.sent, wire.CONFIG: ConfigRecord({**config, **streams})}
            )

        return self.session.letters(clients, content, wire.TRAIN)

    def replacements(self, clients: Ints, cohort: Cohort) -> Ints:
        """Invite clients in place of others; returns those that answered."""
        letters = self.invitations(clients, cohort)
        log.info("\t├──> %d replacements are asked", len(letters))
        messages = [letter.message for letter in letters]
        replies = self.session.grid.send_and_receive(messages, timeout=self.timeout)
        return self.receive(letters, replies)

    # -- back --------------------------------------------------------------------------------

    def receive(self, letters: Sequence[Letter], replies: Iterable[Message]) -> Ints:
        """Let reports through the gate; returns the clients whose reports are good."""
        layout = self.session.layout
        form = Form(dict(layout.shapes), limit=layout.nbytes + 16 * layout.dimension + SPARE)
        records = (wire.ARRAYS, wire.CHANGE)
        name = self.session.round_name
        good = []
        for report in received(self.session.gate, letters, replies, name, form, records):
            fault = self._fault(report)
            if fault is None:
                self.trained.setdefault(report.client, []).append(report)
                good.append(report.client)
            else:
                self.session.gate.found(report.client, fault)
        return np.unique(np.array(good, dtype=np.int64))

    def _fault(self, report: Admitted) -> Fault | None:
        """What only a look at the model, or at the scheme, can tell."""
        change = self._change(report)
        if change.size and not np.abs(change).max() <= self.largest:
            return Fault.OUT_OF_RANGE
        return None if self._overheard(report) is not None else Fault.WRONG_KEYS

    def _overheard(self, report: Admitted) -> dict[str, Array] | None:
        """What the scheme listens to, as it came with an update; None if it is not sound."""
        if not self.listens:
            return {}
        try:
            found = wire.from_record(report.message.content.array_records[wire.ANSWER])
        except (KeyError, wire.Malformed):
            return None
        return None if Form(dict.fromkeys(self.listens)).fault(found) else found

    def _change(self, report: Admitted) -> Array:
        return self.session.change(dict(report.arrays), report.record)

    def updates(self, clients: Ints) -> Array:
        """(k, d) one update per client; of several draws the mean."""
        rows = []
        for client in clients.tolist():
            each = [self._change(report) for report in self.trained[client]]
            rows.append(each[0] if len(each) == 1 else np.mean(each, axis=0))
        return np.stack(rows) if rows else np.empty((0, self.session.layout.dimension))

    def replies(self, clients: Ints, updates: Array) -> Replies:
        """What the scheme observes."""
        heard = [self._overheard(self.trained[client][0]) or {} for client in clients.tolist()]
        signals = {name: np.asarray([row[name] for row in heard]) for name in self.listens}
        if UPDATE in self.session.scheme.listens:
            signals[UPDATE.name] = updates
        return Replies(clients, signals)

    def metrics(self, cohort: Cohort) -> dict[str, float]:
        """The mean of what clients report about their training; for show."""
        weighed = zip(cohort.clients.tolist(), cohort.weights.tolist(), strict=True)
        return mean_metrics((w, self.trained[client][0].message) for client, w in weighed)


def mean_metrics(told: Iterable[tuple[float, Message]]) -> dict[str, float]:
    """The weighted mean of every metric, over those who report it as a finite number."""
    sums: dict[str, tuple[float, float]] = {}
    for weight, reply in told:
        for record in reply.content.metric_records.values():
            for name, value in record.items():
                if isinstance(value, int | float) and np.isfinite(value):
                    total, mass = sums.get(name, (0.0, 0.0))
                    sums[name] = (total + weight * value, mass + weight)
    return {name: total / mass for name, (total, mass) in sums.items() if mass > 0}
