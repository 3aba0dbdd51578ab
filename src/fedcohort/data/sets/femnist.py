"""FEMNIST: handwritten digits and letters, a client for each writer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array
from fedcohort.data.dataset import Dataset, coded_groups
from fedcohort.data.files import Like, read_arrays
from fedcohort.data.leaf import Users, leaf_sources
from fedcohort.data.places import Request, Source, first

FILE = "femnist_leaf_subset.npz"
SIDE, CLASSES = 28, 62


class Images(NamedTuple):
    """Images (N, 28, 28) in bytes, labels and the writers of each, by name."""

    x: Array
    y: Array
    writers: Sequence[str]


def femnist(request: Request) -> Dataset:
    """Handwritten digits and letters by writer, black on white as LEAF has them.

    Read from LEAF's ``femnist/data/{train,test}/*.json``, or from ``femnist_leaf_subset.npz``
    (arrays ``x``, ``y`` and ``writer``, each with ``_train`` and ``_test``, and the names
    ``writers``).
    """
    wanted = [FILE, "femnist/data/train/*.json"]
    train, test = first(request, "femnist", _sources, wanted)
    for part in (train, test):
        if part.y.min() < 0 or part.y.max() >= CLASSES:
            raise BadInput(f"The labels of FEMNIST must be in 0..{CLASSES - 1}; they are not.")
    writers, names = coded_groups({"train": train.writers, "test": test.writers})
    return Dataset(
        "femnist",
        train.x,
        train.y,
        test.x,
        test.y,
        CLASSES,
        writers["train"],
        scaled=False,
        groups_test=writers["test"],
        unit=255.0,
        group_names=names,
    )


def _sources(folder: Path) -> Iterator[Source[tuple[Images, Images]]]:
    if os.path.isfile(folder / FILE):
        yield Source(folder / FILE, lambda: _from_npz(folder / FILE))
    for source in leaf_sources(folder, "femnist"):
        yield Source(source.path, lambda s=source: _from_leaf(s.read(), s.path))  # type: ignore[misc]


def _from_npz(path: Path) -> tuple[Images, Images]:
    wanted: dict[str, Like] = {"writers": Like("texts", "U", rank=1)}
    for part in ("train", "test"):
        wanted[f"x_{part}"] = Like("bytes (N, 28, 28)", "u", rank=3)
        wanted |= {f"{key}_{part}": Like("integers (N,)", "iu", rank=1) for key in ("y", "writer")}
    arrays = read_arrays(path, wanted)
    names, parts = arrays["writers"].tolist(), []
    for part in ("train", "test"):
        x, y, writer = (arrays[f"{key}_{part}"] for key in ("x", "y", "writer"))
        if x.shape != (len(y), SIDE, SIDE) or x.dtype != np.uint8 or len(writer) != len(y):
            raise BadInput(f"'{path}' must have an image, a label and a writer for each sample.")
        if len(writer) and not 0 <= writer.min() <= writer.max() < len(names):
            raise BadInput(f"'{path}' must name every writer in 'writers'; it does not.")
        parts.append(Images(x, y.astype(np.int64), [names[w] for w in writer.tolist()]))
    return parts[0], parts[1]


def _from_leaf(users: tuple[Users, Users], place: Path) -> tuple[Images, Images]:
    train, test = (_stacked(part, place) for part in users)
    return train, test


def _stacked(users: Users, place: Path) -> Images:
    x, y = [], []
    for pixels, labels in users.values():
        x.append(_bytes(pixels, place))
        y.append(_whole(labels, place))
    writers = [user for user, (_, labels) in users.items() for _ in labels]
    return Images(np.concatenate(x), np.concatenate(y), writers)


def _bytes(pixels: list[Any], place: Path) -> Array:
    """LEAF's brightness in [0, 1], which is a whole number of 255ths, as bytes."""
    try:
        shares = np.array(pixels, dtype=np.float32).reshape(-1, SIDE, SIDE)
    except (ValueError, TypeError):
        raise BadInput(f"'{place}' must hold images of {SIDE**2} numbers; it does not.") from None
    if shares.size and not (shares.min() >= 0 and shares.max() <= 1):
        raise BadInput(f"The images in '{place}' must lie in [0, 1]; they do not.")
    return np.rint(shares * 255).astype(np.uint8)


def _whole(labels: list[Any], place: Path) -> Array:
    try:
        numbers = np.array(labels, dtype=np.float64)
        if (numbers != np.rint(numbers)).any():
            raise ValueError
    except (ValueError, TypeError):
        raise BadInput(f"The labels in '{place}' must be whole numbers; they are not.") from None
    return numbers.astype(np.int64)
