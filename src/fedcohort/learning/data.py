"""The samples of a federation, of any type and shape, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_real
from fedcohort._internal.types import Array, Ints
from fedcohort.learning.checks import (
    as_array,
    check_features,
    check_owners,
    held_by,
    is_integer,
    starts_of,
    targets,
)
from fedcohort.learning.validation import hold_out
from fedcohort.maths._draws import distinct

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
        if self.test_starts is None or self.test_rows is None:
            _, tested = _some(rng, np.array([0, len(self.y_test)]), samples)
            return replace(
                self,
                starts=starts,
                rows=rows,
                x_test=self.x_test[tested],
                y_test=self.y_test[tested],
            )
        test_starts, held = _some(rng, self.test_starts, samples)
        tested, test_rows = np.unique(self.test_rows[held], return_inverse=True)
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

        See `fedcohort.learning.validation.hold_out`; nothing of the test set is left.
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
