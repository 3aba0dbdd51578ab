"""Who holds which samples: the `Partition`, and the checks that all ways to make one share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import Constraint, Real, Whole
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.data.dataset import read_only

ALPHA = Real(0, 1e9, open_low=True)
"""Above this a Dirichlet draw is even to nine digits, and numpy's loses its randomness."""
MOST_CLASSES = 1_000_000
"""Labels are counted in tables of this many columns at most: ids are not labels."""


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """The samples of each client, as positions in the training set; read-only.

    Parameters
    ----------
    clients
        One int64 array of positions per client; an empty array is a client without data.
    test
        The same for test samples of clients' own, as positions in the test set; None where the
        test set is everybody's.
    tested
        (K,) the positions of all samples that belong into the test set; None for all.
    names
        What clients are called, where they have other names than 0, 1, ...

    Examples
    --------
    >>> partition = Partition((np.array([0, 2]), np.array([1])))
    >>> partition.n, partition.sizes
    (2, array([2, 1]))
    >>> partition.label_histograms(np.array([5, 5, 6]), classes=7)[:, 5:]
    array([[1, 1],
           [1, 0]])
    """

    clients: tuple[Ints, ...]
    test: tuple[Ints, ...] | None = None
    tested: Ints | None = None
    names: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.clients) == 0:
            raise BadInput("A partition needs at least one client; got none.")
        if self.test is not None and len(self.test) != len(self.clients):
            raise BadInput(
                f"The test samples of a partition must be told for each of {len(self.clients)}"
                f" clients; got {len(self.test)}."
            )
        for client, indices in enumerate([*self.clients, *(self.test or ())]):
            if indices.ndim != 1 or indices.dtype != np.int64 or (indices < 0).any():
                raise BadInput(
                    f"The samples of client {client % self.n} must be a one-dimensional int64"
                    f" array of positions from 0 on; got {indices.dtype} {indices.shape}."
                )
        object.__setattr__(self, "clients", tuple(map(read_only, self.clients)))
        if self.test is not None:
            object.__setattr__(self, "test", tuple(map(read_only, self.test)))

    @property
    def n(self) -> int:
        """Number of clients."""
        return len(self.clients)

    @property
    def sizes(self) -> Ints:  # (n,)
        """Number of samples of each client."""
        return np.array([len(indices) for indices in self.clients], dtype=np.int64)

    @property
    def disjoint(self) -> bool:
        """Whether no sample is held twice, by two clients or by one."""
        held = np.concatenate(self.clients)
        return len(np.unique(held)) == len(held)

    def label_histograms(self, y: Array, classes: int) -> Ints:  # (n, classes)
        """How many samples of each label each client holds."""
        y = checked_labels(y, "label_histograms")
        check("classes", "label_histograms", Whole(int(y.max()) + 1, MOST_CLASSES), classes)
        held = np.concatenate(self.clients)
        if held.size and held.max() >= len(y):
            raise BadInput(
                f"The partition holds sample {held.max()}, and there are {len(y)} labels: use the"
                " labels of the training set that was partitioned."
            )
        cell = np.repeat(np.arange(self.n), self.sizes) * classes + y[held]
        return np.bincount(cell, minlength=self.n * classes).reshape(self.n, classes)

    def __repr__(self) -> str:
        sizes = self.sizes
        return f"<Partition: {self.n} clients, {sizes.min()} to {sizes.max()} samples each>"


def check(name: str, owner: str, constraint: Constraint, value: object, remedy: str = "") -> None:
    """One sentence if a setting is outside its range."""
    if not constraint.accepts(value):
        raise BadParameter(name, owner, str(constraint), value, remedy)


def check_rng(rng: object, owner: str) -> None:
    """A seed in place of a generator is the usual slip."""
    if not isinstance(rng, np.random.Generator):
        raise BadParameter(
            "rng", owner, "a numpy Generator", rng, "Pass numpy.random.default_rng(seed)."
        )


def checked_labels(y: Array | Sequence[int], owner: str) -> Ints:  # (N,)
    """Labels as int64, or one sentence that says what they must be."""
    labels = np.asarray(y)
    flat = labels.ndim == 1 and labels.dtype.kind in "iu" and labels.size > 0
    if not flat or labels.min() < 0 or labels.max() >= MOST_CLASSES:
        must = f"a one-dimensional array of integer labels in 0..{MOST_CLASSES - 1}"
        raise BadParameter("y", owner, must, _describe(labels))
    return labels.astype(np.int64, copy=False)


def checked_sizes(sizes: Array | Sequence[int], owner: str) -> Ints:  # (n,)
    """Sizes of the clients as int64, each at least 1."""
    given = np.asarray(sizes)
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.size == 0 or given.min() < 1:
        raise BadParameter(
            "sizes", owner, "a list of one int of at least 1 per client", _describe(given)
        )
    return given.astype(np.int64)


def _describe(array: Array) -> str:
    if array.size == 0 or array.dtype.kind not in "iuf":
        return f"{array.dtype} of shape {array.shape}"
    return f"{array.dtype} of shape {array.shape} with values in [{array.min()}, {array.max()}]"


def members(y: Ints, rng: np.random.Generator) -> list[Ints]:
    """Positions of the samples of each label 0, 1, ..., each in random order."""
    shuffled = rng.permutation(len(y))
    by_label = shuffled[np.argsort(y[shuffled], kind="stable")]
    return np.split(by_label, np.cumsum(np.bincount(y))[:-1])


def largest_remainder(shares: Floats, total: int) -> Ints:
    """Whole numbers near ``total * shares`` that add up to ``total``; ties to the lower index.

    >>> largest_remainder(np.array([0.5, 0.25, 0.25]), 5)
    array([3, 1, 1])
    """
    exact = shares / shares.sum() * total
    whole: Ints = np.floor(exact).astype(np.int64)
    missing = total - int(whole.sum())
    # Rounding of the sum could leave one too many as well as one too few.
    order = np.argsort(whole - exact, kind="stable")
    if missing < 0:
        order = order[::-1][whole[order[::-1]] > 0]
    whole[order[: abs(missing)]] += np.sign(missing)
    return whole
