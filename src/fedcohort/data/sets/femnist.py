"""FEMNIST, and the file format of LEAF."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array
from fedcohort.data._dataset import Dataset, coded_groups
from fedcohort.data._files import Like, read_arrays
from fedcohort.data._sources import Request, Source, first
from fedcohort.data.sets.text import read_json

# Federations in LEAF's JSON: ``<set>/data/{train,test}/*.json``, each user's samples by name.
#
# A file is ``{"users": [...], "num_samples": [...], "user_data": {user: {"x": [...], "y":
# [...]}}}``; a set is several of them, and every user stands in one of the training files.

LARGEST = 2 << 30
"""Bytes of one file."""

Users: TypeAlias = dict[str, tuple[list[Any], list[Any]]]
"""Samples and labels of each user, as they stand in the file."""


def leaf_sources(folder: Path, name: str) -> Iterator[Source[tuple[Users, Users]]]:
    """The folders of a set of LEAF's, below ``folder`` as below LEAF's own ``data``."""
    for place in (folder / name / "data", folder / name, folder / "data" / name / "data"):
        if any((place / "train").glob("*.json")):
            yield Source(place, lambda place=place: _both(place))  # type: ignore[misc]


def _both(place: Path) -> tuple[Users, Users]:
    train, test = (_users(place / part) for part in ("train", "test"))
    if not train or not test:
        missing = "train" if not train else "test"
        raise BadInput(f"'{place}' is incomplete: there is no user in '{missing}'.")
    return train, test


def _users(folder: Path) -> Users:
    found: Users = {}
    for path in sorted(folder.glob("*.json")):
        told = read_json(path, LARGEST)
        users = told.get("user_data") if isinstance(told, dict) else None
        if not isinstance(users, dict):
            raise BadInput(f"'{path}' must have an object 'user_data', as LEAF writes it.")
        for user, samples in users.items():
            fits = isinstance(samples, dict) and all(
                isinstance(samples.get(key), list) for key in ("x", "y")
            )
            if not fits or len(samples["x"]) != len(samples["y"]):
                raise BadInput(f"'{path}' must have as many x as y for every user, in lists.")
            x, y = found.setdefault(str(user), ([], []))
            x.extend(samples["x"])
            y.extend(samples["y"])
    return found


# FEMNIST: handwritten digits and letters, a client for each writer.

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
