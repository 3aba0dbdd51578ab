"""Data sets by name. A new one is a function here with a line of decoration.

``digits`` comes with scikit-learn and is always there. The others are looked for where
Keras, torchvision, scikit-learn and Debian leave them, and downloaded only on request.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fedcohort.core.errors import BadInput, DataNotFound, UnknownName
from fedcohort.core.types import Array
from fedcohort.data.dataset import Dataset
from fedcohort.data.download import download as fetch
from fedcohort.data.images import FASHION_MNIST, MNIST, Four, ImageSet, find, find_writers
from fedcohort.data.text import load_collection


@dataclass(frozen=True)
class Request:
    """What the caller of `load` said beside the name."""

    root: Path | None = None
    download: bool = False


Loader: TypeAlias = Callable[[Request], Dataset]

LOADERS: dict[str, Loader] = {}
"""Every known data set: name -> function."""


def register(name: str) -> Callable[[Loader], Loader]:
    """Make a loader known under a name."""

    def add(loader: Loader) -> Loader:
        LOADERS[name] = loader
        return loader

    return add


def names() -> tuple[str, ...]:
    """The names that `load` knows.

    >>> names()
    ('digits', 'fashion-mnist', 'mnist', 'reuters')
    """
    return tuple(sorted(LOADERS))


def load(name: str, root: str | Path | None = None, *, download: bool = False) -> Dataset:
    """A data set by name: ``digits``, ``mnist``, ``fashion-mnist`` or ``reuters``.

    Looked for in this order: ``root``, the folder in the environment variable
    ``FEDCOHORT_DATA``, then the usual caches (see `fedcohort.data.images.search_folders`).

    Parameters
    ----------
    name
        Upper case and ``_`` for ``-`` are accepted.
    root
        A folder to look in first.
    download
        Fetch the set if it is nowhere to be found. By default nothing is ever fetched.

    Raises
    ------
    DataNotFound
        It is nowhere; the message lists the places and says what to do.
    BadInput
        A file in ``root`` is damaged or holds something else.

    Examples
    --------
    >>> load("digits")
    <Dataset digits: 1442 train + 355 test, 64 features, 10 classes>
    """
    key = str(name).lower().replace("_", "-")
    if key not in LOADERS:
        raise UnknownName("data set", name, LOADERS)
    folder = None if root is None else Path(root).expanduser()
    if folder is not None and not os.path.isdir(folder):
        raise BadInput(f"The root '{folder}' is not a folder: pass one that exists, or none.")
    return LOADERS[key](Request(folder, download))


@register("digits")
def _digits(request: Request) -> Dataset:
    """8 x 8 digits of scikit-learn; every fifth sample of each digit is for testing."""
    from sklearn.datasets import load_digits  # slow to import

    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int64)
    rank = np.zeros(len(y), dtype=np.int64)  # 0, 1, 2, ... among the samples of the same digit
    for digit in range(10):
        rank[y == digit] = np.arange((y == digit).sum())
    test = rank % 5 == 4
    return Dataset("digits", x[~test], y[~test], x[test], y[test], classes=10)


@register("mnist")
def _mnist(request: Request) -> Dataset:
    arrays = _found(MNIST, request)
    return _dataset(MNIST, arrays, find_writers(arrays[1], request.root))


@register("fashion-mnist")
def _fashion_mnist(request: Request) -> Dataset:
    return _dataset(FASHION_MNIST, _found(FASHION_MNIST, request))


@register("reuters")
def _reuters(request: Request) -> Dataset:
    """Single-topic stories of the ten largest topics of Reuters-21578, by tf-idf of 400 words.

    For research only (copyright Reuters), so it is never downloaded.
    """
    return load_collection("reuters", "reuters21578_top10_by_place", request.root, words=400)


def _found(spec: ImageSet, request: Request) -> Four:
    try:
        return find(spec, request.root)
    except DataNotFound:
        if not request.download:
            raise
    fetch(spec)
    return find(spec, request.root)


def _dataset(spec: ImageSet, arrays: Four, groups: Array | None = None) -> Dataset:
    x_train, y_train, x_test, y_test = arrays
    return Dataset(
        spec.name,
        _flat(x_train),
        y_train.astype(np.int64),
        _flat(x_test),
        y_test.astype(np.int64),
        spec.classes,
        groups,
    )


def _flat(images: Array) -> Array:
    """(N, side, side) in 0..255 to (N, side * side) float32 in [0, 1]."""
    pixels = images.reshape(len(images), -1).astype(np.float32)
    pixels /= 255
    return pixels
