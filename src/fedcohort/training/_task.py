"""A task: what clients train, and in which batches they compute."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal import html
from fedcohort._internal.environment import free_bytes
from fedcohort._internal.errors import BadInput, BadParameter, Diverged, TooLarge
from fedcohort._internal.fingerprint import Digest, attributes
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.maths._draws import distinct
from fedcohort.training._local import LocalWork

# Which samples a client trains on, step by step.
#
# The only place where local training is random. Orders are drawn from raw 64-bit words, as
# in `fedcohort.maths._draws`: the same under every version of numpy.

_SORTED = 64  # times a batch: of more samples, a few are drawn rather than all put in order
_FEW = 10_000_000
"""So many rows fit anywhere."""
_ROW_BYTES = 24
"""Memory for the place of a row in a batch, at the peak."""


def participants(rng: np.random.Generator, size: int, data_rate: float) -> Ints:
    """The samples that take part: each with probability ``data_rate``; at 1 nothing is drawn."""
    if data_rate == 1.0:
        return np.arange(size)
    words = rng.bit_generator.random_raw(size)
    uniforms = (words >> np.uint64(11)) * 2.0**-53  # in [0, 1), exact
    return np.flatnonzero(uniforms < data_rate)


def batches(
    rng: np.random.Generator, size: int, work: LocalWork, data_rate: float = 1.0
) -> tuple[Ints, Ints]:
    """The rows of every step, and how many of them are real.

    Returns ``rows`` (steps, batch), positions in the client's data, and ``lengths``
    (steps,): in step t the batch is ``rows[t, :lengths[t]]``; what follows is padding.
    A row occurs at most once in a batch.

    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> rows, lengths = batches(rng, size=5, work=LocalWork(epochs=1, batch=2))
    >>> [rows[t, :length].tolist() for t, length in enumerate(lengths)]
    [[2, 0], [1, 4], [3]]
    """
    chosen = participants(rng, size, data_rate)
    count = len(chosen)
    steps, batch = work.steps_for(count), work.batch_for(count)
    if steps == 0:
        return np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)
    if steps * batch > _FEW and _ROW_BYTES * steps * batch > free_bytes():
        raise TooLarge(
            f"{steps:,} steps on {batch:,} samples each would not fit in memory: lower 'steps', "
            "'epochs' or 'batch'."
        )
    if batch == count:  # every step takes all: their order is no matter
        return np.broadcast_to(chosen, (steps, count)), np.full(steps, count)
    if work.batches == "fresh":
        rows = _fresh(rng, steps, count, batch)
        return rows if count == size else chosen[rows], np.full(steps, batch)
    per_pass = -(-count // batch)
    passes = -(-steps // per_pass)
    order = _orders(rng, passes, count)  # (passes, count)
    rows = np.zeros((passes, per_pass * batch), dtype=np.int64)
    rows[:, :count] = order if count == size else chosen[order]
    lengths = np.full((passes, per_pass), batch)
    lengths[:, -1] = count - (per_pass - 1) * batch
    return rows.reshape(-1, batch)[:steps], lengths.reshape(-1)[:steps]


def _fresh(rng: np.random.Generator, steps: int, count: int, batch: int) -> Ints:
    """Independent uniform sets of ``batch`` of ``range(count)``, one per row."""
    if count <= _SORTED * batch:
        return _orders(rng, steps, count)[:, :batch]
    return np.stack([distinct(rng, count, batch) for _ in range(steps)])


def _orders(rng: np.random.Generator, passes: int, count: int) -> Ints:
    """Independent uniform orders of ``range(count)``, one per row.

    The positions are sorted by random keys. Each stands in the low bits of its own key, for
    numpy sorts numbers several times faster than it finds the order of numbers; keys with
    equal high bits (a chance of about ``count**3 / 2**65``) fall in order of position.
    """
    low = np.uint64((1 << (count - 1).bit_length()) - 1)
    keys: Array = rng.bit_generator.random_raw(passes * count).reshape(passes, count)
    keys = (keys & ~low) | np.arange(count, dtype=np.uint64)
    keys.sort(axis=1)
    return (keys & low).astype(np.int64)


# What a simulated round needs to know of a learning problem: the `Task`.


@dataclass(frozen=True)
class Evaluation:
    """How good T models are; rows are aligned with the models that were evaluated."""

    train_loss: Floats  # (T,) F(theta) = sum_i p_i F_i(theta), over all clients
    test_loss: Floats  # (T,) nan where the task has no test set
    accuracy: Floats  # (T,) share of the test set that is classified correctly, or nan
    client_accuracy: Floats | None = None
    """(T, n) the same of each client's own test samples, nan where it has none; None where nobody
    has any."""
    best: Ints | None = None  # (T, n) which of several models is each client's; None for one model


class Task(ABC):
    """A learning problem that is spread over n clients.

    Client i holds ``sizes[i]`` samples and has the objective ``F_i(theta)``, the mean loss
    of the model ``theta`` over them; the server wants to minimise
    ``F(theta) = sum_i p_i F_i(theta)``, with p the ``importance``.

    A model is one flat vector, and all methods are pure: ``theta`` goes in, arrays come out.
    Work on several clients takes one generator *per client*, so that what client 7 does in
    a round does not depend on who else was chosen.

    Attributes
    ----------
    name : str
        What a report calls the task.
    sizes : (n,) integers
        The samples of each client; 0 is allowed: such a client never changes a model.
    importance : (n,) floats
        p, which sums to 1; ``sizes / sum(sizes)`` unless given.
    dimension : int
        d, the length of a model.
    label_histograms : (n, classes) integers, or None
        How many samples of each class each client holds, for classification.
    facts : mapping
        What signals of your own look at beside the data, by name (``battery``): (n, ...) a value
        for every client.
    """

    name: str
    sizes: Ints
    importance: Floats
    dimension: int
    label_histograms: Ints | None = None
    facts: Mapping[str, ArrayLike] = MappingProxyType({})
    statistics: int = 0
    """How many numbers of a model are no weights but statistics of the data, as BatchNorm's."""
    ids: tuple[str | int, ...] = ()
    """What clients are called in a report, where they have other names than 0, 1, ..."""
    measures: tuple[str, ...] = ()
    """What is measured beside losses and accuracy unless it is said; see
    `fedcohort.simulation._measures`."""
    caches: ClassVar[tuple[str, ...]] = ()
    """Attributes that are computed from the others when first needed, and so decide nothing."""

    def __repr__(self) -> str:
        return (
            f"<Task {self.name}: {len(self.sizes)} clients, {int(self.sizes.sum())} samples, "
            f"a model of {self.dimension} numbers>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: how much data clients have, and of which classes."""
        order = np.argsort(-self.importance, kind="stable")
        histograms = self.label_histograms
        held = None if histograms is None else np.count_nonzero(histograms, axis=1)
        known: list[tuple[str, Any]] = [
            ("samples of each client", html.bars(self.sizes, "samples of each client")),
            ("least, largest", f"{int(self.sizes.min()):,} to {int(self.sizes.max()):,}"),
            ("importance, largest first", html.bars(self.importance[order], "importance")),
            ("layers", ", ".join(f"{name} {shape}" for name, shape in self.layers.items())),
        ]
        if histograms is not None and held is not None and histograms.shape[1]:
            whole = html.bars(histograms.sum(axis=0), "samples of each class")
            known += [
                ("samples of each class", whole),
                ("classes of a client", f"{held.min()} to {held.max()} of {histograms.shape[1]}"),
            ]
        return html.facts(repr(self).strip("<>"), known)

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each named layer, in the order in which a flat model holds them.

        `fedcohort.training.cut` cuts a model, an update or a gradient accordingly.
        """
        return {"theta": (self.dimension,)}

    def fingerprint(self) -> str:
        """A digest of all that decides a result; what it cannot tell apart is refused.

        Class, attributes (those with an underscore, too, but not the `caches`) and first model
        count; of a class or function that is not fedcohort's, so does the source.

        >>> from fedcohort.training import Quadratic
        >>> Quadratic([[0.0], [1.0]]).fingerprint() == Quadratic([[0.0], [2.0]]).fingerprint()
        False
        """
        digest = Digest(f"the task {type(self).__name__}")
        digest.add("class", type(self))
        caches = {name for kind in type(self).__mro__ for name in vars(kind).get("caches", ())}
        promised = ("name", "sizes", "importance", "dimension")  # they may be properties
        common = {name: getattr(self, name) for name in promised}
        for name, value in sorted({**attributes(self, caches), **common}.items()):
            digest.add(name, value)
        digest.add("initial(0)", np.asarray(self.initial(0)))
        return digest.hex()

    @abstractmethod
    def initial(self, seed: int) -> Floats:
        """The model to start from, (d,); the same for the same seed."""

    @abstractmethod
    def updates(
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
        drift: Array | None = None,
    ) -> Array:
        """Local training: ``theta_i - theta`` for each of the clients, (k, d).

        With ``data_rate`` below 1, every local sample takes part with that probability,
        drawn once, and the client trains on those samples as if it had no others; with
        none drawn its row is zero. A row that is not finite means that training diverged;
        it is for the server to reject.

        ``drift`` (k, d) is added to every gradient of client i, as `LocalWork` says. Together
        with ``work.mu`` it is all that local algorithms ask of training: FedProx sets mu,
        SCAFFOLD has the drift ``c - c_i``, FedDyn both.
        """

    def local_updates(
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
        drift: Array | None = None,
    ) -> Array:
        """`updates`, also of a task that was written before there was a drift."""
        if drift is None:
            return self.updates(theta, clients, work, rngs, data_rate)
        if "drift" not in inspect.signature(self.updates).parameters:
            raise BadInput(
                f"The task {self.name!r} trains plainly only: its method 'updates' must take "
                "'drift' for this local algorithm. Got none; see fedcohort.training.Task.updates."
            )
        return self.updates(theta, clients, work, rngs, data_rate, drift)

    def participating(
        self, clients: Ints, rngs: Sequence[np.random.Generator], data_rate: float = 1.0
    ) -> Ints:
        """How many samples of each client take part in `updates` with these generators, (k,).

        The generators must be as new as they were there: who takes part is drawn first.
        """
        clients = self._check_clients(clients)
        self._check_rngs(clients, rngs, data_rate)
        sizes = self.sizes[clients]
        if data_rate == 1.0:
            return sizes
        drawn = [len(participants(r, int(s), data_rate)) for r, s in zip(rngs, sizes, strict=True)]
        return np.array(drawn, dtype=np.int64)

    def pooled(self) -> Task:
        """The same problem with all samples on one client: what centralised training sees."""
        raise BadInput(f"The samples of the task {self.name!r} cannot be brought together.")

    @abstractmethod
    def losses(self, theta: Array, clients: Ints) -> Floats:
        """``F_i(theta)`` on all local data of each of the clients, (k,); 0 without samples."""

    def sample_losses(self, theta: Array, client: int) -> Array:
        """The loss of each sample of one client, (n_i,)."""
        raise BadInput(f"The task {self.name!r} does not tell the loss of single samples.")

    def batch_losses(
        self, theta: Array, clients: Ints, batch: int, rngs: Sequence[np.random.Generator]
    ) -> Floats:
        """The mean loss over ``batch`` random samples of each client (all, if it has fewer)."""
        raise BadInput(f"The task {self.name!r} does not tell the loss of a mini-batch.")

    def feature_histograms(self, clients: Ints, bins: int) -> Ints:
        """How often the features of the samples of each class fall into which of ``bins``.

        (k, classes, bins): equal bins on [0, 1]; what lies outside counts to the nearest.
        """
        raise BadInput(f"The task {self.name!r} has no features to count.")

    @abstractmethod
    def gradient_sums(
        self,
        theta: Array,
        clients: Ints,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
    ) -> tuple[Array, Ints]:
        """The *sum* of the gradients of the samples that take part, (k, d), and their number."""

    @abstractmethod
    def client_losses(self, thetas: Array) -> Floats:
        """``F_i`` of several models for every client, (T, n)."""

    @abstractmethod
    def evaluate(self, thetas: Array) -> Evaluation:
        """Losses and accuracy of several models (T, d): cheaper at once than one by one."""

    def subset(self, samples: int) -> Task:
        """The same problem with about so many samples, of every client its share; for evaluation.

        As many test samples are kept. They are the same whenever it is called.
        """
        raise BadInput(f"The task {self.name!r} cannot be evaluated on some of its samples.")

    def validation(self, share: float = 0.2, seed: int = 0) -> Task:
        """The same problem with samples that clients set aside in place of the test set.

        It holds nothing of the test set, and clients train on the rest of their samples; see
        `fedcohort.training._client_data.hold_out`. The seed decides which samples.
        """
        raise BadInput(f"The task {self.name!r} has no samples that could be set aside.")

    # The checks that every task makes of what it is given.

    def _check_models(self, thetas: Array, ndim: int) -> Array:
        """``thetas`` as an array of finite numbers, (d,) or (T, d)."""
        thetas = np.asarray(thetas)
        shape = f"({self.dimension},)" if ndim == 1 else f"(T, {self.dimension})"
        if thetas.ndim != ndim or thetas.shape[-1] != self.dimension:
            raise BadInput(
                f"A model of the task {self.name!r} must have shape {shape}. Got {thetas.shape} "
                "instead."
            )
        if not np.isfinite(thetas).all():
            raise Diverged(
                f"A model of the task {self.name!r} must be finite. Got NaN or infinity instead: "
                "training diverged; lower the step size 'lr'."
            )
        return thetas

    def _check_clients(self, clients: Ints) -> Ints:
        """``clients`` as positions in ``range(n)``."""
        clients = np.asarray(clients)
        if clients.size == 0:
            clients = clients.astype(np.int64)
        if clients.ndim != 1 or clients.dtype.kind not in "iu":
            raise BadInput(
                f"Clients must be a vector of integer positions. Got {clients.dtype} of shape "
                f"{clients.shape} instead."
            )
        n = len(self.sizes)
        if clients.size and not 0 <= int(clients.min()) <= int(clients.max()) < n:
            raise BadInput(
                f"Clients must be positions in [0, {n}). Got {int(clients.min())} to "
                f"{int(clients.max())} instead."
            )
        return clients.astype(np.int64, copy=False)

    def _check_rngs(
        self, clients: Ints, rngs: Sequence[np.random.Generator], data_rate: float
    ) -> None:
        if len(rngs) != len(clients):
            raise BadInput(
                f"There must be one generator per client: {len(clients)}. Got {len(rngs)} instead."
            )
        if not 0 < data_rate <= 1:  # False for NaN, too
            raise BadParameter("data_rate", type(self).__name__, "in (0, 1]", data_rate)

    def _check_drift(self, clients: Ints, drift: Array | None) -> None:
        if drift is not None and drift.shape != (len(clients), self.dimension):
            raise BadInput(
                f"'drift' must have one row per client: {(len(clients), self.dimension)}. Got "
                f"{drift.shape} instead."
            )


def check_importance(importance: ArrayLike | None, sizes: Ints, owner: str) -> Floats:
    """The importance p of each client: as given, or by size."""
    if importance is None:
        total = int(sizes.sum())
        if total == 0:
            raise BadInput(f"At least one client of {owner} must hold a sample. Got none.")
        return np.asarray(sizes / total, dtype=np.float64)
    try:
        p = np.asarray(importance, dtype=np.float64)
    except (TypeError, ValueError):
        p = np.zeros(0)  # no numbers, or not of one length
    if p.shape != sizes.shape or not np.isfinite(p).all() or (p < 0).any():
        raise BadParameter(
            "importance", owner, f"{len(sizes)} finite numbers of at least 0", importance
        )
    if not np.isclose(p.sum(), 1.0, rtol=0, atol=1e-9):
        raise BadParameter(
            "importance", owner, "numbers that sum to 1", importance, "Divide them by their sum."
        )
    return p
