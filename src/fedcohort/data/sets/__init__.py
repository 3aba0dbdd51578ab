"""Data sets by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort._internal.environment import free_bytes
from fedcohort._internal.errors import BadInput, DataNotFound, TooLarge, shown
from fedcohort._internal.registry import Kind, Prepared
from fedcohort._internal.types import Array
from fedcohort.data._dataset import Dataset
from fedcohort.data._sources import Found, Four, ImageSet, Request, find
from fedcohort.data._sources import download as fetch

__all__ = ["DATA_SETS", "Request", "found", "load", "names", "of_images", "spec", "where"]

# What data sets share: what is asked of them, and how the MNIST family is loaded.


def found(spec: ImageSet, request: Request) -> Four:
    """The four arrays of a set of images; fetched first where that is asked for and needed."""
    try:
        return find(spec, request)
    except DataNotFound:
        if not request.download:
            raise
    fetch(spec)
    return find(spec, request)


def of_images(spec: ImageSet, arrays: Four, groups: Array | None = None) -> Dataset:
    """Images as rows of pixels in [0, 1]; writers are clients only if that partition is named."""
    x_train, y_train, x_test, y_test = arrays
    return Dataset(
        spec.name,
        _flat(x_train),
        y_train.astype(np.int64),
        _flat(x_test),
        y_test.astype(np.int64),
        spec.classes,
        groups,
        natural=False,
    )


def _flat(images: Array) -> Array:
    """(N, side, side) in 0..255 to (N, side * side) float32 in [0, 1]."""
    pixels = images.reshape(len(images), -1).astype(np.float32)
    pixels /= 255
    return pixels


# Data sets by name.
#
# ``digits`` comes with scikit-learn and is always there. The others are looked for where Keras,
# torchvision, scikit-learn, Hugging Face and Debian leave them, and downloaded only on request. A
# new one is a file here with a function of the same name that takes a `Request` and returns a
# `Dataset`; other packages add theirs through the entry point group ``fedcohort.data_sets``.

FILES = (".npz", ".npy")
"""What the names of files end in that hold arrays."""

DATA_SETS: Kind[Prepared] = Kind("data set", (__name__,), returns=Dataset, given=("request",))


def names() -> tuple[str, ...]:
    """The names that `load` knows.

    >>> "digits" in names(), "shakespeare" in names()
    (True, True)
    """
    return tuple(DATA_SETS)


def load(
    name: str, root: str | Path | None = None, *, download: bool = False, **settings: Any
) -> Dataset:
    """A data set by name, such as ``digits``, ``mnist`` or ``shakespeare``, or a file of arrays.

    Looked for in this order: ``root``, the folder in the environment variable
    ``FEDCOHORT_DATA``, then the usual caches (see `fedcohort.data._sources.search_folders`).

    Parameters
    ----------
    name
        With settings, if it has any (``reuters:words=200``); upper case and ``_`` for ``-``
        are accepted, and so is the path of a file of your own: a function in ``./mine.py``, or
        arrays in ``./mine.npz`` or ``./mine.npy`` (see `fedcohort.data.sets.file`).
    root
        A folder to look in first.
    download
        Fetch the set if it is nowhere to be found. By default nothing is ever fetched.
    settings
        Those that do not stand in the name.

    Raises
    ------
    DataNotFound
        It is nowhere; the message lists the places and says what to do.
    BadInput
        A file in ``root`` is damaged or holds something else.
    TooLarge
        It does not fit into memory.

    Examples
    --------
    >>> load("digits")
    <Dataset digits: 1442 train + 355 test, 64 features, 10 classes>
    """
    read = _prepared(name, **settings)
    try:
        loaded: Dataset = read(Request(_root(root), download))
    except MemoryError:
        raise TooLarge(
            f"The data set {shown(name)} does not fit into memory, of which "
            f"{free_bytes() / 1e9:.1f} GB are free: use less data, or more memory."
        ) from None
    return loaded


def where(name: str, root: str | Path | None = None, **settings: Any) -> Path | None:
    """The file or folder that `load` would read; None for a set that comes with a package.

    >>> where("digits") is None
    True
    """
    try:
        _prepared(name, **settings)(Request(_root(root), peek=True))
    except Found as found:
        return found.path
    return None


def spec(name: str, **settings: Any) -> str:
    """The word that names a data set with all its settings.

    >>> spec("reuters", words=200)
    'reuters:words=200,length=none'
    """
    return _prepared(name, **settings).spec


def _prepared(name: str, **settings: Any) -> Prepared:
    label, colon, told = str(name).partition(":")
    if Path(label).suffix in FILES:
        return DATA_SETS.build(f"file:{told}" if told else "file", path=label, **settings)
    if not label.endswith(".py"):
        label = label.lower().replace("_", "-")
    return DATA_SETS.build(f"{label}{colon}{told}", **settings)


def _root(root: str | Path | None) -> Path | None:
    folder = None if root is None else Path(root).expanduser()
    if folder is not None and not os.path.isdir(folder):
        raise BadInput(f"The root '{folder}' is not a folder: pass one that exists, or none.")
    return folder
