"""Tables as Hugging Face keeps them on disk, Parquet or Arrow; nothing is ever downloaded."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput, MissingExtra
from fedcohort._internal.types import Array

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
