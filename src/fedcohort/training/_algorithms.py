"""Local algorithms: SGD, FedProx, SCAFFOLD, FedDyn, FedNova and IFCA."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from fedcohort._internal.errors import BadInput, BadParameter, brief
from fedcohort._internal.parameters import Checked, Maybe, OneOf, Real, Whole, elements, is_whole
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.selection._citation import Citation
from fedcohort.selection._scheme import Disclosure
from fedcohort.training._local import LocalWork

# A local algorithm: what a chosen client does with the model, and what the server keeps for it.
#
# An algorithm does not enter the inner loop of training. It hands the trainer a `LocalRule`, which
# every trainer implements, and afterwards says what goes back beside the update::
#
#     rule      what to train with: step size, proximal term, a drift added to every gradient
#     report    after training: payloads for the server, and what the client remembers
#     rows      on the server: what is aggregated of the reports that came
#     summed    on the server: what else is added up of them
#     step      on the server, after the round: what it makes of the sums
#     direct    on the server: where the step of the optimiser goes
#
# A *payload* has a role. An ``estimate`` is weighed like the update, by omega: its sum estimates
# sum_i p_i x_i. A ``tally`` is counted by importance p, once for every client whose memory changed,
# so that the server's sum stays exactly the sum over the clients whatever the cohort. A vector of
# the server that is named like a tally is its running sum, without a line of yours. A ``note`` is
# not added up; `rows` and `summed` read it.
#
# What a client remembers is *proposed* with its update and kept only once the server has said that
# the round counted; see `fedcohort.server._round`. So a lost report, a void round or a crash leaves
# client and server in agreement.
#
# An algorithm may have several *models*: all go down, a client takes the one with the lowest loss
# on its data, and whatever it is asked in that round is about that one. The optimiser steps them
# side by side, as one long vector.

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


# FedDyn: a regulariser of each client's own, whose sum the server takes out again.


@dataclass(frozen=True)
class FedDyn(Algorithm):
    """Dynamic regularisation: where clients stand still, their mean is at the minimum.

    Client i keeps g_i, about its own gradient, and minimises, from the model x of the server,

        F_i(y) - <g_i, y> + alpha/2 ||y - x||^2

    by as many local steps as the work says; then::

        g_i <- g_i - alpha (y_i - x)
        h   <- h - alpha sum_i p_i (y_i - x)         on the server: h = sum_i p_i g_i
        x   <- x + sum_i omega_i (y_i - x) - h / alpha

    A point that nobody leaves has F_i'(x) = g_i for all and h = 0: it is a minimum of
    sum_i p_i F_i, also where local steps are few.

    Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021, Algorithm 1.
    There h counts clients alike, 1/m each, and the model is the mean of those who answered; here
    they count by importance and by their weights. What goes to the optimiser is the whole step of
    x: with ``sgd:eta_g=1`` it is the paper's. Nothing travels but the model: the server finds
    alpha (y_i - x) from the update, so it must see the update of each client. Guards that shorten
    updates do not reach h: it is what clients remember.

    Parameters
    ----------
    alpha
        How strongly clients are held back, in place of the work's own ``mu``; 0.1 or 0.01 there.
        Small values take large steps -h/alpha, and want many local steps.

    >>> FedDyn(alpha=0.5).rule(LocalWork(), {}, {"g_i": np.zeros((1, 2))}).work.mu
    0.5
    """

    alpha: Annotated[float, Real(0, open_low=True)] = 0.1

    name: ClassVar[str] = "feddyn"
    paper: ClassVar[Citation | None] = Citation(
        "Durmus Alp Emre Acar, Yue Zhao, Ramon Matas~Navarro, Matthew Mattina, Paul N. Whatmough, "
        "Venkatesh Saligrama",
        "Federated Learning Based on Dynamic Regularization",
        "ICLR",
        2021,
        "Algorithm 1",
    )
    keeps_server: ClassVar[tuple[str, ...]] = ("h",)
    sends: ClassVar[tuple[str, ...] | None] = ()
    keeps_client: ClassVar[tuple[str, ...]] = ("g_i",)
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("h", "tally", sent=False),)
    needs_rows: ClassVar[bool] = True
    corrects_steps: ClassVar[bool] = True
    weights_only: ClassVar[bool] = True

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(replace(work, mu=self.alpha), -kept["g_i"])

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        return {}, {"g_i": kept["g_i"] - self.alpha * updates.astype(np.float64)}

    def summed(self, updates: Array, payloads: Rows) -> Rows:
        return {"h": -self.alpha * updates.astype(np.float64)}

    def direct(self, direction: Floats, server: Vectors) -> Floats:
        return direction - server["h"] / self.alpha


# FedNova: updates divided by the local work that made them.

TAU, SUMS = "tau", "sums"
"""Vectors of the server: tau of the round, and the sums over earlier rounds that give it."""


@dataclass(frozen=True)
class FedNova(Algorithm):
    """Normalized averaging, for clients that make unequal numbers of local steps.

    Plain averaging then minimizes ``sum_i q_i F_i``, with q_i proportional to p_i a_i. Here a_i is
    the local work of client i. FedNova divides every update by it::

        x <- x + tau sum_i omega_i delta_i / a_i

    For plain SGD a_i is the number of local steps. For momentum and a proximal term it is the
    number of plain steps that lead as far, see `LocalWork.normalizer`. A client sends its a_i
    beside its update, so step size schedules and data fractions are counted as they were.

    ``tau`` is the harmonic mean of the a_i. So the weights of the updates sum to 1 on average, as
    in plain averaging. The server estimates tau from the replies of earlier rounds, by
    ``sum omega_i / sum (omega_i / a_i)``. The cohort of a round has no part in its own tau. Given
    the earlier rounds, the expected direction is tau sum_i p_i delta_i / a_i for every scheme with
    unbiased weights. Only the first round with replies takes tau from its own cohort.

    The paper has the arithmetic mean, which takes longer steps: set the server's learning rate for
    that, as in ``--optimiser sgd:eta_g=2``. A client that reports too little local work gains
    weight, at most by the factor tau.

    The model ends at the minimum of ``sum_i p_i F_i`` in the limit of small local steps, as long as
    the gradients hardly change during local training. Set ``curvature`` otherwise.

    Parameters
    ----------
    mu
        Proximal term of FedProx. None takes the ``mu`` of the local work.
    curvature
        Curvature of the local objectives. Gradients then count as falling on the way, by the
        formula of the proximal term. The result is exact for quadratics of this curvature and full
        batches. 0 is FedNova as published.

    >>> FedNova(mu=0.5).rule(LocalWork(), {}, {}).work.mu
    0.5
    """

    mu: Annotated[float | None, Maybe(Real(0))] = None
    curvature: Annotated[float, Real(0)] = 0.0

    name: ClassVar[str] = "fednova"
    paper: ClassVar[Citation | None] = Citation(
        "Jianyu Wang, Qinghua Liu, Hao Liang, Gauri Joshi, H. Vincent Poor",
        "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization",
        "NeurIPS",
        2020,
        "with the weights of any scheme",
    )
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("normalizer", "estimate", length=1),)
    needs_rows: ClassVar[bool] = True
    corrects_steps: ClassVar[bool] = True

    @property
    def disclosures(self) -> list[Disclosure]:
        says = "how much local work made the update: with epochs, about how many samples it has"
        return [Disclosure("normalizer", "every round", says)]

    def start(
        self, theta: Floats, rng: np.random.Generator, layers: Layers | None = None
    ) -> dict[str, Floats]:
        return {TAU: np.ones(1), SUMS: np.zeros(2)}

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(work if self.mu is None else replace(work, mu=self.mu))

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        return {"normalizer": work.normalizer(steps, self.curvature)[:, None]}, {}

    def rows(self, updates: Array, payloads: Rows) -> Array:
        return np.asarray(updates / _divisors(payloads))

    def summed(self, updates: Array, payloads: Rows) -> Rows:
        trained = payloads["normalizer"] > 0
        return {"normalizer": np.hstack([trained, trained / _divisors(payloads)])}

    def step(self, server: Vectors, sums: Vectors) -> dict[str, Floats]:
        new = sums["normalizer"]
        total, divided = server[SUMS] if server[SUMS][1] > 0 else new
        tau = np.array([total / divided]) if divided > 0 else server[TAU]
        return {TAU: tau, SUMS: server[SUMS] + new}

    def direct(self, direction: Floats, server: Vectors) -> Floats:
        return direction * server[TAU]


def _divisors(payloads: Mapping[str, Array]) -> Floats:
    """Return the local work of each client, (b, 1), at least one step whatever it says."""
    return np.maximum(payloads["normalizer"].astype(np.float64), 1.0)


# FedProx: local SGD that is held back to the model it began with.


@dataclass(frozen=True)
class FedProx(Algorithm):
    """Local SGD on F_i(theta) + mu/2 ||theta - theta_0||^2.

    Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, equation 2.

    Parameters
    ----------
    mu
        How strongly clients are held back, in place of the work's own ``mu``; 0 is plain SGD.

    >>> FedProx(mu=0.5).rule(LocalWork(), {}, {}).work.mu
    0.5
    """

    mu: Annotated[float, Real(0)] = 0.1

    name: ClassVar[str] = "fedprox"
    paper: ClassVar[Citation | None] = Citation(
        "Tian Li, Anit Kumar Sahu, Manzil Zaheer, Maziar Sanjabi, Ameet Talwalkar, Virginia Smith",
        "Federated Optimization in Heterogeneous Networks",
        "MLSys",
        2020,
        "equation (2)",
    )

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(replace(work, mu=self.mu))


# IFCA: k models, of which every client trains the one that fits it best.

SHARED = "shared"
"""The vector of the server that is 1 where a parameter is common to all models."""


@dataclass(frozen=True)
class Parts:
    """A number of leading parameters, or names of layers."""

    def __str__(self) -> str:
        return "an int of at least 0, or a tuple of names of layers"

    def accepts(self, value: object) -> bool:
        """Whether it is one."""
        if isinstance(value, tuple):
            return all(isinstance(name, str) and name for name in value)
        return is_whole(value) and value >= 0  # type: ignore[operator]

    def parse(self, text: str) -> object:
        """What a word says: 100, or conv1,conv2."""
        return int(text) if text.lstrip("+-").isdigit() else tuple(elements(text))

    def bad_examples(self) -> Sequence[object]:
        """What is none."""
        return [-1, 1.5, True, None, "conv1", ("",), (3,)]


@dataclass(frozen=True)
class IFCA(Algorithm):
    """Clusters of clients that are found while they learn, a model for each.

    All k models go down. A client takes the one with the lowest loss on its data, trains it, and
    sends the change and which one it was. With s_ij = 1 where client i took model j::

        x_j <- x_j + sum_i omega_i s_ij delta_i / sum_i omega_i s_ij     average=models
        x_j <- x_j + sum_i omega_i s_ij delta_i                          average=gradients

    A model that nobody took stays. Whatever a scheme asks of a client (loss, gradient, update) is
    about the model that the client takes. Losses and accuracy in traces are those of everybody's
    own model, see `fedcohort.simulation._measures`.

    Ghosh et al., "An Efficient Framework for Clustered Federated Learning", NeurIPS 2020,
    Algorithm 1, with both ways to average, and the weight sharing of its section 5. There clients
    count alike; here by their weights. As there, models that begin too far from any cluster may be
    nobody's for good: try several seeds, or a larger ``spread``.

    Parameters
    ----------
    k
        How many models.
    shared
        What is common to all models and learns from everybody: layers by their names,
        ``("conv1", "fc.weight")`` or in a word ``ifca:shared=conv1,fc.weight``, a module's name
        for all of its layers; or a number: so many leading parameters. ``task.layers`` has the
        names and shapes. A single layer whose name is a number is written with a comma, ``0,``.
    average
        ``models`` moves a model by the mean change of its clients, ``gradients`` by their part of
        the sum: a small cluster then learns slowly.
    spread
        The standard deviation by which all models but the first begin apart from it.

    >>> IFCA(k=3).others
    ('model-1', 'model-2')
    """

    k: Annotated[int, Whole(1)] = 2
    shared: Annotated[int | tuple[str, ...], Parts()] = 0
    average: Annotated[str, OneOf(("models", "gradients"))] = "models"
    spread: Annotated[float, Real(0, open_low=True)] = 0.1

    name: ClassVar[str] = "ifca"
    paper: ClassVar[Citation | None] = Citation(
        "Avishek Ghosh, Jichan Chung, Dong Yin, Kannan Ramchandran",
        "An Efficient Framework for Clustered Federated Learning",
        "NeurIPS",
        2020,
        "Algorithm 1, Section 5",
    )
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("cluster", "note", length=1),)
    needs_rows: ClassVar[bool] = True

    @property
    def models(self) -> int:
        return self.k

    def start(
        self, theta: Floats, rng: np.random.Generator, layers: Layers | None = None
    ) -> dict[str, Floats]:
        common = self._common(len(theta), layers)
        apart = self.spread * rng.standard_normal((self.k - 1, len(theta)))
        apart[:, common] = 0.0
        models = dict(zip(self.others, theta + apart, strict=True))
        named = isinstance(self.shared, tuple)  # which parameters these are is known here alone
        return {**models, SHARED: common.astype(np.float64)} if named else models

    def _common(self, dimension: int, layers: Layers | None) -> Bools:
        """(d,) which parameters all models share."""
        common = np.zeros(dimension, dtype=np.bool_)
        if not isinstance(self.shared, tuple):
            common[: self.shared] = True
            return common
        if layers is None:
            return common
        ends = np.cumsum([math.prod(shape) for shape in layers.values()]).tolist()
        for wanted in self.shared:
            found = [n == wanted or n.startswith(f"{wanted}.") for n in layers]
            if not any(found):
                raise BadParameter(
                    "shared",
                    self.name,
                    f"a number, or names of layers ({brief(', '.join(layers))})",
                    wanted,
                )
            for name, end, taken in zip(layers, ends, found, strict=True):
                common[end - math.prod(layers[name]) : end] |= taken
        return common

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        which = kept[MODEL] if self.k > 1 else np.zeros((len(updates), 1))
        return {"cluster": which}, {}

    def width(self, dimension: int) -> int:
        return self.k * (dimension + 1)

    def rows(self, updates: Array, payloads: Rows) -> Array:
        """(b, k (d + 1)) the update in the place of the model that was taken, and a 1 beside it."""
        b, d = updates.shape
        taken = np.clip(payloads["cluster"][:, 0], 0, self.k - 1).astype(
            np.int64
        )  # a client's word
        rows = np.zeros((b, self.k, d + 1))
        rows[np.arange(b), taken, :d] = updates
        rows[np.arange(b), taken, d] = 1.0
        return rows.reshape(b, -1)

    def direct(self, direction: Floats, server: Vectors) -> Floats:
        sums = direction.reshape(self.k, -1)
        moved, mass = sums[:, :-1], sums[:, -1:]
        own = moved / np.where(mass > 0, mass, np.inf) if self.average == "models" else moved.copy()
        named = isinstance(self.shared, tuple)
        common = server[SHARED] > 0 if named else self._common(moved.shape[1], None)
        own[:, common] = moved[:, common].sum(axis=0)
        return own.ravel()


# SCAFFOLD: local SGD, corrected by control variates.


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Control variates against the drift of clients: every local gradient has c - c_i added.

    The problem: after several local steps a client is on its way to its own minimum, and the
    mean of all stops elsewhere than at the minimum of the mean. Client i keeps c_i, about its own
    gradient, the server c, about everybody's::

        y <- y - lr (g_i(y) - c_i + c)           local steps, from the model x of the server
        c_i <- g_i(x)                            option 1: the gradient at x, on all local data
        c_i <- c_i - c + (x - y) / (K lr)        option 2: the mean of the local gradients
        c   <- c + sum_i p_i (change of c_i)     on the server, over those who answered

    Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
    ICML 2020, Algorithm 1; their options I and II. There clients count alike: 1/N of the change
    is added; here by importance p, so that c = sum_i p_i c_i holds exactly, whoever was drawn and
    whatever the weights (by omega it would not). The server's learning rate is the optimiser's:
    ``--optimiser sgd:eta_g=0.5``. With local momentum, K is the number of plain steps that lead as
    far, so that option 2 is a mean of gradients still.

    Parameters
    ----------
    option
        1 costs a pass over the local data and no memory of the path; 2 is free.

    >>> Scaffold().spec
    'scaffold:option=2'
    """

    option: Annotated[int, Whole(1, 2)] = 2

    name: ClassVar[str] = "scaffold"
    paper: ClassVar[Citation | None] = Citation(
        "Sai Praneeth Karimireddy, Satyen Kale, Mehryar Mohri, Sashank J. Reddi, "
        "Sebastian U. Stich, Ananda Theertha Suresh",
        "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
        "ICML",
        2020,
        "Algorithm 1",
    )
    keeps_server: ClassVar[tuple[str, ...]] = ("c",)
    corrects_steps: ClassVar[bool] = True
    keeps_client: ClassVar[tuple[str, ...]] = ("c_i",)
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("c", "tally", of="c_i"),)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("gradient",) if self.option == 1 else ()

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(work, server["c"] - kept["c_i"])

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        if self.option == 1:
            own = kept["gradient"]
        else:
            own = kept["c_i"] - server["c"] - updates / (work.lr * work.plain_steps(steps)[:, None])
        return {"c": own - kept["c_i"]}, {"c_i": own}


# Plain local SGD: what FedAvg runs on a client.


@dataclass(frozen=True)
class LocalSgd(Algorithm):
    """Local steps of SGD as `LocalWork` says; nothing is remembered.

    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, Algorithm 1.
    """

    name: ClassVar[str] = "sgd"
    paper: ClassVar[Citation | None] = Citation(
        "H. Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera~y~Arcas",
        "Communication-Efficient Learning of Deep Networks from Decentralized Data",
        "AISTATS",
        2017,
        "Algorithm 1, ClientUpdate",
    )


# Local algorithms by name: what a chosen client does with the model.
#
# Other packages add theirs through the entry point group ``fedcohort.algorithms``.

ALGORITHMS: Kind[Algorithm] = Kind("algorithm", (__name__,), Algorithm, default="sgd")


def algorithm(which: Algorithm | str | None = None, **parameters: Any) -> Algorithm:
    """The local algorithm of that name; None is plain SGD, and an algorithm is itself.

    >>> algorithm("fedprox:mu=0.5")
    FedProx(mu=0.5)
    """
    return ALGORITHMS.build(which, **parameters)
