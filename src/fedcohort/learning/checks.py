"""Whether arrays, labels and who holds what are what a task can be made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array, Ints

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
