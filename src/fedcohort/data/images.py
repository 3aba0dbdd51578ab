"""MNIST and Fashion-MNIST: found where other tools left them, and checked to the last byte.

Whatever the format of the file, the four arrays are written as IDX in memory and compared
with the published checksums: an inverted, transposed or re-ordered copy cannot pass.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fedcohort.core.errors import BadInput, DataNotFound, FedcohortWarning
from fedcohort.core.types import Array
from fedcohort.data.files import Shape, idx_bytes, read_arff, read_idx, read_npz

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
KEYS = ("x_train", "y_train", "x_test", "y_test")

Four: TypeAlias = tuple[Array, Array, Array, Array]
"""uint8: train images (N, side, side), train labels (N,), test images, test labels."""


@dataclass(frozen=True)
class ImageSet:
    """What is known of a set of the MNIST family before it is found.

    Parameters
    ----------
    name
        The name it is loaded by.
    train, test, side, classes
        Numbers of images, their height and width, number of labels.
    checksums
        sha256 of the four unpacked IDX files, in the order of `FILES`.
    npz
        Name of the file with the arrays `KEYS`, as Keras has it.
    folders
        Sub-folders with IDX files, as torchvision, Keras and Debian name them.
    openml
        Name of the ARFF file in scikit-learn's cache.
    mirrors
        Where ``FILES[i] + ".gz"`` can be downloaded, best first.
    """

    name: str
    train: int
    test: int
    side: int
    classes: int
    checksums: tuple[str, str, str, str]
    npz: str
    folders: tuple[str, ...]
    openml: str
    mirrors: tuple[str, ...]

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape, Shape]:
        """Shapes of the four arrays."""
        side = self.side
        return (self.train, side, side), (self.train,), (self.test, side, side), (self.test,)


def cache_folder() -> Path:
    """Where downloads go: ``$XDG_CACHE_HOME/fedcohort``, usually ``~/.cache/fedcohort``."""
    return _folder("XDG_CACHE_HOME", "~/.cache") / "fedcohort"


def _folder(variable: str, otherwise: str) -> Path:
    # expanduser, unlike Path.home(), does not raise where there is no home.
    return Path(os.path.expanduser(os.environ.get(variable) or otherwise))


def search_folders(root: Path | None) -> list[Path]:
    """Folders to look in, best first: what the user says, then what other tools leave."""
    told = [root] if root else []
    if os.environ.get("FEDCOHORT_DATA"):
        told.append(_folder("FEDCOHORT_DATA", ""))
    torch = _folder("TORCH_HOME", "~/.cache/torch")
    usual = [
        Path("data"),
        Path(os.path.expanduser("~/data")),
        torch,
        torch / "datasets",
        _folder("KERAS_HOME", "~/.keras") / "datasets",
        Path("/usr/share/datasets"),
        _folder("SCIKIT_LEARN_DATA", "~/scikit_learn_data"),
        cache_folder(),
    ]
    return list(dict.fromkeys([*told, *usual]))


@dataclass(frozen=True)
class Source:
    """A file or folder that is there, and how to read the four arrays from it."""

    path: Path
    read: Callable[[], Four]


def sources(spec: ImageSet, folder: Path, bare: bool = False) -> Iterator[Source]:
    """Everything in a folder that looks like the set; ``bare``: IDX files right in it, too."""
    npz = folder / spec.npz
    if os.path.isfile(npz):
        yield Source(npz, lambda: _from_npz(spec, npz))
    # MNIST and Fashion-MNIST use the same file names: only a sub-folder tells them apart.
    for place in [folder] * bare + [folder / sub for sub in spec.folders]:
        if any(_packed_or_not(place, name) for name in FILES):
            yield Source(place, lambda place=place: _from_idx(spec, place))  # type: ignore[misc]
    for arff in sorted(folder.glob(f"openml/openml.org/data/v1/download/*/{spec.openml}")):
        yield Source(arff, lambda arff=arff: _from_arff(spec, arff))  # type: ignore[misc]


def _packed_or_not(folder: Path, name: str) -> Path | None:
    # os.path, unlike Path.is_file, answers False where a folder may not be entered.
    return next((p for p in (folder / name, folder / f"{name}.gz") if os.path.isfile(p)), None)


def _from_npz(spec: ImageSet, path: Path) -> Four:
    arrays = read_npz(path, dict(zip(KEYS, spec.shapes, strict=True)))
    return tuple(arrays[key] for key in KEYS)  # type: ignore[return-value]


def _from_idx(spec: ImageSet, folder: Path) -> Four:
    arrays = []
    for name, shape in zip(FILES, spec.shapes, strict=True):
        path = _packed_or_not(folder, name)
        if path is None:
            raise BadInput(f"'{folder}' is incomplete: it has no '{name}', nor '{name}.gz'.")
        arrays.append(read_idx(path, shape))
    return tuple(arrays)  # type: ignore[return-value]


def _from_arff(spec: ImageSet, path: Path) -> Four:
    pixels = spec.side**2
    table = read_arff(path, spec.train + spec.test, pixels + 1)
    x = table[:, :pixels].reshape(-1, spec.side, spec.side)
    y = table[:, pixels]
    return x[: spec.train], y[: spec.train], x[spec.train :], y[spec.train :]


def verify(spec: ImageSet, arrays: Four, path: Path) -> None:
    """One sentence if the arrays are not, bit by bit, those of the published files."""
    for key, array, checksum in zip(KEYS, arrays, spec.checksums, strict=True):
        if array.min() < 0 or array.max() > 255:
            raise BadInput(f"'{key}' in '{path}' must lie in 0..255; it does not.")
        if _sha256(array) != checksum:
            raise BadInput(
                f"'{key}' in '{path}' is not that of {spec.name}{_diagnosis(array, checksum)}:"
                " its sha256 differs from the published one; delete the file or move it away."
            )


def _sha256(array: Array) -> str:
    return hashlib.sha256(idx_bytes(array)).hexdigest()


def _diagnosis(array: Array, checksum: str) -> str:
    """The usual silent errors, told by undoing them."""
    if array.ndim != 3:
        return ""
    if _sha256(255 - array) == checksum:
        return " (black and white are exchanged)"
    if _sha256(array.swapaxes(1, 2)) == checksum:
        return " (the images are transposed)"
    return ""


def find(spec: ImageSet, root: Path | None = None) -> Four:
    """The verified arrays, from the first place that has them.

    A damaged or foreign file raises at once in ``root``, where the user said to look;
    elsewhere the search goes on, and a warning or the final error tells of the file.
    """
    unusable: list[str] = []
    for folder in search_folders(root):
        for source in sources(spec, folder, bare=folder == root):
            try:
                arrays = source.read()
                verify(spec, arrays, source.path)
            except BadInput as error:
                if folder == root:
                    raise
                unusable.append(str(error))
                continue
            if unusable:
                warnings.warn(" ".join(unusable), FedcohortWarning, stacklevel=5)
            return arrays
    raise DataNotFound(_not_found(spec, root, unusable))


def _not_found(spec: ImageSet, root: Path | None, unusable: list[str]) -> str:
    wanted = [
        spec.npz,
        *(f"{sub}/*-ubyte[.gz]" for sub in spec.folders),
        f"openml/**/{spec.openml}",
    ]
    places = ", ".join(f"'{folder}'" for folder in search_folders(root))
    damaged = "".join(f" {sentence}" for sentence in unusable)
    command = f"import fedcohort.data as d; d.load('{spec.name}', download=True)"
    return (
        f"The data set '{spec.name}' was not found: no {', '.join(wanted)} in {places}.{damaged}"
        f' Run `python -c "{command}"` to download it,'
        " or set FEDCOHORT_DATA to a folder that holds it."
    )


def find_writers(labels: Array, root: Path | None = None) -> Array | None:
    """The writer of each MNIST training image, or None where no file tells.

    Read from ``mnist_writers.npz`` (array ``writer_train``) or from the labels of QMNIST as
    torchvision stores them, whose first column must repeat MNIST's labels.
    """
    name = "qmnist-train-labels-idx2-int"
    for folder in search_folders(root):
        npz = folder / "mnist_writers.npz"
        if os.path.isfile(npz):
            return read_npz(npz, {"writer_train": labels.shape})["writer_train"].astype(np.int64)
        path = _packed_or_not(folder / "QMNIST" / "raw", name)
        if path is not None:
            table = read_idx(path, (len(labels), 8), "int32")
            if not np.array_equal(table[:, 0], labels):
                raise BadInput(f"'{path}' does not list MNIST's labels in order: delete it.")
            return table[:, 2].astype(np.int64)
    return None
