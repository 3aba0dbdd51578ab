"""Tables as Hugging Face keeps them on disk, Parquet or Arrow; nothing is ever downloaded."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.core.errors import BadInput, MissingExtra
from fedcohort.core.types import Array


def read_columns(
    paths: Sequence[Path], columns: Sequence[str] | None, place: Path
) -> dict[str, list[Any]]:
    """The named columns (all, if None) of some files, one after another, as Python values."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    if not paths:
        raise BadInput(f"'{place}' has no Parquet or Arrow file.")
    out: dict[str, list[Any]] = {}
    for path in paths:
        try:
            if path.suffix == ".arrow":
                with pa.memory_map(str(path)) as file:
                    table = pa.ipc.open_stream(file).read_all()
            else:
                table = pq.read_table(path)
        except Exception as error:  # whatever pyarrow says of foreign bytes
            raise BadInput(f"'{path}' cannot be read ({str(error)[:120]}): delete it.") from error
        for name in columns or table.column_names:
            if name not in table.column_names:
                there = ", ".join(table.column_names)
                raise BadInput(f"'{path}' has no column '{name}'; it has {there}.")
            out.setdefault(name, []).extend(table.column(name).to_pylist())
    return out


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
