"""Data sets by name, one per file.

``digits`` comes with scikit-learn and is always there. The others are looked for where
Keras, torchvision, scikit-learn and Debian leave them, and downloaded only on request. A new one
is a file here with a function of the same name that takes a `Request` and returns a `Dataset`;
other packages add theirs through the entry point group ``fedcohort.data_sets``.
"""

from __future__ import annotations

import os
from pathlib import Path

from fedcohort.core.errors import BadInput
from fedcohort.core.registry import Kind, Prepared
from fedcohort.data.dataset import Dataset
from fedcohort.data.sets.base import Request

__all__ = ["DATA_SETS", "Request", "load", "names"]

DATA_SETS: Kind[Prepared] = Kind("data set", __name__, given=("request",))


def names() -> tuple[str, ...]:
    """The names that `load` knows.

    >>> names()
    ('digits', 'fashion-mnist', 'mnist', 'reuters')
    """
    return tuple(DATA_SETS)


def load(name: str, root: str | Path | None = None, *, download: bool = False) -> Dataset:
    """A data set by name: ``digits``, ``mnist``, ``fashion-mnist`` or ``reuters``.

    Looked for in this order: ``root``, the folder in the environment variable
    ``FEDCOHORT_DATA``, then the usual caches (see `fedcohort.data.images.search_folders`).

    Parameters
    ----------
    name
        With settings, if it has any (``reuters:words=200``); upper case and ``_`` for ``-``
        are accepted, and so is the path of a file of your own.
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
    label, colon, settings = str(name).partition(":")
    if not label.endswith(".py"):
        label = label.lower().replace("_", "-")
    prepared = DATA_SETS.build(f"{label}{colon}{settings}")
    folder = None if root is None else Path(root).expanduser()
    if folder is not None and not os.path.isdir(folder):
        raise BadInput(f"The root '{folder}' is not a folder: pass one that exists, or none.")
    loaded: Dataset = prepared(Request(folder, download))
    return loaded
