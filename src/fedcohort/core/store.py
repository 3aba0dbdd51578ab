"""Plain files for arrays and settings: no pickle, one hash, all or nothing.

A file is an uncompressed ``.npz`` that holds the arrays, a JSON header and the SHA-256 of both.
It is written beside its place and moved there, so a crash or a full disk leaves the old file.
Reading refuses damage, object arrays, compressed members (nothing can unpack to more than the
file's own size) and newer formats.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from fedcohort.core.errors import BadCheckpoint, CannotSave
from fedcohort.core.files import replacing
from fedcohort.core.types import Array

T = TypeVar("T")

FORMAT = 1
HEADER = "__header__"


def save(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a header and arrays; the file at ``path`` is replaced at once or not at all."""
    place = Path(path)
    plain, big = {}, []
    for name, array in arrays.items():
        if array.dtype == object:  # integers beyond 64 bits, as decimal text
            big.append(name)
            array = np.array([str(int(value)) for value in array])
        plain[name] = np.asarray(array, order="C")
    text = json.dumps(
        {"format": FORMAT, "big": big, "sha256": _digest(header, plain), **header},
        allow_nan=False,
    )
    members = {HEADER: np.frombuffer(text.encode(), np.uint8), **plain}
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as file:
            np.savez(file, **members)  # type: ignore[arg-type]
    except OSError as error:
        raise CannotSave(f"'{path}' cannot be written: {error}.") from error


def load(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what `save` wrote; ``kind`` must be the header's ``kind``."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise BadCheckpoint(f"There is no {kind} at '{path}'.") from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            if any(m.compress_type != zipfile.ZIP_STORED for m in members.infolist()):
                raise BadCheckpoint(f"'{path}' is not a {kind}: it has compressed members.")
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = dict(json.loads(arrays.pop(HEADER).tobytes().decode()))
    except BadCheckpoint:
        raise
    except Exception:  # the readers of archives fail in many ways, MemoryError among them
        raise BadCheckpoint(f"'{path}' is damaged or is not a {kind}.") from None
    if header.pop("format", None) != FORMAT:
        raise BadCheckpoint(f"'{path}' has another format; it was written by another version.")
    if header.get("kind") != kind:
        raise BadCheckpoint(f"'{path}' holds a {header.get('kind')}, not a {kind}.")
    big, digest = header.pop("big", ()), header.pop("sha256", None)
    if digest != _digest(header, arrays):
        raise BadCheckpoint(f"'{path}' is damaged: its checksum does not match.")
    for name in big:
        arrays[name] = np.array([int(text) for text in arrays[name]], dtype=object)
    return header, arrays


def _digest(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    out = hashlib.sha256(json.dumps(header, sort_keys=True, allow_nan=False).encode())
    for name in sorted(arrays):
        array = arrays[name]
        out.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
        out.update(np.ascontiguousarray(array).tobytes())
    return out.hexdigest()


def pack(state: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """A state as header and arrays.

    A state is a frozen dataclass of arrays, numbers, strings, None and frozen dataclasses of
    these.
    """
    header: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[prefix + field.name] = value
        elif is_dataclass(value):
            header[field.name], inner = pack(value, f"{prefix}{field.name}.")
            arrays |= inner
        else:
            header[field.name] = value
    return header, arrays


def unpack(cls: type[T], header: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str) -> T:
    """The state that `pack` took apart."""
    values = dict(header)
    for name, value in header.items():
        if isinstance(value, Mapping):
            values[name] = unpack(get_type_hints(cls)[name], value, arrays, f"{prefix}{name}.")
    for name, array in arrays.items():
        own = name.removeprefix(prefix)
        if name.startswith(prefix) and "." not in own:
            values[own] = array
    return cls(**values)
