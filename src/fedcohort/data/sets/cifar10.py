"""CIFAR-10: where it is found, and how it is read without trusting it.

Python pickles, as torchvision and Keras leave them, can run code when they are loaded. They are
not: the pixels and labels are picked out of the listing of their opcodes, and nothing is built.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pickletools import genops
from typing import TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array
from fedcohort.data._dataset import Dataset
from fedcohort.data._files import read_bytes, read_npz
from fedcohort.data._sources import Request, Source, first
from fedcohort.data.sets.hugging_face import image, read_columns

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
SIDE, CHANNELS, CLASSES = 32, 3, 10

INTEGERS = frozenset(["INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1"])
"""Opcodes of a pickle that are numbers of the data, not places in its memory."""

Pair: TypeAlias = tuple[Array, Array]
"""uint8: images (N, 32, 32, 3) and labels (N,)."""


@dataclass(frozen=True)
class Cifar:
    """What the files must hold.

    Parameters
    ----------
    per_batch
        Images in each file.
    content
        sha256 of the pixels and labels of all batches in order, whatever file they come from.
    """

    per_batch: int
    content: str


CIFAR10 = Cifar(
    per_batch=10_000, content="80387ddb9a0edf3fc4a964ee3770296169bb26a651050df20035579673099660"
)


def cifar10(request: Request) -> Dataset:
    """Colour photographs of 32 x 32 pixels in ten kinds; they stay bytes until they are used.

    Read from ``cifar10/*_batch*.npz`` (arrays ``x`` and ``y``), from ``cifar-10-batches-py`` as
    torchvision and Keras leave it, from ``cifar-10-batches-bin``, or from the Parquet files of
    ``uoft-cs/cifar10`` in Hugging Face's cache (with the extra ``fedcohort[parquet]``).
    """
    return _load(request, CIFAR10)


def _load(request: Request, spec: Cifar) -> Dataset:
    """See `cifar10`."""
    wanted = [
        "cifar10/data_batch_*.npz",
        "cifar-10-batches-py",
        "cifar-10-batches-bin",
        "datasets--uoft-cs--cifar10",
    ]
    (x_train, y_train), (x_test, y_test) = first(
        request, "cifar10", lambda folder: _sources(folder, spec), wanted
    )
    return Dataset(
        "cifar10",
        x_train,
        y_train.astype(np.int64),
        x_test,
        y_test.astype(np.int64),
        CLASSES,
        scaled=False,
        unit=255.0,
    )


def _sources(folder: Path, spec: Cifar) -> Iterator[Source[tuple[Pair, Pair]]]:
    formats: dict[str, tuple[str, Callable[[Path, int, Cifar], Pair]]] = {
        "cifar10": (".npz", _npz),
        "cifar-10-batches-py": ("", _pickled),
        "cifar-10-batches-bin": (".bin", _binary),
    }
    for name, (suffix, read) in formats.items():
        place = folder / name
        if any(os.path.isfile(place / f"{batch}{suffix}") for batch in BATCHES):
            yield Source(place, partial(_batches, place, suffix, read, spec))
    for place in sorted(folder.glob("datasets--uoft-cs--cifar10/snapshots/*/plain_text")):
        yield Source(place, partial(_parquet, place, spec))


def _batches(
    place: Path, suffix: str, read: Callable[[Path, int, Cifar], Pair], spec: Cifar
) -> tuple[Pair, Pair]:
    found = []
    for number, batch in enumerate(BATCHES):
        path = place / f"{batch}{suffix}"
        if not os.path.isfile(path):
            raise BadInput(f"'{place}' is incomplete: it has no '{batch}{suffix}'.")
        found.append(read(path, number, spec))
    train = np.concatenate([x for x, _ in found[:-1]]), np.concatenate([y for _, y in found[:-1]])
    return _verified(train, found[-1], place, spec)


def _verified(train: Pair, test: Pair, place: Path, spec: Cifar) -> tuple[Pair, Pair]:
    digest = hashlib.sha256()
    for array in (*train, *test):
        digest.update(np.ascontiguousarray(array, dtype=np.uint8).data)
    if digest.hexdigest() != spec.content:
        raise BadInput(
            f"'{place}' does not hold CIFAR-10: the sha256 of its pixels and labels is another;"
            " delete it or move it away."
        )
    return train, test


def _npz(path: Path, number: int, spec: Cifar) -> Pair:
    count = spec.per_batch
    arrays = read_npz(path, {"x": (count, SIDE, SIDE, CHANNELS), "y": (count,)})
    return arrays["x"].astype(np.uint8), arrays["y"].astype(np.uint8)


def _pickled(path: Path, number: int, spec: Cifar) -> Pair:
    size = spec.per_batch * SIDE * SIDE * CHANNELS
    content = read_bytes(path, size + spec.per_batch * 256 + (1 << 20))
    pixels, labels, last = b"", list[int](), ""
    try:
        for opcode, value, _ in genops(content):
            if isinstance(value, str | bytes | bytearray):
                last = str(value[:16])
                if len(value) == size:
                    pixels = value.encode("latin-1") if isinstance(value, str) else bytes(value)
            elif last == "labels" and opcode.name in INTEGERS:
                labels.append(int(str(value)))
        if len(pixels) != size or len(labels) != spec.per_batch:
            raise ValueError("no pixels and labels")
        return (
            _channels_last(np.frombuffer(pixels, dtype=np.uint8)),
            np.array(labels, dtype=np.uint8),
        )
    except Exception as error:  # whatever foreign bytes make of it
        raise BadInput(
            f"'{path}' is not a batch of CIFAR-10 ({str(error)[:120]}): delete it."
        ) from error


def _binary(path: Path, number: int, spec: Cifar) -> Pair:
    row = 1 + SIDE * SIDE * CHANNELS
    content = read_bytes(path, spec.per_batch * row)
    if len(content) != spec.per_batch * row:
        raise BadInput(f"'{path}' is cut short: {len(content)} of {spec.per_batch * row} bytes.")
    rows: Array = np.frombuffer(content, dtype=np.uint8).reshape(spec.per_batch, row)
    return _channels_last(rows[:, 1:]), rows[:, 0]


def _channels_last(pixels: Array) -> Array:
    """(N, 3072), one colour after another, to (N, 32, 32, 3)."""
    planes = pixels.reshape(-1, CHANNELS, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _parquet(place: Path, spec: Cifar) -> tuple[Pair, Pair]:
    pairs = []
    for part in ("train", "test"):
        columns = read_columns(sorted(place.glob(f"{part}-*.parquet")), ["img", "label"], place)
        images = [image(each, (SIDE, SIDE, CHANNELS), place) for each in columns["img"]]
        pairs.append((np.stack(images), np.array(columns["label"], dtype=np.uint8)))
    return _verified(pairs[0], pairs[1], place, spec)
