"""Copies of Hugging Face data sets, and the Parquet files in them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcohort._internal.errors import BadInput, DataNotFound, MissingExtra
from fedcohort._internal.parameters import Maybe, Real
from fedcohort._internal.types import Array, Ints
from fedcohort.data._dataset import Dataset, coded_groups, with_test_set
from fedcohort.data._sources import Found, Request, search_folders

# Tables as Hugging Face keeps them on disk, Parquet or Arrow; nothing is ever downloaded.

_ROWS = 256  # that are read at a time


def read_columns(
    paths: Sequence[Path], columns: Sequence[str], place: Path
) -> dict[str, list[Any]]:
    """The named columns of some files, one after another, as Python values.

    Files are read by parts, and equal texts are kept once: a column that says one thing in every
    row takes next to nothing on disk.
    """
    if not paths:
        raise BadInput(f"'{place}' has no Parquet or Arrow file.")
    out: dict[str, list[Any]] = {name: [] for name in columns}
    texts: dict[str, str] = {}
    for path in paths:
        try:
            for batch in _batches(path, columns):
                for name, values in out.items():
                    cells = batch.column(name).to_pylist()
                    values += (texts.setdefault(c, c) if isinstance(c, str) else c for c in cells)
        except (BadInput, MissingExtra, MemoryError):
            raise
        except Exception as error:  # whatever pyarrow says of foreign bytes
            raise BadInput(f"'{path}' cannot be read ({str(error)[:120]}): delete it.") from error
    return out


def _batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    if path.suffix == ".arrow":
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            _check_columns(stream.schema.names, columns, path)
            yield from stream
    else:
        with pq.ParquetFile(path) as table:
            _check_columns(table.schema_arrow.names, columns, path)
            yield from table.iter_batches(_ROWS, columns=list(columns), use_threads=False)


def _check_columns(there: Sequence[str], columns: Sequence[str], path: Path) -> None:
    for name in columns:
        if name not in there:
            raise BadInput(f"'{path}' has no column '{name}'; it has {', '.join(there)}.")


def image(cell: Any, shape: tuple[int, ...] | None, place: Path) -> Array:
    """The pixels of a cell that holds an image, as ``{"bytes": ...}`` of PNG or JPEG."""
    from PIL import Image  # comes with matplotlib; slow to import

    try:
        with Image.open(io.BytesIO(cell["bytes"])) as picture:
            pixels = np.asarray(picture)
    except Exception as error:
        raise BadInput(f"An image in '{place}' cannot be read ({str(error)[:120]}).") from error
    if pixels.dtype != np.uint8 or (shape is not None and pixels.shape != shape):
        raise BadInput(
            f"Images in '{place}' must be bytes of shape {shape or 'one kind'}; got"
            f" {pixels.dtype} {pixels.shape}."
        )
    return pixels


# Federations of Flower Datasets and Hugging Face, from a copy on disk; nothing is downloaded.


def hugging_face(
    request: Request,
    path: str,
    x: str = "image",
    labels: str = "label",
    groups: str | None = None,
    unit: Annotated[float | None, Maybe(Real(0, open_low=True))] = None,
) -> Dataset:
    """A data set of Hugging Face on disk, such as flwrlabs/femnist, with a column of clients.

    What the natural-id partitioner of Flower Datasets divides by is ``groups`` here. Needs the
    extra ``fedcohort[parquet]``.

    Parameters
    ----------
    request
        A folder to look in first.
    path
        A folder that ``save_to_disk`` wrote or with Parquet files, or the name of a data set,
        ``flwrlabs/femnist``, that is in Hugging Face's cache.
    x, labels, groups
        The columns of the samples (images, or lists of numbers), of the labels, and of whose a
        sample is.
    unit
        What samples are divided by; by default 255 for images, else 1.
    """
    place = _found(path, request)
    columns = [x, labels, *([] if groups is None else [groups])]
    parts = {part: read_columns(files, columns, place) for part, files in _parts(place).items()}
    arrays = {part: _samples(told[x], place) for part, told in parts.items()}
    y = _labels({part: told[labels] for part, told in parts.items()}, place)
    ids: dict[str, Ints] = {}
    names = None
    if groups is not None:
        ids, names = coded_groups({part: told[groups] for part, told in parts.items()})
    if len(arrays) == 1:
        arrays, y, ids = with_test_set(arrays["_train"], y["_train"], ids.get("_train"))
    pictures = isinstance(next(iter(parts.values()))[x][0], dict)
    return Dataset(
        Path(path).name,
        arrays["_train"],
        y["_train"],
        arrays["_test"],
        y["_test"],
        max(2, 1 + max(int(each.max()) for each in y.values())),
        ids.get("_train"),
        scaled=False,
        groups_test=ids.get("_test"),
        unit=(255.0 if pictures else 1.0) if unit is None else unit,
        group_names=names,
    )


def _found(path: str, request: Request) -> Path:
    cached = f"datasets--{path.replace('/', '--')}/snapshots"
    for folder in [Path(), *search_folders(request.root)]:
        snapshots = sorted((folder / cached).glob("*"))
        for place in [folder / os.path.expanduser(path), *snapshots]:
            if os.path.isdir(place) and any(_files(place)):
                if request.peek:
                    raise Found(place)
                return place
    raise DataNotFound(
        f"The data set '{path}' was not found: no folder of that name with *.parquet or *.arrow, "
        f"nor '{cached}' in Hugging Face's cache: save it there with datasets' save_to_disk."
    )


def _files(place: Path) -> list[Path]:
    return sorted([*place.rglob("*.parquet"), *place.rglob("*.arrow")])


def _parts(place: Path) -> dict[str, list[Path]]:
    """The files for training and for testing, by what their path says; all, if it says nothing."""
    files = _files(place)
    told = {
        part: [f for f in files if part[1:] in str(f.relative_to(place)).lower()]
        for part in ("_train", "_test")
    }
    if told["_train"] and told["_test"]:
        return told
    return {"_train": told["_train"] or files}


def _samples(cells: Sequence[Any], place: Path) -> Array:
    if cells and isinstance(cells[0], dict):
        first = image(cells[0], None, place)
        return np.stack([image(cell, first.shape, place) for cell in cells])
    try:
        array = np.array(cells)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.ndim < 2 or array.dtype.kind not in "iuf":
        raise BadInput(f"The samples in '{place}' must be images, or lists of as many numbers.")
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _labels(columns: dict[str, list[Any]], place: Path) -> dict[str, Ints]:
    values = [value for column in columns.values() for value in column]
    if all(isinstance(value, str) for value in values):
        number = {name: i for i, name in enumerate(sorted(set(values)))}
        return {part: np.array([number[v] for v in column]) for part, column in columns.items()}
    if not all(isinstance(value, int) and value >= 0 for value in values):
        raise BadInput(f"The labels in '{place}' must be whole numbers from 0, or texts.")
    return {part: np.array(column, dtype=np.int64) for part, column in columns.items()}
