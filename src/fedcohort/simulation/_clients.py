"""Simulated clients, and the noisy replies of private ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput, NotOffered
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.maths._draws import WORD, Rng, below
from fedcohort.maths._noise import noisy_counts
from fedcohort.privacy._mechanisms import SizeReport, whole_size
from fedcohort.privacy._size_estimate import SizeShare
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._queries import Ask, Client
from fedcohort.simulation._local_stage import LocalStage
from fedcohort.training._algorithms import Vectors
from fedcohort.training._local import LocalWork
from fedcohort.training._model import cut
from fedcohort.training._task import Task

# The seeded twin of a private client, for simulations only.
#
# The law is that of `fedcohort.privacy._mechanisms`, ticket for ticket; the randomness is a seeded
# generator, so that a simulation can be repeated. For the same reason it protects nobody:
# whoever knows the seed knows the answers. Nothing under ``fedcohort.privacy`` may import this
# module, and a test sees to it.


def report_size(rng: Rng, size: int, report: SizeReport) -> int:
    """One simulated answer: the obvious way, as on a client."""
    offset = int(below(rng, report.threshold - 2, 1)[0])
    ticket = int(below(rng, report.tickets, 1)[0])
    return report.answer(report.level(whole_size(size, "report_size"), offset), ticket)


def share_size(rng: np.random.Generator, size: int, share: SizeShare) -> int:
    """One simulated share of the noisy sum of sizes, as on a client."""
    return share.clip(whole_size(size, "share_size")) + share.noise(_Seeded(rng))


class _Seeded:
    """Whole numbers of a seeded generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def below(self, bound: int) -> int:
        return int(below(self._rng, bound, 1)[0])


def report_sizes(rng: np.random.Generator, sizes: Sequence[int] | Ints, report: SizeReport) -> Ints:
    """Simulated answers of many clients at once, exact: no float is involved.

    The same law as `report_size`, drawn in another order.

    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> report_sizes(rng, [0, 5, 150, 299, 10**9], SizeReport(threshold=300, epsilon=3.0))
    array([0, 0, 1, 3, 3])
    """
    clipped = np.clip(_whole_sizes(sizes), report.smallest, report.threshold - 1)
    offsets = below(rng, report.threshold - 2, clipped.size)
    levels = ((clipped - 1) * (report.levels - 1) + offsets) // (report.threshold - 2)
    high, low = _tickets(rng, report.tickets, clipped.size)
    truth_high, truth_low = divmod(report.truth_weight, 1 << WORD)
    truth = truth_high - (levels < 0)  # `SizeReport.answer` has the reason
    is_true = _less(high, low, truth, truth_low)
    # (ticket - w) // 2^64 on two words, with the borrow of the lower one.
    others = high - truth - (low < np.uint64(truth_low))
    others += (levels >= 0) & (others >= levels)
    return np.asarray(report.lowest + np.where(is_true, levels, others), dtype=np.int64)


def _tickets(rng: np.random.Generator, bound: int, size: int) -> tuple[Ints, Array]:
    """Uniform integers below ``bound``, as high and low words of 64 bits, by rejection."""
    bound_high, bound_low = divmod(bound, 1 << WORD)
    high = np.empty(size, dtype=np.int64)
    low = np.empty(size, dtype=np.uint64)
    filled = 0
    while filled < size:
        missing = size - filled
        top = below(rng, bound_high + 1, missing)
        rest = rng.bit_generator.random_raw(missing)
        fits = _less(top, rest, bound_high, bound_low)
        stop = filled + int(fits.sum())
        high[filled:stop], low[filled:stop] = top[fits], rest[fits]
        filled = stop
    return high, low


def _less(high: Ints, low: Array, than_high: int | Ints, than_low: int) -> Bools:
    tie = (high == than_high) & (low < np.uint64(than_low))
    return np.asarray((high < than_high) | tie, dtype=bool)


def _whole_sizes(sizes: Sequence[int] | Ints) -> Ints:
    array = np.asarray(sizes)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < 0):
        raise BadInput(
            f"The sizes of simulated clients must be a list of whole numbers >= 0, got shape "
            f"{array.shape} of {array.dtype}."
        )
    return array.astype(np.int64)


# The simulated clients: they answer questions and train.

Coins = Callable[[str, int], np.random.Generator]
"""The generator for a purpose, of a client."""


@dataclass
class SimulatedClients:
    """All clients of a task in one round, around one model.

    Mini-batches are keyed by (seed, round, client): a client that trains to report its norm
    does not train again to send its update, and two schemes that choose the same client see
    the same update. ``coins`` takes the place of the seed where clients have their own.

    A local algorithm other than plain SGD is a `LocalStage`.
    """

    task: Task
    work: LocalWork
    seed: int
    round: int
    theta: Floats
    coins: Coins | None = None
    stage: LocalStage | None = None
    _trained: dict[int, Array] = field(default_factory=dict)

    def answer(self, ask: Ask) -> Array:
        """What the clients say to a question; common signals are measured all at once."""
        group = Group(self, ask.clients)
        if ask.signal.measure_all is not None and not ask.settings:
            with suppress(NotOffered):  # then told, or made up, client by client
                return np.asarray(ask.signal.measure_all(group.rows))
        clients = (SimulatedClient(group, place) for place in range(len(ask.clients)))
        return np.asarray([self._told(ask, client) for client in clients])

    def _told(self, ask: Ask, client: SimulatedClient) -> Any:
        """One answer; facts that the task does not have are made up where the signal says how."""
        try:
            return ask.measured(client)
        except NotOffered:
            if ask.signal.example is None:
                raise
        rng = stream(self.seed, f"fact {ask.signal.name}", client=client._position)
        return ask.signal.made_up(rng, {**self.sizes, **ask.settings})

    @property
    def sizes(self) -> dict[str, int]:
        """The lengths that shapes of signals may name."""
        histograms = self.task.label_histograms
        classes = {} if histograms is None else {"classes": histograms.shape[1]}
        return {"parameters": self.task.dimension, **classes}

    @property
    def offers(self) -> frozenset[str]:
        """The names of what these clients have, beside private answers."""
        task = type(self.task)
        lacking = {
            name for name, way in OPTIONAL.items() if getattr(task, way) is getattr(Task, way)
        }
        if self.task.label_histograms is None:
            lacking.add("label_counts")
        return frozenset({*ROWS, *self.task.facts} - lacking)

    def rows(self, name: str, clients: Ints, *settings: Any) -> Any:
        """One quantity of some clients, a row each; see `fedcohort.selection._queries`."""
        if name in self.task.facts:
            return np.asarray(self.task.facts[name])[clients]
        if name in self.offers:
            return ROWS[name](self, clients, *settings)
        remedy = f"the task {self.task.name!r} must have facts = {{'{name}': one value per client}}"
        raise NotOffered(f"Client {clients[0]} of the simulation", name, remedy)

    def updates(self, clients: Ints, data_rate: float = 1.0) -> Array:
        """Return the updates (k, d) of these clients, each trained at most once a round."""
        if data_rate < 1:
            return self._train(clients, data_rate)
        if not self._trained:
            rows = self._train(clients)
            self._trained = dict(zip(clients.tolist(), rows, strict=True))
            return rows
        new = np.array([i for i in clients.tolist() if i not in self._trained], dtype=np.int64)
        if len(new):
            self._trained.update(zip(new.tolist(), self._train(new), strict=True))
        return np.stack([self._trained[i] for i in clients.tolist()])

    def _train(self, clients: Ints, data_rate: float = 1.0) -> Array:
        if self.stage is not None:
            return self.stage.train(self, clients, data_rate)
        rngs = self.rngs("train", clients)
        return np.asarray(self.task.updates(self.theta, clients, self.work, rngs, data_rate))

    def forget(self, clients: Ints) -> None:
        """Release updates that have been aggregated."""
        for client in clients.tolist():
            self._trained.pop(client, None)

    def per_model(self, clients: Ints, function: Callable[[Floats, Ints], Any]) -> Any:
        """Return rows of a function of a model and clients, at the model that each takes."""
        if self.stage is None:
            return function(self.theta, clients)
        return self.stage.per_model(self, clients, function)

    def rngs(self, purpose: str, clients: Iterable[int]) -> list[np.random.Generator]:
        """The generators of these clients for a purpose."""
        if self.coins is not None:
            return [self.coins(purpose, int(i)) for i in clients]
        return [stream(self.seed, purpose, self.round, int(i)) for i in clients]

    def sent(self, cohort: Cohort) -> tuple[Array, Cohort]:
        """Return what members of a cohort send (k, d), and the weights of their mean updates."""
        updates, counted, _ = self.reports(cohort)
        return updates, counted

    def reports(self, cohort: Cohort) -> tuple[Array, Cohort, dict[str, Array]]:
        """Return updates, the cohort with the weights of mean updates, and payloads by name."""
        if cohort.per_sample:
            return self._sample_sums(cohort)
        rows = self.updates(cohort.clients, cohort.data_rate)
        payloads = {} if self.stage is None else self.stage.payloads(self, cohort, rows)
        return rows, cohort, payloads

    def _sample_sums(self, cohort: Cohort) -> tuple[Array, Cohort, dict[str, Array]]:
        """As `reports`, for clients that send sums over the samples that take part."""
        clients, rate = cohort.clients, cohort.data_rate
        samples = self.task.participating(clients, self.rngs("train", clients), rate)
        some = np.flatnonzero(samples)  # the others need not be trained: they send zero
        rows = self.updates(clients[some], rate)
        sums = np.zeros((len(clients), self.task.dimension), rows.dtype)
        sums[some] = rows * samples[some, None].astype(rows.dtype)
        weighed = replace(cohort, weights=cohort.weights * samples, per_sample=False)
        if self.stage is None:
            return sums, weighed, {}
        means = np.zeros_like(sums)
        means[some] = rows
        return sums, weighed, self.stage.payloads(self, cohort, means, samples)


def _losses(all: SimulatedClients, clients: Ints, batch: int | None = None) -> Floats:
    if batch is None:
        return np.asarray(all.per_model(clients, all.task.losses))
    size = batch

    def of(theta: Floats, some: Ints) -> Floats:
        return all.task.batch_losses(theta, some, size, all.rngs("batch", some))

    return np.asarray(all.per_model(clients, of))


def _gradients(all: SimulatedClients, clients: Ints) -> Array:
    def of(theta: Floats, some: Ints) -> Array:
        sums, numbers = all.task.gradient_sums(theta, some, all.rngs("gradient", some))
        return np.asarray(sums / np.maximum(1, numbers)[:, None])

    return np.asarray(all.per_model(clients, of))


def _layers(all: SimulatedClients, clients: Ints, of: str = "update") -> list[dict[str, Array]]:
    models = all.per_model(clients, lambda theta, some: [theta] * len(some))
    vectors = models if of == "model" else all.rows(of, clients)
    return [cut(vector, all.task.layers) for vector in vectors]


ROWS: dict[str, Callable[..., Any]] = {
    "key": lambda all, clients: clients,
    "size": lambda all, clients: all.task.sizes[clients],
    "label_counts": lambda all, clients: all.task.label_histograms[clients],
    "loss": _losses,
    "sample_losses": lambda all, clients: all.per_model(
        clients, lambda theta, some: [all.task.sample_losses(theta, i) for i in some]
    ),
    "update": SimulatedClients.updates,
    "gradient": _gradients,
    "layers": _layers,
    "feature_counts": lambda all, clients, bins: all.task.feature_histograms(clients, bins),
}
"""Each quantity, of many clients at once."""
OPTIONAL = {"sample_losses": "sample_losses", "feature_counts": "feature_histograms"}
"""What a task need not have, and the method that it then does not write."""


@dataclass
class Group:
    """Clients that are asked together: what one of them computes, all do, and once."""

    all: SimulatedClients
    clients: Ints
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def rows(self, name: str, *settings: Any) -> Any:
        """A quantity of all of them."""
        if (name, *settings) not in self._known:
            self._known[name, *settings] = self.all.rows(name, self.clients, *settings)
        return self._known[name, *settings]


class SimulatedClient(Client):
    """One of a group, as a signal sees it."""

    def __init__(self, group: Group, place: int) -> None:
        self._group, self._place = group, place
        self._position = int(group.clients[place])

    @property
    def state(self) -> Vectors:  # type: ignore[override]
        """What it keeps for the local algorithm."""
        stage = self._group.all.stage
        return {} if stage is None else stage.keep.get(self._position, {})

    def quantity(self, name: str, *settings: Any) -> Any:
        """Private answers are each client's own; all else is computed for the group."""
        if name in ("private_size", "private_share", "private_counts"):
            return super().quantity(name, *settings)
        return self._group.rows(name, *settings)[self._place]

    def offer_private_size(self, report: SizeReport, round: int) -> int:
        """The seeded twin of an answer, which protects nobody."""
        rng = stream(self._group.all.seed, "private-size", round, self._position)
        return report_size(rng, self.size, report)

    def offer_private_share(self, share: SizeShare, round: int) -> int:
        """The seeded twin of a share of the sum of sizes, which protects nobody."""
        rng = stream(self._group.all.seed, "private-share", round, self._position)
        return share_size(rng, self.size, share)

    def offer_private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints:
        """Counts with discrete Laplace noise: the seeded twin, which protects nobody."""
        (rng,) = self._group.all.rngs("private-counts", [self._position])
        return noisy_counts(rng, counts, epsilon, sensitivity)
