"""MNIST and Fashion-MNIST: found where other tools left them, and checked to the last byte.

Whatever the format of the file, the four arrays are written as IDX in memory and compared
with the published checksums: an inverted, transposed or re-ordered copy cannot pass.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array
from fedcohort.data.files import Shape, idx_bytes, read_arff, read_idx, read_npz
from fedcohort.data.places import Request, Source, first, packed_or_not, search_folders

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


def sources(spec: ImageSet, folder: Path, bare: bool = False) -> Iterator[Source[Four]]:
    """Everything in a folder that looks like the set; ``bare``: IDX files right in it, too."""
    npz = folder / spec.npz
    if os.path.isfile(npz):
        yield Source(npz, lambda: _from_npz(spec, npz))
    # MNIST and Fashion-MNIST use the same file names: only a sub-folder tells them apart.
    for place in [folder] * bare + [folder / sub for sub in spec.folders]:
        if any(packed_or_not(place, name) for name in FILES):
            yield Source(place, lambda place=place: _from_idx(spec, place))  # type: ignore[misc]
    for arff in sorted(folder.glob(f"openml/openml.org/data/v1/download/*/{spec.openml}")):
        yield Source(arff, lambda arff=arff: _from_arff(spec, arff))  # type: ignore[misc]


def _from_npz(spec: ImageSet, path: Path) -> Four:
    arrays = read_npz(path, dict(zip(KEYS, spec.shapes, strict=True)))
    return tuple(arrays[key] for key in KEYS)  # type: ignore[return-value]


def _from_idx(spec: ImageSet, folder: Path) -> Four:
    arrays = []
    for name, shape in zip(FILES, spec.shapes, strict=True):
        path = packed_or_not(folder, name)
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


def find(spec: ImageSet, request: Request) -> Four:
    """The verified arrays, from the first place that has them."""

    def verified(folder: Path) -> Iterator[Source[Four]]:
        for source in sources(spec, folder, bare=folder == request.root):
            yield Source(source.path, partial(_verified, spec, source))

    wanted = [
        spec.npz,
        *(f"{sub}/*-ubyte[.gz]" for sub in spec.folders),
        f"openml/**/{spec.openml}",
    ]
    command = f"import fedcohort.data as d; d.load('{spec.name}', download=True)"
    advice = (
        f'Run `python -c "{command}"` to download it,'
        " or set FEDCOHORT_DATA to a folder that holds it."
    )
    return first(request, spec.name, verified, wanted, advice)


def _verified(spec: ImageSet, source: Source[Four]) -> Four:
    arrays = source.read()
    verify(spec, arrays, source.path)
    return arrays


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
        path = packed_or_not(folder / "QMNIST" / "raw", name)
        if path is not None:
            table = read_idx(path, (len(labels), 8), "int32")
            if not np.array_equal(table[:, 0], labels):
                raise BadInput(f"'{path}' does not list MNIST's labels in order: delete it.")
            return table[:, 2].astype(np.int64)
    return None
