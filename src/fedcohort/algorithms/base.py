"""A local algorithm: what a chosen client does with the model, and what the server keeps for it.

An algorithm does not enter the inner loop of training. It hands the trainer a `LocalRule`, which
every trainer implements, and afterwards says what goes back beside the update::

    rule      what to train with: step size, proximal term, a drift added to every gradient
    report    after training: payloads for the server, and what the client remembers
    rows      on the server: what is aggregated of the reports that came
    summed    on the server: what else is added up of them
    step      on the server, after the round: what it makes of the sums
    direct    on the server: where the step of the optimiser goes

A *payload* has a role. An ``estimate`` is weighed like the update, by omega: its sum estimates
sum_i p_i x_i. A ``tally`` is counted by importance p, once for every client whose memory changed,
so that the server's sum stays exactly the sum over the clients whatever the cohort. A vector of
the server that is named like a tally is its running sum, without a line of yours. A ``note`` is
not added up; `rows` and `summed` read it.

What a client remembers is *proposed* with its update and kept only once the server has said that
the round counted; see `fedcohort.server.round`. So a lost report, a void round or a crash leaves
client and server in agreement.

An algorithm may have several *models*: all go down, a client takes the one with the lowest loss on
its data, and whatever it is asked in that round is about that one. The optimiser steps them side by
side, as one long vector.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Checked
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.learning._local import LocalWork
from fedcohort.selection._citation import Citation
from fedcohort.selection._scheme import Disclosure

Rows = Mapping[str, Array]
"""Named tables (k, d), one row per client."""
Vectors = Mapping[str, Floats]
"""Named vectors (d,) of the server."""
Layers = Mapping[str, tuple[int, ...]]
"""The shape of each named part of a flat model, in order."""
MODEL = "model"
"""What a row is called that says which of several models a client took."""


class Payload(NamedTuple):
    """What is told beside the update: a vector per client, and how it is counted."""

    name: str
    role: Literal["estimate", "tally", "note"]
    length: int | None = None
    """Of the vector; None for d, as the model."""
    sent: bool = True
    """Whether it goes up: not where `Algorithm.summed` finds it from the update."""
    of: str | None = None
    """The vector of a client whose change it is. Then the client remembers the change as it was
    sent, rounded to the precision of the model, and a tally is the sum over the clients still."""


@dataclass(frozen=True, eq=False)
class LocalRule:
    """What a trainer makes its steps by.

    ``theta - lr * (g + decay * theta + mu * (theta - theta_0) + drift)``: step size, decay and mu
    stand in ``work``, ``drift`` is (k, d), a row per client, or None.
    """

    work: LocalWork
    drift: Array | None = None


class Algorithm(Checked, ABC):
    """Configuration only; what server and clients remember goes in and comes out.

    Class attributes
    ----------------
    paper
        Where it was published, for a bibliography.
    keeps_server
        Vectors (d,) of the server; zero before the first round.
    sends
        Which of them go down with the model; None for all.
    keeps_client
        Vectors (d,) that every client remembers; zero before it first trains.
    payloads
        What goes up beside the update, and what else is added up.
    needs_rows
        Whether the server must see the update of each client: then neither a secure sum nor a
        scheme whose clients send sums over their samples will do.
    corrects_steps
        Whether the minimized objective is the same if clients make unequal numbers of steps.
    weights_only
        Whether a model must consist of weights alone: running statistics, as BatchNorm's, are
        moved by no gradient, and what follows from gradients does not hold for them.
    """

    name: ClassVar[str]
    paper: ClassVar[Citation | None] = None
    keeps_server: ClassVar[tuple[str, ...]] = ()
    sends: ClassVar[tuple[str, ...] | None] = None
    keeps_client: ClassVar[tuple[str, ...]] = ()
    payloads: ClassVar[tuple[Payload, ...]] = ()
    needs_rows: ClassVar[bool] = False
    corrects_steps: ClassVar[bool] = False
    weights_only: ClassVar[bool] = False

    def fits(self, statistics: int) -> None:
        """Refuse a model with so many running statistics, if it must have none."""
        if self.weights_only and statistics:
            raise BadInput(
                f"The local algorithm '{self.name}' needs a model of weights alone, and this one "
                f"has {statistics} running statistics, which its step would spoil; take "
                "nn.GroupNorm or nn.LayerNorm in place of BatchNorm, or another algorithm."
            )

    @property
    def models(self) -> int:
        """How many models there are; a client trains the one with the lowest loss on its data."""
        return 1

    @property
    def needs(self) -> tuple[str, ...]:
        """Quantities (d,) of a client, at the model it takes, that `report` is given as rows."""
        return ()

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the models beside the first, which are vectors of the server."""
        return tuple(f"{MODEL}-{number}" for number in range(1, self.models))

    @property
    def vectors(self) -> tuple[str, ...]:
        """Vectors (d,) of the server that go down with the model."""
        return (*(self.keeps_server if self.sends is None else self.sends), *self.others)

    @property
    def stateful(self) -> bool:
        """Whether clients remember something from round to round."""
        return bool(self.keeps_client)

    @property
    def tallies(self) -> tuple[str, ...]:
        """Vectors of the server that are running sums of a tally."""
        counted = {payload.name for payload in self.payloads if payload.role == "tally"}
        return tuple(name for name in self.keeps_server if name in counted)

    @property
    def disclosures(self) -> list[Disclosure]:
        """What the server learns of a client beside its update, told before it happens."""
        says = f"what '{self.name}' made of the local data"
        much = {None: "one number per parameter", 1: "one number"}
        return [
            Disclosure(each.name, "every round", f"{says}, {much.get(each.length, each.length)}")
            for each in self.payloads
            if each.sent
        ]

    def up(self, dimension: int) -> dict[str, tuple[int]]:
        """The shape of each payload that goes up, for models of that dimension."""
        return {p.name: (p.length or dimension,) for p in self.payloads if p.sent}

    def start(
        self, theta: Floats, rng: np.random.Generator, layers: Layers | None = None
    ) -> dict[str, Floats]:
        """What the server knows before the first round; the models all begin with the first.

        ``layers`` has the name and shape of each part of theta, in order; None where the values do
        not matter, because those of an earlier run take their place.
        """
        kept = {name: np.zeros_like(theta) for name in self.keeps_server}
        return kept | {name: theta.copy() for name in self.others}

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        """What these clients train with; ``kept`` has a row (k, d) for every name they keep.

        The work is the same for all clients, the drift each one's own.
        """
        return LocalRule(work)

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        """After training: the payloads, and what the clients propose to remember.

        ``work`` is that of the rule, ``updates`` (k, d), ``steps`` (k,) how many steps each client
        made, at least one. ``kept`` has the quantities that the algorithm `needs`, too, and, with
        several models, which one each client took: ``"model"`` (k, 1).
        """
        return {}, {}

    def width(self, dimension: int) -> int:
        """The length of the rows that are aggregated."""
        return dimension

    def rows(self, updates: Array, payloads: Rows) -> Array:
        """(b, width) what the aggregator is given of some clients; by default their updates."""
        return updates

    def summed(self, updates: Array, payloads: Rows) -> Rows:
        """What is added up by role; by default the payloads.

        The updates are as they came: a guard may shorten what is aggregated, but clients remember
        what they sent.
        """
        return payloads

    def step(self, server: Vectors, sums: Vectors) -> dict[str, Floats]:
        """What the server knows after a round; ``sums`` has a vector for each payload but notes."""
        return dict(server) | {name: server[name] + sums[name] for name in self.tallies}

    def direct(self, direction: Floats, server: Vectors) -> Floats:
        """Where the optimiser is to step, (models d,), from what was aggregated, (width,).

        ``server`` is what `step` made of it.
        """
        return direction


def reported(
    algorithm: Algorithm,
    work: LocalWork,
    server: Vectors,
    kept: Rows,
    updates: Array,
    steps: Ints,
    precision: DTypeLike = np.float64,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """What `Algorithm.report` says, checked for what the algorithm declares.

    Payloads are in the ``precision`` in which they travel; memory is in 64 bits. Clients that made
    no step, for want of samples, send zero and remember what they did.
    """
    moved = np.flatnonzero(steps)
    some = {name: rows[moved] for name, rows in kept.items()}
    told = algorithm.report(work, server, some, updates[moved], steps[moved])
    lengths = algorithm.up(updates.shape[1])
    payloads = {
        name: np.zeros((len(updates), *shape), precision) for name, shape in lengths.items()
    }
    proposals = {name: np.array(kept[name]) for name in algorithm.keeps_client}
    for what, found, places in zip(
        ("payloads", "keeps_client"), told, (payloads, proposals), strict=True
    ):
        if set(found) != set(places):
            raise BadInput(
                f"{type(algorithm).__name__}.report() must give what '{what}' declares: "
                f"{sorted(places)}; got {sorted(found)}."
            )
        for name, rows in found.items():
            if np.shape(rows) != (len(moved), *places[name].shape[1:]):
                raise BadInput(
                    f"{type(algorithm).__name__}.report() must give a vector per client for "
                    f"'{name}': {(len(moved), *places[name].shape[1:])}; got {np.shape(rows)}."
                )
            places[name][moved] = rows
    for payload in algorithm.payloads:
        if payload.of is not None and payload.sent and payloads[payload.name].itemsize < 8:
            proposals[payload.of] = kept[payload.of] + payloads[payload.name].astype(np.float64)
    return payloads, proposals


def weighed_by_samples(
    algorithm: Algorithm, payloads: Mapping[str, Array], numbers: Ints | None
) -> dict[str, Array]:
    """Estimates times the samples that took part, where answers count per sample, as updates do."""
    roles = {payload.name: payload.role for payload in algorithm.payloads}
    return {
        name: (rows * numbers[:, None]).astype(rows.dtype)
        if numbers is not None and roles[name] == "estimate"
        else rows
        for name, rows in payloads.items()
    }


def unequal_work(
    algorithm: Algorithm,
    work: LocalWork,
    sizes: Ints,
    importance: Floats,
    ids: Sequence[str | int] = (),
) -> str:
    """Return a warning if clients make unequal numbers of local steps, else "".

    A local algorithm that corrects for unequal steps needs no warning. The warning states the
    objective that is minimized instead. Clients without samples or importance do not count.
    """
    there = np.flatnonzero((sizes > 0) & (importance > 0))
    steps = np.array([work.steps_for(int(size)) for size in sizes[there]], dtype=np.int64)
    if algorithm.corrects_steps or not len(there) or steps.min() == steps.max():
        return ""
    nothing = {name: np.zeros((1, 1)) for name in algorithm.keeps_client}
    rule = algorithm.rule(work, {name: np.zeros(1) for name in algorithm.vectors}, nothing)
    names = [ids[client] if len(ids) else client for client in there.tolist()]
    shift = shifted(importance[there], rule.work.normalizer(steps), names)
    return (
        f"Clients make {steps.min():,} to {steps.max():,} local steps. {shift} Give all clients "
        "the same number of steps (steps instead of epochs), or use the local algorithm "
        "'fednova' or 'scaffold'."
    )


def shifted(importance: Floats, amounts: Array, names: Sequence[Hashable]) -> str:
    """Return in words which objective clients minimize that do these amounts of local work.

    >>> print(shifted(np.array([0.5, 0.5]), np.array([1, 3]), ["a", "b"]))
    With small step sizes a run minimizes sum_i q_i F_i instead of sum_i p_i F_i, with q_i \
proportional to p_i a_i (a_i: local steps). The largest gain: the share of client 'b' is 0.75 \
instead of 0.5.
    """
    before = importance / importance.sum()
    after = importance * amounts / (importance @ amounts)
    most = int(np.argmax(after - before))
    return (
        "With small step sizes a run minimizes sum_i q_i F_i instead of sum_i p_i F_i, with q_i "
        "proportional to p_i a_i (a_i: local steps). The largest gain: the share of client "
        f"{names[most]!r} is {after[most]:.3g} instead of {before[most]:.3g}."
    )
