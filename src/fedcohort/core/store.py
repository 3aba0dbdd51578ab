"""Plain files for arrays and settings: no pickle, one hash, all or nothing.

A file is an uncompressed ``.npz`` that holds the arrays, a JSON header and the SHA-256 of both.
It is written beside its place and moved there, so a crash or a full disk leaves the old file.
Reading refuses damage, object arrays, newer formats, and whatever could unpack to more than the
file's own size: compressed members, and members that share their bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, TypeVar, get_type_hints, runtime_checkable

import numpy as np

from fedcohort.core import shaped
from fedcohort.core.errors import (
    BadCheckpoint,
    BadInput,
    FedcohortError,
    UnknownName,
    brief,
    quoted,
)
from fedcohort.core.files import as_path, read_plain, replacing, writing
from fedcohort.core.types import Array

T = TypeVar("T")

FORMAT = 1
HEADER = "__header__"
FORMER = {
    "server": "optimiser",
    "estimator": "aggregator",
    "moment.available": "context.available",
    "moment.latency": "context.latency",
}
"""What older versions called settings and arrays, and what they are called now."""


def save(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write a header and arrays; the file at ``path`` is replaced at once or not at all."""
    place = as_path(path)
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
    with writing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as file:
            np.savez(file, **members)  # type: ignore[arg-type]


def load(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what `save` wrote; ``kind`` must be the header's ``kind``."""
    place = as_path(path)
    try:
        data = read_plain(place)
    except FileNotFoundError:
        raise BadCheckpoint(f"There is no {kind} at {quoted(path)}.") from None
    except OSError as error:
        raise BadCheckpoint(f"{quoted(path)} is not a {kind}: {error.strerror}.") from None
    try:
        arrays = _members(data)
        header = dict(json.loads(arrays.pop(HEADER).tobytes().decode()))
        form, found = header.pop("format", None), header.get("kind")
        big, digest = header.pop("big", ()), header.pop("sha256", None)
        intact = digest == _digest(header, arrays)
    except BadInput as error:
        raise BadCheckpoint(f"{quoted(path)} is not a {kind}: it has {error}.") from None
    except Exception:  # the readers of archives fail in many ways, MemoryError among them
        raise BadCheckpoint(f"{quoted(path)} is damaged or is not a {kind}.") from None
    if form != FORMAT:
        raise BadCheckpoint(
            f"{quoted(path)} has another format; it was written by another version."
        )
    if found != kind:
        raise BadCheckpoint(f"{quoted(path)} holds a {brief(found)}, not a {kind}.")
    if not intact:
        raise BadCheckpoint(f"{quoted(path)} is damaged: its checksum does not match.")
    refuse_former(path, kind, arrays)
    with whole(path, kind):
        for name in big:
            arrays[name] = np.array([int(text) for text in arrays[name]], dtype=object)
    return header, arrays


def refuse_former(path: str | os.PathLike[str], kind: str, names: Collection[str]) -> None:
    """Refuse a file with a former name; beside the name of now it is the user's own."""
    for former, now in FORMER.items():
        if former in names and now not in names:
            raise BadCheckpoint(
                f"{quoted(path)} is a {kind} that an older version of fedcohort wrote (it has "
                f"'{former}'): go on with that version, or begin again in another place."
            )


def _members(data: bytes) -> dict[str, Array]:
    """The arrays of an archive, which never take more memory than the archive itself."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise BadInput("compressed members")
    if sum(member.file_size for member in members) > len(data):
        raise BadInput("members that overlap")
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if any(a.dtype.kind not in "biufU" or a.size > len(data) for a in arrays.values()):
        raise BadInput("members that are no numbers")
    return arrays


@contextlib.contextmanager
def whole(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """What is wrong with the contents of a file, in one sentence; a checksum vouches for nobody."""
    try:
        yield
    except (BadCheckpoint, UnknownName):
        raise
    except Exception as error:  # forged contents fail wherever they are used first
        why = f"no {brief(error)}" if isinstance(error, KeyError) else brief(error)
        if isinstance(error, FedcohortError):  # a sentence of ours
            why = str(error).removesuffix(".")
        raise BadCheckpoint(f"{quoted(path)} does not hold a whole {kind} ({why}).") from error


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


def unpack(
    cls: type[T],
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    prefix: str,
    lengths: Mapping[str, int] | None = None,
) -> T:
    """The state that `pack` took apart; what is not as the class declares it is refused.

    ``lengths`` are those that its arrays may be declared to have, such as ``n``, the number of
    clients; see `fedcohort.core.shaped`.
    """
    if not isinstance(header, Mapping):
        raise BadInput(f"no {cls.__name__}")
    hints = get_type_hints(cls, include_extras=True)
    values = dict(header)
    for name, value in header.items():
        if isinstance(value, Mapping):
            values[name] = unpack(hints[name], value, arrays, f"{prefix}{name}.", lengths)
    for name, array in arrays.items():
        own = name.removeprefix(prefix)
        if name.startswith(prefix) and "." not in own:
            values[own] = array
    known = dict(lengths or {})
    for name in [name for name in hints if name in values]:
        shaped.check(name, values[name], hints[name], known)
    state = cls(**values)
    if isinstance(state, Coherent):
        state.check_coherent()
    return state


@runtime_checkable
class Coherent(Protocol):
    """A state that can tell more than the shapes of its arrays."""

    def check_coherent(self) -> None:
        """Refuse what could not have come about."""
