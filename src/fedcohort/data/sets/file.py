"""Arrays of your own: an npz file, or npy files, which are read as they are needed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from fedcohort._internal.environment import check_fits
from fedcohort._internal.errors import BadInput, DataNotFound, FedcohortWarning
from fedcohort._internal.parameters import Maybe, Real
from fedcohort._internal.types import Array, Ints
from fedcohort.data._dataset import Dataset, coded, coded_groups, with_test_set
from fedcohort.data._files import Like, array_names, read_arrays
from fedcohort.data._sources import Found, Request

SAMPLES = ("x", "X", "data", "features", "images")
LABELS = ("y", "labels", "label", "target", "targets")
GROUPS = ("groups",)
"""Names of arrays that need not be given."""
BYTE = 255
_LOOKED_AT = 4096  # rows, to tell what samples look like


def file(
    request: Request,
    path: str,
    samples: str | None = None,
    labels: str | None = None,
    groups: str | None = None,
    unit: Annotated[float | None, Maybe(Real(0, open_low=True))] = None,
) -> Dataset:
    """Arrays of your own, in an npz file or in npy files side by side.

    Arrays are found by name: ``x`` (samples, a row each), ``y`` (labels: whole numbers from 0, or
    texts) and, if there are any, ``groups`` (the client id of each sample).
    With a test set they are ``x_train``, ``x_test``, ``y_train`` and so on; without
    ``groups_test`` the test set is common to all clients. Without a test set every
    fifth sample of a group, in the order of labels, is for testing. Arrays in npy files,
    ``x_train.npy`` beside ``y_train.npy``, stay on disk until they are needed. An array that has
    one of these names and is not read is an error.

    Parameters
    ----------
    request
        A folder to look in first.
    path
        The npz file, or the npy file of the samples.
    samples, labels, groups
        Names of these arrays, without ``_train``.
    unit
        What samples are divided by when they are computed with, 255 for bytes. Where they look
        like bytes and nothing is said, they are taken as they are, with a warning.
    """
    place = _found(Path(path).expanduser(), request)
    arrays = _Arrays.of(place, samples)
    many = arrays.split
    of_samples = {part: arrays.samples + part for part in (many or ("",))}
    x = {part: arrays.get(name) for part, name in of_samples.items()}
    names = {
        "samples": of_samples,
        "labels": arrays.named(labels, LABELS, "labels", many),
        "groups": arrays.named(groups, GROUPS, "groups", many, optional=groups is None),
    }
    named = {"samples": samples or place.suffix == ".npy", "labels": labels, "groups": groups}
    arrays.check_all_are_read(names, [kind for kind, name in named.items() if not name])
    y, ids = (
        {part: arrays.get(name) for part, name in names[kind].items()}
        for kind in ("labels", "groups")
    )
    for name, held in {"labels": y, "groups": ids}.items():
        for part, array in held.items():
            if array.ndim != 1 or len(array) != len(x[part]):
                raise BadInput(
                    f"The {name} of '{place}' must be one for each of {len(x[part])} samples; got"
                    f" shape {array.shape}."
                )
    numbered, classes = _numbered(y, place)
    ids, names_of = _ids(ids, place)
    if not many:
        x, numbered, ids = with_test_set(x[""], numbered[""], ids.get(""))
    return Dataset(
        place.stem,
        x["_train"],
        numbered["_train"],
        x["_test"],
        numbered["_test"],
        classes,
        ids.get("_train"),
        scaled=False,
        groups_test=ids.get("_test"),
        unit=_unit(x["_train"], unit, place),
        group_names=names_of,
    )


def _found(path: Path, request: Request) -> Path:
    for place in [path] if request.root is None else [request.root / path, path]:
        if os.path.isfile(place):
            if request.peek:
                raise Found(place)
            return place
    raise DataNotFound(f"There is no file '{path}': give the path of an npz or npy file.")


@dataclass(frozen=True)
class _Arrays:
    """The arrays at a place, by name."""

    place: Path
    names: tuple[str, ...]
    samples: str  # what those of the samples are called, without "_train"
    get: Callable[[str], Array]

    @classmethod
    def of(cls, place: Path, told: str | None) -> _Arrays:
        if place.suffix == ".npy":
            names = tuple(sorted(each.stem for each in place.parent.glob("*.npy")))
            stem = told or place.stem.removesuffix("_train").removesuffix("_test")
            return cls(place, names, stem, partial(_mapped, place.parent))
        names = array_names(place)
        usual = SAMPLES if told is None else (told,)
        known = (each for each in usual if each in names or f"{each}_train" in names)
        samples = next(known, None)
        if samples is None:
            there = ", ".join(names) or "nothing"
            raise BadInput(
                f"'{place}' must have samples called '{usual[0]}' or '{usual[0]}_train'; it has "
                f"{there}: tell which, samples=..."
            )
        return cls(place, names, samples, partial(_member, place))

    @property
    def split(self) -> tuple[str, ...]:
        """The endings of names where there is a test set; else none."""
        parts = ("_train", "_test")
        there = [self.samples + part in self.names for part in parts]
        if any(there) and not all(there):
            missing = self.samples + parts[there.index(False)]
            raise BadInput(f"'{self.place}' has no array '{missing}' beside the other.")
        return parts if all(there) else ()

    def named(
        self,
        told: str | None,
        usual: tuple[str, ...],
        what: str,
        split: tuple[str, ...],
        optional: bool = False,
    ) -> dict[str, str]:
        """Names of the arrays of one kind by ending; a test set may be without groups."""
        endings = split or ("",)
        needed = endings[:1] if what == "groups" else endings
        for name in usual if told is None else (told,):
            if all(name + ending in self.names for ending in needed):
                return {e: name + e for e in endings if name + e in self.names}
        if optional:
            return {}
        wanted = " and ".join(f"'{told or usual[0]}{ending}'" for ending in endings)
        there = ", ".join(self.names)
        raise BadInput(
            f"'{self.place}' must have {what} in {wanted}; it has {there}: tell which, {what}=..."
        )

    def check_all_are_read(self, read: Mapping[str, Mapping[str, str]], kinds: list[str]) -> None:
        """Refuse an array with a usual name of one of these kinds that is not read."""
        usual = {"samples": SAMPLES, "labels": LABELS, "groups": GROUPS}
        used = [name for held in read.values() for name in held.values()]
        for kind in kinds:
            known = {name + part for name in usual[kind] for part in ("", "_train", "_test")}
            unread = [name for name in self.names if name in known.difference(used)]
            if unread:
                raise BadInput(
                    f"'{self.place}': {', '.join(used)} are read, but not "
                    f"{', '.join(unread)}: leave out what is not needed, or write {kind}=... to "
                    f"name the array of the {kind}."
                )


def _member(place: Path, name: str) -> Array:
    like = Like("numbers or texts, a row per sample", "iufbUS", most_bytes=1 << 40)
    return read_arrays(place, {name: like})[name]


def _mapped(folder: Path, name: str) -> Array:
    path = folder / f"{name}.npy"
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # what numpy says of it is of no help
        raise BadInput(f"'{path}' must be an npy file of numbers, as numpy.save writes.") from None
    if array.dtype.kind not in "iufbUS" or array.ndim == 0:
        raise BadInput(f"'{path}' must hold numbers or texts; got {array.dtype}.")
    return np.asanyarray(array)


def _numbered(y: Mapping[str, Array], place: Path) -> tuple[dict[str, Ints], int]:
    """Labels as 0, 1, ...: whole numbers as they are, texts in their order."""
    check_fits(sum(8 * len(array) for array in y.values()), f"The labels of '{place}'")
    kinds = {array.dtype.kind for array in y.values()}
    if kinds <= set("US"):
        numbers, names = coded(y)
        return numbers, len(names)
    whole = all(kind in "iufb" for kind in kinds) and all(
        len(array) and (array == np.rint(array)).all() and array.min() >= 0 for array in y.values()
    )
    if not whole:
        raise BadInput(f"The labels of '{place}' must be whole numbers from 0, or texts.")
    numbers = {part: np.asarray(array).astype(np.int64) for part, array in y.items()}
    return numbers, max(2, 1 + max(int(array.max()) for array in numbers.values()))


def _ids(
    groups: Mapping[str, Array], place: Path
) -> tuple[dict[str, Array], tuple[str, ...] | None]:
    """Groups as numbers, with their names if they are texts."""
    kinds = {array.dtype.kind for array in groups.values()}
    if not (kinds <= set("iu") or kinds <= set("US")):
        got = " and ".join(sorted({str(array.dtype) for array in groups.values()}))
        raise BadInput(f"The groups of '{place}' must be whole numbers or texts; got {got}.")
    if kinds <= set("iu"):
        return {part: np.asarray(array) for part, array in groups.items()}, None
    ids, names = coded_groups(groups)
    return dict(ids), names


def _unit(x: Array, told: float | None, place: Path) -> float:
    if told is not None:
        return float(told)
    if _looks_like_bytes(np.asarray(x[:_LOOKED_AT])):
        warnings.warn(
            f"The samples of '{place}' look like raw bytes, whole numbers up to 255, on which "
            "training diverges: write unit=255 to divide them by it, or unit=1 to keep them.",
            FedcohortWarning,
            stacklevel=5,
        )
    return 1.0


def _looks_like_bytes(x: Array) -> bool:
    numbers = x.dtype.kind in "iuf" and x.size > 0
    return bool(numbers and x.min() >= 0 and BYTE / 2 < x.max() <= BYTE and (x == np.rint(x)).all())
