"""The questions of a scheme as messages, and the answers as rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Ask
from fedcohort.core.errors import BadInput, TooFewClients
from fedcohort.core.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.post import received
from fedcohort.flower.session import Session
from fedcohort.server.gate import SPARE, Form

log = logging.getLogger("flwr.fedcohort")

NEVER_NEGATIVE = frozenset({"size", "label_histogram", "update_norm"})
ATTEMPTS = 2
"""How often a question is put to a client that does not answer it."""


@dataclass
class Questions:
    """The conversation of one round, over Flower.

    A client that does not answer, twice, has a row of NaN: most schemes know what to do. One
    that refuses such rows is asked again without that client: it is not there in this round,
    or, if it could not answer what the scheme must know beforehand, not at all.
    """

    session: Session
    _heard: dict[tuple[str, str, Any], Array] = field(default_factory=dict)
    _silent: set[Any] = field(default_factory=set)  # keys of clients that did not answer

    def choose(self) -> Cohort:
        """The cohort of the round."""
        left_out: set[Any] = set()
        while True:
            session = self.session
            try:
                return session.selector.select(self._available(left_out), self.ask)
            except BadInput:
                new = self._silent - left_out
                if not new:
                    raise
                left_out |= new
                log.warning("\t├──> without %d clients that do not answer", len(left_out))
                if not session.selector.started:
                    session.left_out |= new
                    session.found([k for k in session.federation.ids if k not in left_out])

    def admit(self, new: list[Any]) -> None:
        """Let new clients in; those who cannot answer what the scheme must know stay out."""
        try:
            self.session.admit(new, self.ask)
        except (BadInput, TooFewClients) as error:
            log.warning("\t├──> new clients cannot take part yet: %s", error)
            self.session.left_out |= self._silent & set(new)

    def _available(self, left_out: set[Any]) -> Ints | None:
        here, ids = self.session.available, self.session.federation.ids
        if not left_out:
            return here
        everyone = np.arange(len(ids)) if here is None else here
        return np.array([i for i in everyone.tolist() if ids[i] not in left_out], dtype=np.int64)

    def ask(self, ask: Ask) -> Array:
        """Put a question to exactly the clients it is meant for; one row per client."""
        ids = self.session.federation.ids
        rows: dict[int, Array] = {}
        for client in ask.clients.tolist():
            known = self._heard.get(self._name(ask, ids[client]))
            if known is not None:
                rows[client] = known
        for _ in range(ATTEMPTS):
            missing = np.array([c for c in ask.clients.tolist() if c not in rows], dtype=np.int64)
            if len(missing):
                rows |= self._exchange(ask, missing)
        rows = self.session.gate.alike(rows)
        for client, row in rows.items():
            self._heard[self._name(ask, ids[client])] = row
        self._silent |= {ids[c] for c in ask.clients.tolist() if c not in rows}
        if not rows and len(ask.clients):
            gate = self.session.gate
            raise TooFewClients(
                f"{self.session.scheme.name} asks for '{ask.signal.name}' "
                f"({ask.signal.discloses}), and none of {len(ask.clients)} clients answered, asked "
                f"{ATTEMPTS} times with {self.session.limits.query:g} s each (rejected so far: "
                f"{gate.summary()}).{gate.quote() or ' Look at the logs of the clients.'}"
            )
        return _stacked(rows, ask.clients)

    def _name(self, ask: Ask, key: Any) -> tuple[str, str, Any]:
        return ask.signal.name, repr(sorted(ask.settings.items())), key

    def _exchange(self, ask: Ask, clients: Ints) -> dict[int, Array]:
        session, name = self.session, ask.signal.name
        settings = {wire.SETTING + key: value for key, value in ask.settings.items()}

        def content(client: int) -> RecordDict:
            config = {
                wire.SIGNAL: name,
                **session.context(),
                **settings,
                **session.streams(client),
            }
            out = RecordDict({wire.CONFIG: ConfigRecord(config)})
            if ask.signal.needs_model:
                out[wire.ARRAYS] = session.sent
            return out

        letters = session.letters(clients, content, wire.QUERY)
        messages = [letter.message for letter in letters]
        replies = session.grid.send_and_receive(messages, timeout=session.limits.query)
        form = Form(
            {name: None},
            lowest=0.0 if name in NEVER_NEGATIVE else -np.inf,
            limit=8 * session.layout.dimension + SPARE,
        )
        heard = received(session.gate, letters, replies, session.round_name, form, [wire.ANSWER])
        return {report.client: report.arrays[name] for report in heard}


def _stacked(rows: dict[int, Array], clients: Ints) -> Array:
    """One row per client, NaN for those that did not answer; in the type of the answers."""
    if len(rows) == len(clients):
        return np.asarray([rows[client] for client in clients.tolist()])
    shape = next(iter(rows.values())).shape
    nothing = np.full(shape, np.nan)
    return np.asarray([rows.get(client, nothing) for client in clients.tolist()], dtype=np.float64)
