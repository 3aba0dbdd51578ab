"""What a scheme costs and what it discloses: every question, model and update.

The ledger listens to the conversation, so no scheme contains a line of bookkeeping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from fedcohort._internal import html, store
from fedcohort._internal.types import Array, Ints
from fedcohort.selection._cohort import ascending, missing_from
from fedcohort.selection._queries import UPDATE, Ask, Signal, row_bytes

REQUEST_BYTES = 16
"""What a question itself weighs: the round and the number of the signal."""
TRAINING, GREETING = "training", "greeting"


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

    @classmethod
    def checked(cls, values: Iterable[Any]) -> Entry:
        """An entry as it was written; what cannot have been is refused."""
        entry = cls(*values)
        for name, hint in get_type_hints(cls).items():
            store.check(name, getattr(entry, name), hint, {})
        return entry


class Cost(NamedTuple):
    """Messages and bytes of a round or of a whole run."""

    messages: int
    bytes_down: int
    bytes_up: int

    @property
    def bytes(self) -> int:
        """Both directions."""
        return self.bytes_down + self.bytes_up


class Booked(tuple[Mapping[str, Any], ...]):
    """The rows of an account, one per purpose: a tuple that a notebook shows as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        messages, sent = (
            sum(int(row.get(name, 0)) for row in self for name in names)
            for names in (("messages",), ("bytes_down", "bytes_up"))
        )
        return self.table(f"Ledger: {messages:,} messages, {sent:,} bytes")

    def table(self, title: str) -> str:
        """The rows under a title."""
        heads = ("Purpose", "Messages", "Bytes down", "Bytes up", "The server learnt", "Epsilon")
        names = ("purpose", "messages", "bytes_down", "bytes_up", "discloses", "epsilon")
        rows = [["–" if row.get(name) is None else row[name] for name in names] for row in self]
        return html.table(title, heads, rows)


@dataclass
class Ledger:
    """The account of one run.

    Parameters
    ----------
    model_bytes
        Size of the model as sent down.
    update_bytes
        Size of an update as sent up; by default that of the model.
    with_model
        What a local algorithm sends down beside every copy of the model.
    number_bytes
        What each number of an algorithm's vectors and payloads weighs: they travel as the model.

    A client downloads the model of a round once, be it for a question or for training.
    """

    model_bytes: int = 0
    update_bytes: int | None = None
    with_model: int = 0
    number_bytes: int = 4
    entries: list[Entry] = field(default_factory=list)
    sums: float | None = None
    """Epsilon of all noisy sums together, by the accountant of the run; None: no noise."""
    _have_model: tuple[int, Ints] = (-1, np.empty(0, dtype=np.int64))

    def __repr__(self) -> str:
        cost = self.total()
        rounds = len({entry.round for entry in self.entries if entry.round >= 0})
        spent = f"{cost.messages:,} messages, {cost.bytes:,} bytes"
        return f"<Ledger of {rounds} {html.plural(rounds, 'round')}: {spent}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: cost and disclosure by purpose."""
        return self.booked().table(repr(self).strip("<>"))

    def booked(self) -> Booked:
        """Cost and disclosure by purpose."""
        says, spent = self.disclosures(), self.epsilons()
        return Booked(
            {
                "purpose": purpose,
                **cost._asdict(),
                "discloses": says[purpose],
                "epsilon": spent.get(purpose),
            }
            for purpose, cost in self.by_purpose().items()
        )

    def greeted(self, clients: int, heard: int, up: int, sizes: bool) -> None:
        """Book who was asked for its name (and size) and how many bytes came back."""
        says = "the client's name" + " and number of samples" * sizes
        down = clients * REQUEST_BYTES
        self._book(Entry(-1, GREETING, clients, clients + heard, down, up, says))

    def asked(
        self,
        round: int,
        ask: Ask,
        answers: Array,
        sent: Ints | None = None,
        heard: int = -1,
        models: int | None = None,
    ) -> None:
        """Book a question and its answers.

        ``sent`` has a client for every message that went out, where that were not the clients
        asked (one was asked again, one was not there); ``heard`` is the number of answers, all
        by default; ``models`` how many copies of the model went out, one for every client that
        does not have it yet by default.
        """
        clients = ask.clients if sent is None else sent
        down = len(clients) * REQUEST_BYTES
        if ask.signal.needs_model:
            down += self._models(round, clients, models)
        up = _answer_bytes(ask.signal, np.asarray(answers), heard)
        epsilon = ask.settings.get("epsilon")
        spent = None if epsilon is None else float(epsilon)
        messages = len(clients) + (len(answers) if heard < 0 else heard)
        self._book(
            Entry(
                round,
                ask.signal.name,
                len(ask.clients),
                messages,
                down,
                up,
                ask.signal.discloses,
                spent,
            )
        )

    def trained(
        self,
        round: int,
        clients: Ints,
        listens: frozenset[Signal] = frozenset(),
        heard: int = -1,
        extra: int = 0,
        models: int | None = None,
    ) -> None:
        """Book a round of training: the model down, the update up.

        ``clients`` has one for every invitation, ``heard`` is how many answered (all by
        default), ``extra`` what each sends beside its update; ``models`` as for `asked`.
        """
        back = len(clients) if heard < 0 else heard
        update = self.model_bytes if self.update_bytes is None else self.update_bytes
        down = self._models(round, clients, models)
        up = back * (update + extra)
        k = len(clients)
        self._book(Entry(round, TRAINING, k, k + back, down, up, _told(listens)))

    def _models(self, round: int, clients: Ints, models: int | None) -> int:
        """The bytes of the model for those of the clients that do not have it yet."""
        copy = self.model_bytes + self.with_model
        if models is not None:
            return models * copy
        have = self._have_model[1] if self._have_model[0] == round else self._have_model[1][:0]
        new = missing_from(have, clients)
        self._have_model = (round, ascending(np.concatenate([have, new])) if len(have) else new)
        return len(new) * copy

    def _book(self, entry: Entry) -> None:
        if entry.messages:
            self.entries.append(entry)

    def since(self, number: int) -> tuple[Entry, ...]:
        """The entries after the first so many."""
        return tuple(self.entries[number:])

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

        Basic composition: the epsilons of answers about the same data add up. Training is told
        where noise was added to its sums, by the tighter composition of the accountant. Purposes
        whose answers carry no promise are not listed.
        """
        spent: dict[str, float] = {}
        for entry in self.entries:
            if entry.epsilon is not None:
                spent[entry.purpose] = spent.get(entry.purpose, 0.0) + entry.epsilon
        return spent if self.sums is None else {**spent, TRAINING: self.sums}


def _answer_bytes(signal: Signal, answers: Array, heard: int) -> int:
    """What the answers weigh; rows alike are not weighed one by one."""
    number = len(answers) if heard < 0 else heard
    if number == 0 or len(answers) == 0:
        return 0
    if signal.nbytes is row_bytes:
        return number * answers[:1].nbytes
    weights = [signal.nbytes(row) for row in answers]
    return sum(weights) if heard < 0 else number * max(weights)


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
