"""What a scheme costs and what it discloses: every question, model and update.

The ledger listens to the conversation, so no scheme contains a line of bookkeeping.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fedcohort.core.conversation import UPDATE, Ask, Signal
from fedcohort.core.types import Array, Ints

REQUEST_BYTES = 16
"""What a question itself weighs: the round and the number of the signal."""
TRAINING = "training"


class Entry(NamedTuple):
    """One exchange with a number of clients, from the server's point of view."""

    round: int  # -1: before the first round
    purpose: str  # the name of a signal, or "training"
    clients: int
    messages: int  # down and up
    bytes_down: int  # server to clients
    bytes_up: int
    discloses: str
    epsilon: float | None = None  # what one answer spends of a privacy budget; None: no promise


class Cost(NamedTuple):
    """Messages and bytes of a round or of a whole run."""

    messages: int
    bytes_down: int
    bytes_up: int

    @property
    def bytes(self) -> int:
        """Both directions."""
        return self.bytes_down + self.bytes_up


@dataclass
class Ledger:
    """The account of one run.

    Parameters
    ----------
    model_bytes
        Size of the model as sent down.
    update_bytes
        Size of an update as sent up; by default that of the model.

    A client downloads the model of a round once, be it for a question or for training.
    """

    model_bytes: int = 0
    update_bytes: int | None = None
    entries: list[Entry] = field(default_factory=list)
    _have_model: tuple[int, frozenset[int]] = (-1, frozenset())

    def asked(self, round: int, ask: Ask, answers: Array) -> None:
        """Book a question and its answers."""
        k = len(ask.clients)
        down = k * REQUEST_BYTES + (
            self._models(round, ask.clients) if ask.signal.needs_model else 0
        )
        up = sum(ask.signal.nbytes(row) for row in answers)
        epsilon = ask.settings.get("epsilon")
        spent = None if epsilon is None else float(epsilon)
        self._book(round, ask.signal.name, k, down, up, ask.signal.discloses, spent)

    def trained(self, round: int, clients: Ints, listens: frozenset[Signal] = frozenset()) -> None:
        """Book a round of training: the model down, the update up."""
        k = len(clients)
        update = self.model_bytes if self.update_bytes is None else self.update_bytes
        self._book(round, TRAINING, k, self._models(round, clients), k * update, _told(listens))

    def _models(self, round: int, clients: Ints) -> int:
        known = self._have_model[1] if self._have_model[0] == round else frozenset()
        wanted = frozenset(clients.tolist())
        self._have_model = (round, known | wanted)
        return len(wanted - known) * self.model_bytes

    def _book(
        self,
        round: int,
        purpose: str,
        k: int,
        down: int,
        up: int,
        says: str,
        epsilon: float | None = None,
    ) -> None:
        if k:
            self.entries.append(Entry(round, purpose, k, 2 * k, down, up, says, epsilon))

    def total(self) -> Cost:
        """The cost of everything so far."""
        return _sum(self.entries)

    def of_round(self, round: int) -> Cost:
        """The cost of one round; -1 is what happened before the first."""
        return _sum([entry for entry in self.entries if entry.round == round])

    def by_purpose(self) -> dict[str, Cost]:
        """The cost of each kind of question, and of training."""
        purposes = dict.fromkeys(entry.purpose for entry in self.entries)
        return {p: _sum([e for e in self.entries if e.purpose == p]) for p in purposes}

    def disclosures(self) -> dict[str, str]:
        """What the server learnt, by purpose, in plain words."""
        return {entry.purpose: entry.discloses for entry in self.entries}

    def epsilons(self) -> dict[str, float]:
        """What a client that answered every question has spent, by purpose.

        Basic composition: the epsilons of answers about the same data add up. Purposes whose
        answers carry no promise are not listed.
        """
        spent: dict[str, float] = {}
        for entry in self.entries:
            if entry.epsilon is not None:
                spent[entry.purpose] = spent.get(entry.purpose, 0.0) + entry.epsilon
        return spent

    def per_round(self, rounds: int) -> Ints:
        """(rounds, 3) messages, bytes down, bytes up; what came before counts to round 0."""
        out = np.zeros((rounds, 3), dtype=np.int64)
        for entry in self.entries:
            out[max(0, entry.round)] += (entry.messages, entry.bytes_down, entry.bytes_up)
        return out


def _told(listens: frozenset[Signal]) -> str:
    """What training discloses; who must see single updates cannot have them only in sum."""
    heard = sorted(signal.discloses for signal in listens)
    if UPDATE in listens:
        return "; ".join(heard)
    hidden = all(signal.secrecy != "update" for signal in listens)
    return "; ".join(["the model update" + ", unless securely aggregated" * hidden, *heard])


def _sum(entries: list[Entry]) -> Cost:
    return Cost(
        sum(entry.messages for entry in entries),
        sum(entry.bytes_down for entry in entries),
        sum(entry.bytes_up for entry in entries),
    )
