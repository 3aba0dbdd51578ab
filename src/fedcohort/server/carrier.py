"""What travels in a round, and what brings it to clients.

A round yields an `Ask`, a `Train` or a `Fold`; a `Carrier` answers each with rows, `Arrived` or an
iterable of `Block`. It declares what it is able to do, and `require` refuses the rest in time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import UPDATE, Ask
from fedcohort.core.errors import BadInput
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.server.state import Selection, Setup

T = TypeVar("T")


class Answers(NamedTuple):
    """What a carrier may give instead of plain rows: also what went over the wire."""

    rows: Array
    sent: Ints
    """A client for every message that went out."""
    heard: int
    """How many answered."""
    models: int | None = None
    """How many copies of the model went out; None: one to whoever does not have it yet."""


class Train(NamedTuple):
    """Invite these clients; `Arrived` is expected back."""

    clients: Ints
    cohort: Cohort
    """What they are asked: the share of the data, what counts. Not everybody is a member."""
    replacing: bool
    """Whether they stand in for others."""


class Arrived(NamedTuple):
    """Who answered; their updates come when they are folded."""

    clients: Ints
    sent: Ints | None = None
    """A client for every invitation that went out, where that is not everybody once."""
    models: int | None = None
    """As in `Answers`."""
    heard: int | None = None
    """How many good answers came, where a client may send several; None: one of each."""


class Fold(NamedTuple):
    """Give the answers of these clients, block by block: an iterable of `Block` is expected."""

    cohort: Cohort
    listens: frozenset[str]
    """Names of the signals that the scheme reads off the answers."""


@dataclass(frozen=True, eq=False)
class Block:
    """The answers of some clients of a cohort."""

    clients: Ints  # (b,) each once
    updates: Array  # (b, d)
    heard: Mapping[str, Array] = field(default_factory=dict)
    """What the scheme listens to beside updates: rows (b, ...) by signal."""
    payloads: Mapping[str, Array] = field(default_factory=dict)
    """What the local algorithm sends: rows (b, d) by name."""
    counted: Floats | None = None
    """(b,) what mean updates counted for, where answers count per sample and that is known."""


class Sum(NamedTuple):
    """The answers of some clients, weighed by themselves and added up; nobody's own is seen."""

    clients: Ints
    total: Floats  # (d,) sum_i omega_i delta_i


class Carrier:
    """What brings questions and invitations to clients, and what it is able to do.

    Class attributes
    ----------------
    name
        As in an error sentence.
    rows
        Whether the server sees single answers; False for secure sums.
    again
        Whether more clients can be invited within a round.
    payloads
        Whether more than the model and its update can travel.
    subsampling
        Whether clients can be told to train on a share of their samples, and to count them.
    timed
        Whether it knows when answers came, so that a round can end before the last.
    """

    name: ClassVar[str]
    rows: ClassVar[bool] = True
    again: ClassVar[bool] = True
    payloads: ClassVar[bool] = True
    subsampling: ClassVar[bool] = True
    timed: ClassVar[bool] = False

    def ask(self, ask: Ask) -> Array | Answers:
        """One row per client asked."""
        raise BadInput(f"{self.name} cannot put questions to clients.")

    def chosen(self, selection: Selection) -> None:
        """Make a selection durable: nobody has been invited yet."""

    def train(self, train: Train) -> Arrived:
        """Invite clients."""
        raise BadInput(f"{self.name} cannot invite clients within a round.")

    def answers(self, fold: Fold) -> Iterable[Block | Sum]:
        """What those who answered have sent."""
        raise BadInput(f"{self.name} does not show single answers.")


def require(setup: Setup, carrier: Carrier | type[Carrier]) -> None:
    """Refuse, before the first round, what a carrier cannot do."""
    name, scheme = carrier.name, setup.scheme
    if scheme.counts_samples and setup.aggregator.no_sums:
        raise BadInput(setup.aggregator.no_sums)
    unfit = setup.aggregator.unfit(setup)
    if unfit:
        raise BadInput(unfit)
    algorithm = setup.algorithm
    if algorithm.others and setup.aggregator.compares:
        raise BadInput(
            f"The aggregator '{setup.aggregator.name}' holds updates against one another, but the "
            f"local algorithm '{algorithm.name}' has several models; use 'plain'."
        )
    if algorithm.needs_rows and (scheme.counts_samples or not carrier.rows):
        why = f"with {scheme.name} a client sends a sum over its samples"
        raise BadInput(
            f"The local algorithm '{algorithm.name}' counts the update of each client, but "
            f"{why if carrier.rows else f'{name} shows none'}; use 'sgd', 'fedprox' or 'scaffold'."
        )
    if not carrier.rows:
        listens = ", ".join(sorted(signal.name for signal in scheme.listens))
        if listens:
            raise BadInput(f"{name} keeps no single update: {scheme.name} listens to {listens}.")
        for guard in setup.guards:
            if guard.needs_rows:
                raise BadInput(
                    f"{name} keeps no single update, which the guard '{guard.name}' needs; harden "
                    "the run by others, as in hardened='size-cap+rate-cap+losses+explore'."
                )
        if setup.aggregator.needs_rows:
            raise BadInput(
                f"{name} keeps no single update, which the aggregator '{setup.aggregator.name}' "
                "needs; use 'plain'."
            )
        if setup.dropouts.needs_rows:
            raise BadInput(
                f"With {name} weights are fixed before training, so drop-outs cannot be made up "
                f"for by '{setup.dropouts.name}'; use 'none'."
            )
    if not carrier.again and setup.dropouts.attempts:
        raise BadInput(
            f"{name} cannot invite replacements within a round: use the drop-out rule 'hajek' or "
            f"'none' instead of '{setup.dropouts.name}'."
        )
    rule = setup.stragglers
    if rule.withdraws and not carrier.timed:
        raise BadInput(f"{name} cannot end a round early, which '{rule.name}' wants; use 'wait'.")
    if rule.withdraws and setup.dropouts.attempts:
        raise BadInput(
            f"With '{rule.name}' late clients are not replaced: use the drop-out rule 'hajek', "
            f"'survivors' or 'none' instead of '{setup.dropouts.name}'."
        )
    if scheme.subsampling and not carrier.subsampling:
        raise BadInput(
            f"{name} cannot have clients train on a share of their samples, which {scheme.name} "
            "wants; use another scheme."
        )
    others = ", ".join(sorted(signal.name for signal in scheme.listens - {UPDATE}))
    if others and not carrier.payloads:
        raise BadInput(
            f"{name} carries the model and its update only: {scheme.name} listens to {others}."
        )
    if not carrier.payloads and (algorithm.payloads or algorithm.stateful or algorithm.vectors):
        raise BadInput(
            f"{name} carries the model and its update only, but the local algorithm "
            f"'{algorithm.name}' sends more; use 'sgd' or 'fedprox'."
        )


Wanted: TypeAlias = Ask | Train | Fold


def carry(
    talk: Generator[Wanted, Any, T], carrier: Carrier, reply: Any = None, when: str = ""
) -> T:
    """Bring a conversation to its end; ``reply`` answers what it asked last.

    ``when`` is what an error in asking is told with.
    """
    with contextlib.closing(talk):
        while True:
            try:
                wanted = talk.send(reply)
            except StopIteration as end:
                return cast("T", end.value)
            if isinstance(wanted, Ask):
                try:
                    reply = carrier.ask(wanted)
                except Exception as error:
                    if when:
                        error.add_note(when)
                    raise
            elif isinstance(wanted, Train):
                reply = carrier.train(wanted)
            else:
                reply = carrier.answers(wanted)


def stacked(rows: Mapping[int, Array], clients: Ints) -> Array:
    """One row per client, NaN for those that did not answer; in the type of the answers."""
    if len(rows) == len(clients):
        return np.asarray([rows[client] for client in clients.tolist()])
    shape = next(iter(rows.values())).shape
    nothing = np.full(shape, np.nan)
    return np.asarray([rows.get(client, nothing) for client in clients.tolist()], dtype=np.float64)


def blocks(clients: Ints, row_bytes: int, most: int) -> Iterator[slice]:
    """Which rows of a cohort to hold at a time, so that they fit into ``most`` bytes."""
    step = max(1, most // max(1, row_bytes))
    for start in range(0, len(clients), step):
        yield slice(start, start + step)
