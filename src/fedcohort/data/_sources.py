"""Where data sets are found: folders, caches, downloads, image files."""

from __future__ import annotations

import hashlib
import os
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import Progress

from fedcohort._internal.errors import BadInput, DataNotFound, FedcohortWarning, MissingExtra
from fedcohort._internal.types import Array
from fedcohort.data._files import Shape, idx_bytes, read_arff, read_bytes, read_idx, read_npz

# Where data sets are looked for, and how the first usable copy is taken.

T = TypeVar("T")

ADVICE = "Set FEDCOHORT_DATA to a folder that holds it; docs/data.md says where it is from."


@dataclass(frozen=True)
class Request:
    """What the caller of `fedcohort.data.load` said beside the name."""

    root: Path | None = None
    download: bool = False
    peek: bool = False
    """Only say where the files are: `first` raises `Found` instead of reading them."""


class Found(Exception):
    """Where the files are that would be read; see `fedcohort.data.sets.where`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True)
class Source(Generic[T]):
    """A file or folder that is there, and how to read it."""

    path: Path
    read: Callable[[], T]


def cache_folder() -> Path:
    """Where downloads go: ``$XDG_CACHE_HOME/fedcohort``, usually ``~/.cache/fedcohort``."""
    return _folder("XDG_CACHE_HOME", "~/.cache") / "fedcohort"


def hugging_face_hub() -> Path:
    """Where ``huggingface_hub`` keeps what it has downloaded."""
    told = os.environ.get("HF_HUB_CACHE")
    return Path(told) if told else _folder("HF_HOME", "~/.cache/huggingface") / "hub"


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
        hugging_face_hub(),
        cache_folder(),
    ]
    return list(dict.fromkeys([*told, *usual]))


def packed_or_not(folder: Path, name: str) -> Path | None:
    """A file, or the same packed by gzip; None where there is neither."""
    # os.path, unlike Path.is_file, answers False where a folder may not be entered.
    return next((p for p in (folder / name, folder / f"{name}.gz") if os.path.isfile(p)), None)


def first(
    request: Request,
    name: str,
    sources: Callable[[Path], Iterable[Source[T]]],
    wanted: Sequence[str],
    advice: str = ADVICE,
) -> T:
    """What the first usable source gives, folder by folder.

    A damaged or foreign file raises at once in the root, where the user said to look;
    elsewhere the search goes on, and a warning or the final error tells of the file.

    Parameters
    ----------
    request, name
        What was asked for.
    sources
        All that looks like the set in a folder.
    wanted, advice
        What was looked for, and what to do, for the sentence if it is nowhere.
    """
    unusable: list[str] = []
    folders = search_folders(request.root)
    for folder in folders:
        for source in sources(folder):
            if request.peek:
                raise Found(source.path)
            try:
                read = source.read()
            except (BadInput, MissingExtra) as error:
                if folder == request.root:
                    raise
                unusable.append(str(error))
                continue
            if unusable:
                warnings.warn(" ".join(unusable), FedcohortWarning, stacklevel=6)
            return read
    places = ", ".join(f"'{folder}'" for folder in folders)
    told = " ".join([*unusable, advice])
    raise DataNotFound(
        f"The data set '{name}' was not found: no {', '.join(wanted)} in {places}. {told}"
    )


# MNIST and Fashion-MNIST: found where other tools left them, and checked to the last byte.
#
# Whatever the format of the file, the four arrays are written as IDX in memory and compared
# with the published checksums: an inverted, transposed or re-ordered copy cannot pass.

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


# Fetch a set of the MNIST family into the cache, checked before it is kept.

CHUNK = 1 << 16
GZIP_OVERHEAD = 1024  # packed, data can be larger than unpacked by the headers, and no more
TIMEOUT = 30.0  # seconds without a byte


def download(spec: ImageSet) -> Path:
    """Fetch the four files, from the first mirror that has each; returns their folder.

    A bar shows progress on a terminal; nothing is shown when piped. Files that are there
    already and right are kept.
    """
    folder = cache_folder() / spec.folders[0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataNotFound(f"'{folder}' cannot be made ({error}): set XDG_CACHE_HOME.") from error
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        for name, shape, checksum in zip(FILES, spec.shapes, spec.checksums, strict=True):
            limit = 4 + 4 * len(shape) + int(np.prod(shape))
            target = folder / f"{name}.gz"
            if not _is_right(target, limit, checksum):
                _from_any_mirror(spec, target, limit, checksum, bar)
    return folder


def _from_any_mirror(
    spec: ImageSet, target: Path, limit: int, checksum: str, bar: Progress
) -> None:
    # A name of our own, moved into place when it is whole: a reader never sees half a file.
    part = target.with_name(f".{os.getpid()}.{target.name}")
    failures = []
    try:
        for mirror in spec.mirrors:
            try:
                _fetch(mirror + target.name, part, limit, bar)
                if _is_right(part, limit, checksum):
                    part.replace(target)
                    return
                failures.append(f"{mirror} (wrong content)")
            except (OSError, HTTPException, BadInput) as error:
                failures.append(f"{mirror} ({error})")
    finally:
        part.unlink(missing_ok=True)
    raise DataNotFound(
        f"'{target.name}' of {spec.name} could not be downloaded from {', '.join(failures)}:"
        f" try again later, or put the file into '{target.parent}' by hand."
    )


def _fetch(url: str, target: Path, limit: int, bar: Progress) -> None:
    with _open(url) as response, target.open("wb") as out:
        length = response.headers.get("Content-Length")
        task = bar.add_task(target.name.split(".", 2)[-1], total=int(length) if length else None)
        received = 0
        while chunk := response.read(CHUNK):
            received += len(chunk)
            if received > limit + GZIP_OVERHEAD:
                raise BadInput(f"it sends more than {limit + GZIP_OVERHEAD} bytes")
            out.write(chunk)
            bar.update(task, completed=received)


def _open(url: str) -> AbstractContextManager[Any]:
    if not url.startswith("https://"):
        raise BadInput("only https is downloaded from")
    response: AbstractContextManager[Any] = urllib.request.urlopen(url, timeout=TIMEOUT)  # noqa: S310 - https, see above
    return response


def _is_right(path: Path, limit: int, checksum: str) -> bool:
    if not path.is_file():
        return False
    try:
        return hashlib.sha256(read_bytes(path, limit)).hexdigest() == checksum
    except BadInput:
        return False
