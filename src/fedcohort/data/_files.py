"""Read arrays from files that nobody vouches for: IDX, npz and dense integer ARFF.

Each reader is told how large the array must be and checks the *declared* size before it
reads, so that a zip bomb (49 KB that unpack to 50 MB) costs nothing; object arrays, which
would run code when unpickled, are refused. Whatever is wrong ends in one `BadInput` whose
sentence names the file.
"""

from __future__ import annotations

import gzip
import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from fedcohort._internal.environment import check_fits
from fedcohort._internal.errors import BadInput, FedcohortError
from fedcohort._internal.types import Array

Shape: TypeAlias = tuple[int, ...]

HEADER = 64 * 1024
"""Bytes allowed for the header of an npy array or an ARFF file."""

_PART = 1 << 20  # bytes

IDX_TYPES: dict[int, np.dtype[Any]] = {8: np.dtype(np.uint8), 12: np.dtype(">i4")}
"""The two of the six IDX element types that the MNIST family uses."""


def read_bytes(path: Path, limit: int) -> bytes:
    """Bytes of a file, unpacked if its name ends in ``.gz``, and never more than ``limit``."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as handle:
            # By parts: to read up to a limit at once takes memory for all of it.
            held = io.BytesIO()
            while held.tell() <= limit and (part := handle.read(_PART)):
                held.write(part)
            content = held.getvalue()
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"'{path}' cannot be read ({_short(error)}): delete it.") from error
    if len(content) > limit:
        raise BadInput(f"'{path}' holds more than the expected {limit} bytes: not the file meant.")
    return content


def read_idx(path: Path, shape: Shape, dtype: str = "uint8") -> Array:
    """An array in the IDX format of MNIST: two zero bytes, type, rank, sizes, big-endian data."""
    start = 4 + 4 * len(shape)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    content = read_bytes(path, start + size)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise BadInput(f"'{path}' is not an IDX file: delete it, or point to another folder.")
    kind, rank = IDX_TYPES[content[2]], content[3]
    if rank != len(shape) or len(content) < start:
        raise BadInput(f"'{path}' must hold an array of shape {shape}; its rank is {rank}.")
    declared = struct.unpack(f">{rank}I", content[4:start])
    if declared != shape or kind != np.dtype(dtype).newbyteorder(">"):
        raise BadInput(f"'{path}' must hold {dtype} {shape}; it declares {kind.name} {declared}.")
    if len(content) != start + size:
        raise BadInput(f"'{path}' is cut short: {len(content)} of {start + size} bytes; delete it.")
    values: Array = np.frombuffer(content, dtype=kind, offset=start)
    return values.reshape(shape)


def idx_bytes(array: Array) -> bytes:
    """The IDX file of a uint8 array, header and all: what a published checksum is about.

    >>> idx_bytes(np.array([7, 9], dtype=np.uint8)).hex(" ")
    '00 00 08 01 00 00 00 02 07 09'
    """
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + np.ascontiguousarray(array, dtype=np.uint8).tobytes()


def read_npz(path: Path, shapes: Mapping[str, Shape]) -> dict[str, Array]:
    """The named integer arrays of an npz file, each of exactly the given shape."""

    def like(shape: Shape) -> Like:
        return Like(f"integers of shape {shape}", "iu", shape=shape)

    return read_arrays(path, {key: like(shape) for key, shape in shapes.items()})


@dataclass(frozen=True)
class Like:
    """What an array of a file must be; ``words`` say it."""

    words: str
    kinds: str
    rank: int | None = None
    shape: Shape | None = None
    most_bytes: int = 1 << 32

    @property
    def limit(self) -> int:
        """Bytes that the array may unpack to."""
        return HEADER + (self.most_bytes if self.shape is None else 8 * int(np.prod(self.shape)))

    def fits(self, shape: Shape, dtype: np.dtype[Any]) -> bool:
        """Whether an array of that shape and type is one."""
        ranks = self.rank is None or len(shape) == self.rank
        return dtype.kind in self.kinds and ranks and self.shape in (None, shape)


def read_arrays(path: Path, wanted: Mapping[str, Like]) -> dict[str, Array]:
    """The named arrays of an npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {key: _member(archive, path, key, like) for key, like in wanted.items()}
    except (FedcohortError, MemoryError):
        raise
    # Fuzzing met LZMAError, UnicodeDecodeError and RuntimeError beside the documented
    # BadZipFile: any failure to read foreign bytes is a bad file.
    except Exception as error:
        raise BadInput(f"'{path}' is not a readable npz file ({_short(error)}).") from error


def array_names(path: Path) -> tuple[str, ...]:
    """What the arrays of an npz file are called."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy"))
    except Exception as error:
        raise BadInput(f"'{path}' is not a readable npz file ({_short(error)}).") from error


def _member(archive: zipfile.ZipFile, path: Path, key: str, like: Like) -> Array:
    try:
        declared = archive.getinfo(f"{key}.npy").file_size
    except KeyError:
        raise BadInput(f"'{path}' has no array '{key}': not the file meant.") from None
    if declared > like.limit:
        raise BadInput(
            f"'{key}' in '{path}' unpacks to {declared} bytes, at most {like.limit} expected."
        )
    check_fits(declared, f"'{key}' in '{path}'")
    try:
        # zipfile stops at the declared size even if the packed stream goes on.
        with archive.open(f"{key}.npy") as handle:
            found, dtype = _npy_header(handle)
        if not like.fits(found, dtype):
            raise BadInput(f"'{key}' in '{path}' must be {like.words}; got {dtype} {found}.")
        # numpy takes the memory for what a header says before it reads.
        if max(math.prod(found) * dtype.itemsize, *found[:1]) > declared:
            raise ValueError(f"{dtype} {found} in {declared} bytes")
        with archive.open(f"{key}.npy") as handle:
            array = np.asarray(np.lib.format.read_array(handle, allow_pickle=False))
            handle.read()  # to the end, where its checksum is compared
        return array
    except (BadInput, MemoryError):
        raise
    except Exception as error:  # numpy's header parser lets TokenError and TypeError through
        raise BadInput(f"'{key}' in '{path}' is damaged ({_short(error)}).") from error


def _npy_header(content: IO[bytes]) -> tuple[Shape, np.dtype[np.generic]]:
    version = np.lib.format.read_magic(content)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(content)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(content)
    else:
        raise ValueError(f"npy format {version} holds no plain integers")
    return shape, dtype


def read_arff(path: Path, rows: int, columns: int) -> Array:
    """The (rows, columns) table of a dense ARFF file of integers in 0..255, as OpenML packs it.

    Not a general parser: what is not a plain table of small integers is refused.
    """
    content = read_bytes(path, HEADER + rows * columns * len("255,"))
    marker = content[:HEADER].lower().find(b"@data")
    if marker < 0:
        raise BadInput(f"'{path}' is not an ARFF file: it has no @data line.")
    body = content[marker + len(b"@data") :].strip()
    del content  # hundreds of megabytes
    if body.translate(None, b"0123456789,\r\n"):
        raise BadInput(f"'{path}' must hold a table of plain integers, and holds other text.")
    body = body.replace(b"\r", b"").replace(b"\n", b",")
    try:
        values = np.fromstring(body, dtype=np.int32, sep=",")
    except (ValueError, DeprecationWarning) as error:
        raise BadInput(f"'{path}' must hold a full table of integers ({_short(error)}).") from error
    if values.size != rows * columns or values.max() > 255:
        raise BadInput(f"'{path}' must hold {rows} rows of {columns} integers below 256.")
    return values.astype(np.uint8).reshape(rows, columns)


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
