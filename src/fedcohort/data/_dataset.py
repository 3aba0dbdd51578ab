"""Data sets, and the tables that they are read from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fedcohort._internal.environment import check_fits
from fedcohort._internal.errors import BadInput, shown
from fedcohort._internal.parameters import is_real
from fedcohort._internal.types import Array, Bools, Floats, Ints

# A data set in memory: what every loader returns.

_BLOCK = 4096  # rows that are checked at a time


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples and their labels in ``range(classes)``; every array is read-only, and none is copied.

    Parameters
    ----------
    name
        The name it is loaded by.
    x_train, x_test
        (N, features) float32 in [0, 1]; without ``scaled``, finite numbers of any type and shape:
        images (N, 28, 28), tokens (N, length), standardised features.
    y_train, y_test
        (N,) int64 in ``range(classes)``.
    classes
        Number of labels.
    groups_train, groups_test
        (N,) natural ids such as the writer of each image, or None where unknown; a negative
        number or an empty text is nobody. See `fedcohort.data.partition`.
    group_names
        Names of the groups, if these are positions in it; see `coded_groups`.
    scaled
        Whether features lie in [0, 1], as feature histograms expect; that bytes were not divided
        by 255 is then seen here.
    unit
        What a feature is divided by when it is computed with: 255 for images that are kept as
        bytes, an eighth or a quarter of the memory.
    vocabulary
        Where samples are tokens, how many different ones there may be.
    natural
        Whether the groups are the clients unless another partition is named; by default they are
        where there are any. Without ``groups_test`` the test set is common to all clients.

    Examples
    --------
    >>> x, y = np.zeros((3, 2), np.float32), np.array([0, 1, 1])
    >>> Dataset("toy", x, y, x[:1], y[:1], classes=2)
    <Dataset toy: 3 train + 1 test, 2 features, 2 classes>
    >>> tokens = np.array([[3, 1, 4], [1, 5, 9], [2, 6, 5]])
    >>> Dataset("words", tokens, y, tokens[:1], y[:1], classes=2, scaled=False).features
    3
    """

    name: str
    x_train: Array
    y_train: Ints
    x_test: Array
    y_test: Ints
    classes: int
    groups_train: Array | None = None
    scaled: bool = True
    groups_test: Array | None = None
    unit: float = 1.0
    vocabulary: int | None = None
    natural: bool | None = None
    group_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            check = _check_scaled if self.scaled else _check_numbers
            check(x, f"x_{part} of the data set '{self.name}'")
            _check_labels(y, self.classes, f"y_{part} of the data set '{self.name}'")
            if len(x) != len(y):
                raise BadInput(
                    f"x_{part} and y_{part} of the data set '{self.name}' must have one row per"
                    f" sample; got {len(x)} and {len(y)} rows."
                )
        train, test = self.x_train.shape[1:], self.x_test.shape[1:]
        if train != test:
            got = (train[0], test[0]) if len(train) == len(test) == 1 else (train, test)
            raise BadInput(
                f"x_train and x_test of the data set '{self.name}' must have the same features;"
                f" got {got[0]} and {got[1]}."
            )
        for part, of in (("train", "training"), ("test", "test")):
            groups, y = getattr(self, f"groups_{part}"), getattr(self, f"y_{part}")
            if groups is not None and groups.shape != y.shape:
                raise BadInput(
                    f"groups_{part} of the data set '{self.name}' must hold one id per {of}"
                    f" sample; got shape {groups.shape} for {len(y)} samples."
                )
        if not is_real(self.unit) or self.unit <= 0 or (self.scaled and self.unit != 1):
            must = "1 where samples are scaled" if self.scaled else "a number above 0"
            raise BadInput(
                f"unit of the data set '{self.name}' must be {must}; got {shown(self.unit)}."
            )
        self._check_tokens()
        if self.natural is None:
            object.__setattr__(self, "natural", self.groups_train is not None)
        for name in ("x_train", "y_train", "x_test", "y_test", "groups_train", "groups_test"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, read_only(getattr(self, name)))

    def _check_tokens(self) -> None:
        if self.vocabulary is None:
            return
        for name in ("x_train", "x_test"):
            x = getattr(self, name)
            if x.dtype.kind not in "iu" or x.min() < 0 or x.max() >= self.vocabulary:
                raise BadInput(
                    f"{name} of the data set '{self.name}' must be tokens in"
                    f" 0..{self.vocabulary - 1}; got {x.dtype} in [{x.min()}, {x.max()}]."
                )

    @property
    def features(self) -> int:
        """The numbers that a sample consists of."""
        return math.prod(self.x_train.shape[1:])

    def __repr__(self) -> str:
        groups = ""
        if self.groups_train is not None:
            groups = f", {somebody(np.unique(self.groups_train)).sum()} groups"
        return (
            f"<Dataset {self.name}: {len(self.y_train)} train + {len(self.y_test)} test,"
            f" {self.features} features, {self.classes} classes{groups}>"
        )


def somebody(ids: Array) -> Bools:
    """Which natural ids are anybody's: no negative number, no empty text."""
    return np.asarray(ids >= 0 if ids.dtype.kind in "iu" else np.char.str_len(ids) > 0)


def coded(parts: Mapping[str, Iterable[object]]) -> tuple[dict[str, Ints], tuple[str, ...]]:
    """Texts as positions in the sorted tuple of the different ones, which is returned as well.

    An array of texts would take the space of the longest one for every sample.

    >>> coded({"train": ["b", "a", "b"], "test": np.array([b"a"])})
    ({'train': array([1, 0, 1]), 'test': array([0])}, ('a', 'b'))
    """
    first: dict[str, int] = {}
    seen = {
        part: np.fromiter((first.setdefault(_text(v), len(first)) for v in values), np.int64)
        for part, values in parts.items()
    }
    names = tuple(sorted(first))
    rank = np.empty(len(names), dtype=np.int64)
    rank[[first[name] for name in names]] = np.arange(len(names))
    return {part: rank[numbers] for part, numbers in seen.items()}, names


def coded_groups(parts: Mapping[str, Iterable[object]]) -> tuple[dict[str, Ints], tuple[str, ...]]:
    """Natural ids that are texts as `coded`, but for the empty text: -1, nobody.

    >>> coded_groups({"train": ["b", "", "a"]})
    ({'train': array([ 1, -1,  0])}, ('a', 'b'))
    """
    codes, names = coded(parts)
    if "" in names:  # it is the first
        return {part: numbers - 1 for part, numbers in codes.items()}, names[1:]
    return codes, names


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def read_only(array: Array) -> Array:
    """A view that cannot be written to; the array itself stays as it is."""
    view = array.view()
    view.setflags(write=False)
    return view


def _check_numbers(x: Array, what: str) -> None:
    if x.ndim < 2 or x.dtype.kind not in "iufb" or x.size == 0:
        raise BadInput(f"{what} must be numbers, a row per sample; got {x.dtype} {x.shape}.")
    if x.dtype.kind == "f":
        blocks = range(0, len(x), _BLOCK)  # of a file that does not fit into memory
        if not all(np.isfinite(x[start : start + _BLOCK]).all() for start in blocks):
            raise BadInput(f"{what} must be finite; got NaN or infinity: remove those samples.")


def _check_scaled(x: Array, what: str) -> None:
    if x.ndim != 2 or x.dtype != np.float32 or x.size == 0:
        raise BadInput(
            f"{what} must be float32 of shape (N, features); got {x.dtype} {x.shape}: convert it,"
            " or pass scaled=False."
        )
    # Written so that a NaN fails: every comparison with it is false.
    if not (x.min() >= 0 and x.max() <= 1):
        raise BadInput(
            f"{what} must lie in [0, 1]; got values in [{x.min()}, {x.max()}]: scale them, or pass"
            " scaled=False."
        )


def _check_labels(y: Array, classes: int, what: str) -> None:
    if y.ndim != 1 or y.dtype != np.int64 or y.size == 0:
        raise BadInput(f"{what} must be int64 of shape (N,); got {y.dtype} {y.shape}.")
    if y.min() < 0 or y.max() >= classes:
        raise BadInput(
            f"{what} must be labels in 0..{classes - 1}; got values in [{y.min()}, {y.max()}]."
        )


# What data without a test set of its own has in common: every n-th sample is for testing.


def every_nth(*keys: Array, n: int) -> Bools:
    """Every n-th of the rows that have the same keys, (N,): the same test set for everybody.

    >>> every_nth(np.array([7, 7, 8, 7, 8, 8]), n=3).tolist()
    [False, False, False, True, False, True]
    """
    _, which = np.unique(np.stack([np.asarray(key) for key in keys]), axis=1, return_inverse=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(which))[:-1]])
    rank = np.empty(len(which), dtype=np.int64)
    rank[order] = np.arange(len(which)) - starts[which[order]]
    return np.asarray(rank % n == n - 1)


Parts: TypeAlias = dict[str, Array]
"""Arrays for training and for testing, under ``_train`` and ``_test``."""


def with_test_set(
    x: Array, y: Ints, groups: Array | None, n: int = 5
) -> tuple[Parts, Parts, Parts]:
    """Samples, labels and groups, divided: every n-th of a group, in the order of its labels.

    So every group with n samples or more is tested, and labels are spread evenly over both parts.
    """
    check_fits(x.nbytes, "A copy of the samples, for training and testing,")
    of = np.zeros(len(y), np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    order = np.argsort(y, kind="stable")
    test = np.empty(len(y), dtype=np.bool_)
    test[order] = every_nth(of[order], n=n)
    if not test.any():  # so few of everything
        test[order[-1]] = True
    rows = {"_train": np.flatnonzero(~test), "_test": np.flatnonzero(test)}
    of_x, of_y = ({part: array[some] for part, some in rows.items()} for array in (x, y))
    return of_x, of_y, {} if groups is None else {part: groups[s] for part, s in rows.items()}


def standardised(x: Array, train: Bools) -> Floats:
    """Every column with mean 0 and variance 1 over the training rows, in float32."""
    mean, spread = x[train].mean(axis=0), x[train].std(axis=0)
    return np.asarray((x - mean) / np.where(spread > 0, spread, 1.0), dtype=np.float32)
