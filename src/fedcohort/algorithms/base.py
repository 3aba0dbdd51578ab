"""A local algorithm: what a chosen client does with the model, and what the server keeps for it.

An algorithm does not enter the inner loop of training. It hands the trainer a `LocalRule`, which
every trainer implements, and afterwards says what goes back beside the update::

    rule      what to train with: step size, proximal term, a drift added to every gradient
    report    after training: payloads for the server, and what the client remembers
    step      on the server, after the round: what it makes of the payloads

A *payload* has a role. An ``estimate`` is weighed like the update, by omega: its sum estimates
sum_i p_i x_i. A ``tally`` is counted by importance p, once for every client whose memory changed,
so that the server's sum stays exactly the sum over the clients whatever the cohort. A vector of
the server that is named like a tally is its running sum, without a line of yours.

What a client remembers is *proposed* with its update and kept only once the server has said that
the round counted; see `fedcohort.server.rounds`. So a lost report, a void round or a crash leaves
client and server in agreement.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from fedcohort.core.disclosure import Disclosure
from fedcohort.core.errors import BadInput
from fedcohort.core.parameters import Checked
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.learning.work import LocalWork

Rows = Mapping[str, Array]
"""Named tables (k, d), one row per client."""
Vectors = Mapping[str, Floats]
"""Named vectors (d,) of the server."""


class Payload(NamedTuple):
    """What goes up beside the update: a vector (d,) per client, and how it is counted."""

    name: str
    role: Literal["estimate", "tally"]


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
    keeps_server
        Vectors (d,) of the server, sent down with the model; zero before the first round.
    keeps_client
        Vectors (d,) that every client remembers; zero before it first trains.
    payloads
        What goes up beside the update.
    """

    name: ClassVar[str]
    keeps_server: ClassVar[tuple[str, ...]] = ()
    keeps_client: ClassVar[tuple[str, ...]] = ()
    payloads: ClassVar[tuple[Payload, ...]] = ()

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
        says = f"what '{self.name}' made of the local data, one number per parameter"
        return [Disclosure(payload.name, "every round", says) for payload in self.payloads]

    def start(self, dimension: int) -> dict[str, Floats]:
        """What the server knows before the first round."""
        return {name: np.zeros(dimension) for name in self.keeps_server}

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
        made, at least one.
        """
        return {}, {}

    def step(self, server: Vectors, sums: Vectors) -> dict[str, Floats]:
        """What the server knows after a round; ``sums`` has one vector per payload."""
        return dict(server) | {name: server[name] + sums[name] for name in self.tallies}


def reported(
    algorithm: Algorithm,
    work: LocalWork,
    server: Vectors,
    kept: Rows,
    updates: Array,
    steps: Ints,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """What `Algorithm.report` says, in 64 bits and checked for what the algorithm declares.

    Clients that made no step, for want of samples, send zero and remember what they did.
    """
    moved = np.flatnonzero(steps)
    some = {name: rows[moved] for name, rows in kept.items()}
    told = algorithm.report(work, server, some, updates[moved], steps[moved])
    payloads = {payload.name: np.zeros(updates.shape) for payload in algorithm.payloads}
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
            if np.shape(rows) != (len(moved), updates.shape[1]):
                raise BadInput(
                    f"{type(algorithm).__name__}.report() must give a vector per client for "
                    f"'{name}': {(len(moved), updates.shape[1])}; got {np.shape(rows)}."
                )
            places[name][moved] = rows
    return payloads, proposals


def weighed_by_samples(
    algorithm: Algorithm, payloads: Mapping[str, Array], numbers: Ints | None
) -> dict[str, Array]:
    """Estimates times the samples that took part, where answers count per sample, as updates do."""
    roles = {payload.name: payload.role for payload in algorithm.payloads}
    return {
        name: rows if numbers is None or roles[name] == "tally" else rows * numbers[:, None]
        for name, rows in payloads.items()
    }
