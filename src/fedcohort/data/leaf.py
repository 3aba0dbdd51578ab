"""Federations in LEAF's JSON: ``<set>/data/{train,test}/*.json``, each user's samples by name.

A file is ``{"users": [...], "num_samples": [...], "user_data": {user: {"x": [...], "y": [...]}}}``;
a set is several of them, and every user stands in one of the training files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from fedcohort._internal.errors import BadInput
from fedcohort.data.places import Source
from fedcohort.data.text import read_json

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
