"""The data of all clients in one array, their checks, and a validation split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_real
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Bools, Ints
from fedcohort.maths._draws import Rng, below, distinct, permutation

# Whether arrays, labels and who holds what are what a task can be made of.

_BLOCK = 4096  # rows that are checked at a time


def is_integer(value: object) -> bool:
    """Whether a parameter is an integer, which True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_array(given: object, name: str) -> Array:
    """What was given as an array; what is none, with the line that makes one of it."""
    if not isinstance(given, np.ndarray):  # which may be a file
        try:
            array = np.asanyarray(given)
        except (ValueError, TypeError, RuntimeError):  # a tensor elsewhere, samples one by one
            array = np.empty((), dtype=object)
        if array.dtype == object:
            remedy = "such as np.stack([x for x, y in dataset])"
            if hasattr(given, "detach"):
                remedy = f"such as {name}.detach().cpu().numpy()"
            kind = type(given).__name__
            raise BadInput(f"'{name}' must be an array of numbers, {remedy}. Got {kind} instead.")
        return array
    return given


def check_owners(clients: object) -> None:
    """Rows by client, not clients by row or by name."""
    remedy = ""
    if isinstance(clients, Mapping):
        remedy = "Write list(clients.values())."
    elif isinstance(clients, np.ndarray) and clients.ndim == 1 and clients.dtype != object:
        remedy = "Of the owner of each row: [np.flatnonzero(owner == i) for i in range(n)]."
    if remedy:
        must, got = "a list with the rows of each client", type(clients).__name__
        raise BadInput(f"The 'clients' of a task must be {must}. Got {got} instead. {remedy}")


def targets(y: Array, classes: int | None, name: str) -> Array:
    """Labels in ``range(classes)``, or any numbers, a row per sample."""
    y = as_array(y, name)
    if classes is None:
        if y.ndim == 0:
            raise BadInput(f"'{name}' must have a row per sample. Got one number instead.")
        check_features(y, np.arange(len(y)), name)
        return y
    if y.ndim != 1 or (y.size and y.dtype.kind not in "iu"):
        remedy = "with one label per sample"
        if y.ndim == 2:
            remedy = f"write {name}.{'ravel()' if y.shape[1] == 1 else 'argmax(axis=1)'}"
        elif y.dtype.kind == "f":
            remedy = f"write {name}.astype(int), or leave 'classes' out if it is no label"
        elif y.dtype.kind in "US":
            remedy = f"write np.unique({name}, return_inverse=True)[1]"
        raise BadInput(
            f"'{name}' must be a vector of integers. Got {y.dtype} of shape {y.shape} instead: "
            f"{remedy}."
        )
    if y.size and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise BadInput(
            f"'{name}' must be labels in [0, {classes}). Got {int(y.min())} to {int(y.max())} "
            "instead."
        )
    return y.astype(np.int64)


def held_by(clients: Sequence[Array], count: int, what: str) -> tuple[Ints, Ints]:
    """The positions that clients hold, one after another, and where each begins."""
    held = [_positions(rows, count, f"{what} of client {i}") for i, rows in enumerate(clients)]
    return np.concatenate(held), starts_of(held)


def starts_of(parts: Sequence[Ints]) -> Ints:
    """Where each part begins when they follow one another, and where the last ends."""
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _positions(rows: Array, count: int, what: str) -> Ints:
    rows = np.asarray(rows)
    if rows.size == 0:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise BadInput(
            f"The {what} must be a vector of positions. Got {rows.dtype} of shape {rows.shape} "
            "instead."
        )
    if not 0 <= int(rows.min()) <= int(rows.max()) < count:
        raise BadInput(
            f"The {what} must be positions in [0, {count}). Got {int(rows.min())} to "
            f"{int(rows.max())} instead."
        )
    return rows.astype(np.int64)


def check_features(x: Array, rows: Ints, name: str) -> None:
    """The rows of an array that count must be finite numbers."""
    if x.dtype.kind not in "iufb" or 0 in x.shape[1:]:
        raise BadInput(f"'{name}' must hold numbers. Got {x.dtype} of shape {x.shape} instead.")
    if x.dtype.kind != "f":
        return
    for start in range(0, len(rows), _BLOCK):
        if not np.isfinite(x[rows[start : start + _BLOCK]]).all():
            raise BadInput(
                f"'{name}' must be finite. Got NaN or infinity instead: remove or impute those "
                "samples."
            )


# Samples that clients set aside, to choose settings by: the test set is for the verdict alone.


def hold_out(
    clients: Sequence[Ints], labels: Array | None, share: float, seed: int = 0
) -> tuple[list[Ints], list[Ints]]:
    """The samples that each client goes on training on, and those it sets aside.

    A client with n_i samples sets aside ``share * n_i`` of them, rounded up or down at random so
    that this holds on average, and by label as evenly as whole numbers allow: of c samples with
    one label, c k / n_i rounded up or down, where k are set aside in all. It keeps at least one,
    so that a client with a single sample only trains. What any client still trains on is not set
    aside by another that holds it, too. What a client sets aside does not depend on the others.

    Parameters
    ----------
    clients
        The positions of the samples of each client.
    labels
        The label at each position; None where samples have none.
    share, seed
        Of its samples that a client sets aside, in (0, 1); which, is drawn.

    Examples
    --------
    >>> kept, aside = hold_out([np.arange(8), np.array([8])], np.arange(9) % 2, share=0.5)
    >>> [len(rows) for rows in kept], [len(rows) for rows in aside]
    ([4, 1], [4, 0])
    >>> sorted((aside[0] % 2).tolist())
    [0, 0, 1, 1]
    """
    if not is_real(share) or not 0 < share < 1:
        raise BadParameter("share", "a validation split", "a number in (0, 1)", share)
    exactly = Fraction(share).limit_denominator(10**6)
    kept, aside = [], []
    for client, rows in enumerate(clients):
        rng = stream(seed, "validation", client=client)
        own = None if labels is None else np.asarray(labels[rows])
        taken = systematic(rng, len(rows), exactly, own)
        kept.append(rows[~taken])
        aside.append(rows[taken])
    trained = np.concatenate(kept)
    aside = [rows[~np.isin(rows, trained)] for rows in aside]
    if not any(len(rows) for rows in aside):
        raise BadInput(
            f"A share of {share} of the training data leaves no sample to validate on: clients "
            "keep at least one each, and what another trains on; take a larger share, or clients "
            "with more samples of their own."
        )
    return kept, aside


def systematic(rng: Rng, size: int, share: Fraction, labels: Array | None) -> Bools:
    """Which of a client's samples are set aside: at even distances in the order of the labels.

    Every sample has the same chance: the n k sums of an offset below n and a multiple of n are 0
    to n k - 1, and k of them are in each interval that means one sample.
    """
    taken = np.zeros(size, dtype=np.bool_)
    if size < 2:
        return taken
    count, rest = divmod(share.numerator * size, share.denominator)
    count += int(below(rng, share.denominator, 1)[0] < rest)
    count = min(count, size - 1)
    if count:
        order = permutation(rng, size)
        if labels is not None:
            order = order[np.argsort(labels[order], kind="stable")]
        offset = int(below(rng, size, 1)[0])
        taken[order[(offset + size * np.arange(count)) // count]] = True
    return taken


# The samples of a federation, of any type and shape, checked once.

Rows: TypeAlias = slice | Ints
"""Positions of samples in the order of the clients."""


class Dataset(Protocol):
    """Labelled samples, as `fedcohort.data.load` returns them."""

    @property
    def x_train(self) -> Array: ...
    @property
    def y_train(self) -> Array: ...
    @property
    def x_test(self) -> Array | None: ...
    @property
    def y_test(self) -> Array | None: ...
    @property
    def classes(self) -> int: ...


class Partition(Protocol):
    """Who holds which training samples, as `fedcohort.data.Partition`.

    It may tell ``test``, who holds which test samples, and which of them are ``tested``.
    """

    @property
    def clients(self) -> Sequence[Array]: ...


@dataclass(frozen=True, eq=False, repr=False)
class ClientData:
    """Samples with their targets, who holds which, and a test set; made by `divide`.

    Arrays may be memory-mapped: nothing is copied here. The samples of a client are
    ``samples(part(client))``, which are those at ``rows[part(client)]`` of ``x_train``.
    The test set is everybody's; where clients have test samples of their own, those of a client
    are ``test_samples(client)``, a part of it. What is computed with are the arrays divided by
    ``unit``, as those three methods give them: images may stay bytes until a batch is made.
    """

    x_train: Array  # (M, ...)
    y_train: Array  # (M, ...)
    starts: Ints  # (n + 1,) client i holds starts[i] to starts[i + 1], in the order of clients
    rows: Ints | None  # (starts[-1],) where that is in x_train; None if it is in this order
    x_test: Array  # (M', ...)
    y_test: Array  # (M', ...)
    classes: int | None  # None if the targets are no classes
    test_starts: Ints | None = None  # (n + 1,) as starts, for test samples of clients' own
    test_rows: Ints | None = None
    unit: float = 1.0  # 255 for images that are kept as bytes
    vocabulary: int | None = None  # where samples are tokens, how many there may be

    @classmethod
    def divide(
        cls,
        x_train: Array,
        y_train: Array,
        x_test: Array | None,
        y_test: Array | None,
        clients: Sequence[Array],
        classes: int | None = None,
        test_clients: Sequence[Array] | None = None,
        unit: float = 1.0,
        vocabulary: int | None = None,
    ) -> Self:
        """Check arrays, and note which rows of them each client holds.

        Parameters
        ----------
        x_train, x_test : arrays
            Samples of any type and shape: images (M, 28, 28), tokens (M, L), features. Without a
            test set, ``x_test`` and ``y_test`` are None.
        y_train, y_test : arrays
            With ``classes``, labels in ``range(classes)``; else any numbers, a row per sample.
        clients, test_clients : sequences of integer arrays
            The rows that each client holds, of ``x_train`` and, where clients have test samples
            of their own, of ``x_test``.
        classes : int, optional
            The number of classes.
        unit : float
            What samples are divided by when they are computed with.
        vocabulary : int, optional
            Where samples are tokens, how many different ones there may be.

        Examples
        --------
        >>> images = np.zeros((4, 28, 28), np.uint8)
        >>> data = ClientData.divide(images, [0, 1, 1, 0], None, None, [[0, 3], [1]], classes=2)
        >>> data.sizes
        array([2, 1])
        """
        if classes is not None and (not is_integer(classes) or classes < 2):
            raise BadParameter("classes", "a task", "an integer of at least 2", classes)
        if not is_real(unit) or unit <= 0:
            raise BadParameter("unit", "a task", "a number above 0", unit)
        if len(clients) == 0:
            must = "at least one array of sample positions"
            raise BadParameter("clients", "a task", must, clients)
        check_owners(clients)
        x_train, y_train = as_array(x_train, "x_train"), targets(y_train, classes, "y_train")
        if x_train.ndim < 1 + (classes is not None) or len(x_train) != len(y_train):
            raise BadInput(
                f"'x_train' must have one row per label, {len(y_train)} in all. Got shape "
                f"{x_train.shape} instead."
            )
        if x_test is None or y_test is None:
            x_test, y_test = x_train[:0], y_train[:0]
        x_test, y_test = as_array(x_test, "x_test"), targets(y_test, classes, "y_test")
        if x_test.shape[1:] != x_train.shape[1:] or len(x_test) != len(y_test):
            raise BadInput(
                f"'x_test' must have shape {(len(y_test), *x_train.shape[1:])}. Got "
                f"{x_test.shape} instead."
            )
        rows, starts = held_by(clients, len(y_train), "samples")
        if starts[-1] == 0:
            raise BadInput("No client holds a sample: 'clients' must have the rows of 'x_train'.")
        test_rows, test_starts = None, None
        if test_clients is not None:
            if len(test_clients) != len(clients):
                must = f"{len(clients)} arrays, one per client"
                raise BadParameter("test_clients", "a task", must, len(test_clients))
            test_rows, test_starts = held_by(test_clients, len(y_test), "test samples")
        check_features(x_train, rows, "x_train")
        check_features(x_test, np.arange(len(x_test)), "x_test")
        labels = None if classes is None else int(classes)
        return cls(
            x_train,
            y_train,
            starts,
            rows,
            x_test,
            y_test,
            labels,
            test_starts,
            test_rows,
            float(unit),
            vocabulary,
        )

    @classmethod
    def from_partition(cls, dataset: Dataset, partition: Partition) -> Self:
        """The samples of a data set, by who holds which."""
        arrays, besides = unpack(dataset, partition)
        return cls.divide(*arrays, **besides)

    @property
    def sizes(self) -> Ints:
        """The samples of each client, (n,)."""
        return np.diff(self.starts)

    @property
    def total(self) -> int:
        """The samples of all clients."""
        return int(self.starts[-1])

    @property
    def features(self) -> int:
        """The numbers that a sample consists of."""
        return int(np.prod(self.x_train.shape[1:]))

    def part(self, client: int) -> slice:
        """Which samples a client holds, in the order of the clients."""
        return slice(int(self.starts[client]), int(self.starts[client + 1]))

    def samples(self, rows: Rows) -> tuple[Array, Array]:
        """Some samples and their targets, in memory."""
        places = rows if self.rows is None else self.rows[rows]
        return self._numbers(self.x_train[places]), np.asarray(self.y_train[places])

    def tested(self, rows: Rows) -> tuple[Array, Array]:
        """Some samples of the test set and their targets, in memory."""
        return self._numbers(self.x_test[rows]), np.asarray(self.y_test[rows])

    def test_samples(self, client: int) -> tuple[Array, Array]:
        """The test samples of a client's own; none where clients have none of their own."""
        rows: Rows = slice(0, 0)
        if self.test_starts is not None and self.test_rows is not None:
            rows = self.test_rows[self.test_starts[client] : self.test_starts[client + 1]]
        return self.tested(rows)

    def _numbers(self, x: Array) -> Array:
        return (
            np.asarray(x) if self.unit == 1 else np.asarray(x, np.float32) / np.float32(self.unit)
        )

    def label_histograms(self) -> Ints | None:
        """How many samples of each class each client holds, (n, classes); None without classes."""
        if self.classes is None:
            return None
        n = len(self.starts) - 1
        owner = np.repeat(np.arange(n), self.sizes)
        y = self.y_train if self.rows is None else self.y_train[self.rows]
        counts = np.bincount(owner * self.classes + y, minlength=n * self.classes)
        return counts.reshape(n, self.classes)

    def subset(self, samples: int) -> Self:
        """About so many samples, of every client its share and at least one; as many of the test.

        They are the same whenever it is called.
        """
        rng = np.random.Generator(np.random.Philox(0))
        starts, chosen = _some(rng, self.starts, samples)
        rows = chosen if self.rows is None else self.rows[chosen]
        test_starts, test_rows = self.test_starts, self.test_rows
        if test_starts is None or test_rows is None:
            _, tested = _some(rng, np.array([0, len(self.y_test)]), samples)
        else:
            test_starts, held = _some(rng, test_starts, samples)
            tested, test_rows = np.unique(test_rows[held], return_inverse=True)
        return replace(
            self,
            starts=starts,
            rows=rows,
            x_test=self.x_test[tested],
            y_test=self.y_test[tested],
            test_starts=test_starts,
            test_rows=test_rows,
        )

    def validation(self, share: float = 0.2, seed: int = 0) -> Self:
        """A part of every client's samples as the test set, and the rest to train on.

        See `fedcohort.training._client_data.hold_out`; nothing of the test set is left.
        """
        rows = np.arange(self.total) if self.rows is None else self.rows
        labels = None if self.classes is None else self.y_train
        kept, aside = hold_out(np.split(rows, self.starts[1:-1]), labels, share, seed)
        held, own = np.concatenate(aside), self.test_starts is not None
        return replace(
            self,
            starts=starts_of(kept),
            rows=np.concatenate(kept),
            x_test=np.asarray(self.x_train[held]),
            y_test=np.asarray(self.y_train[held]),
            test_starts=starts_of(aside) if own else None,
            test_rows=np.arange(len(held)) if own else None,
        )

    def pooled(self) -> Self:
        """The same samples, all on one client; nothing is copied."""
        ends = np.array([0, self.total])
        return replace(self, starts=ends, test_starts=None, test_rows=None)


def _some(rng: np.random.Generator, starts: Ints, samples: int) -> tuple[Ints, Ints]:
    """Where each client begins among some of its positions, and which those are, in order."""
    sizes = np.diff(starts)
    wish = samples * sizes / max(1, int(sizes.sum()))
    counts = np.minimum(sizes, np.maximum(np.minimum(sizes, 1), np.rint(wish).astype(np.int64)))
    parts = [
        start + np.sort(distinct(rng, size, count))
        for start, size, count in zip(
            starts.tolist(), sizes.tolist(), counts.tolist(), strict=False
        )
        if count
    ]
    ends = np.concatenate([[0], np.cumsum(counts)])
    return ends, np.concatenate([np.zeros(0, dtype=np.int64), *parts])


Arrays: TypeAlias = tuple[Array, Array, Array | None, Array | None, Sequence[Array], int]
"""The first six arguments of `ClientData.divide`, `Softmax` and `MLP`."""


def unpack(dataset: Dataset, partition: Partition) -> tuple[Arrays, dict[str, Any]]:
    """The arguments of `ClientData.divide` for a data set: six, and others by name."""
    besides = {
        name: getattr(dataset, name) for name in ("unit", "vocabulary") if hasattr(dataset, name)
    }
    x_test, y_test = dataset.x_test, dataset.y_test
    test, tested = (getattr(partition, name, None) for name in ("test", "tested"))
    if tested is not None and x_test is not None and y_test is not None:
        x_test, y_test = x_test[tested], y_test[tested]
        test = test and [np.searchsorted(tested, rows) for rows in test]
    if test is not None:
        besides["test_clients"] = test
    x_train, y_train, clients = _kept(dataset.x_train, dataset.y_train, partition.clients)
    return (x_train, y_train, x_test, y_test, clients, dataset.classes), besides


def _kept(x: Array, y: Array, clients: Sequence[Array]) -> tuple[Array, Array, Sequence[Array]]:
    """Without the samples that nobody holds, where those are most; a file is left where it is."""
    if isinstance(x, np.memmap) or 2 * sum(len(rows) for rows in clients) >= len(x):
        return x, y, clients
    held = np.unique(np.concatenate(clients))
    return x[held], y[held], [np.searchsorted(held, rows) for rows in clients]
