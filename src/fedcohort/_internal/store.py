"""Save and read states: arrays and settings in one file, checked against declared shapes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from itertools import repeat
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np

from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    FedcohortError,
    UnknownName,
    brief,
    quoted,
)
from fedcohort._internal.files import as_path, read_plain, replacing, writing
from fedcohort._internal.parameters import is_real
from fedcohort._internal.types import Array

# What the arrays of a state look like, declared beside them and checked when a file is read.
#
# A checksum says that a file is as it was written, not who wrote it. So the state of a scheme says
# of its arrays what the code relies on, and `fedcohort._internal.store.unpack` refuses anything
# else::
#
#     labels: Annotated[Ints, Shaped("n", low=0, below="n")]

Lengths = MutableMapping[str, int]
"""Lengths by name: ``n``, the number of clients, and those that other arrays have shown."""


class Shaped:
    """The shape of an array and the range of its numbers.

    Parameters
    ----------
    shape
        Its sides: numbers, or names of lengths (``"n"``, or ``"n-1"`` for one less); ``"..."`` at
        the end for any others. The first array with a new name decides on the length.
    low, below
        Every number x has low <= x < below; ``below`` may be the name of a length.
    finite
        Whether NaN and infinity are refused.
    kind
        The kinds of dtype that will do, where the annotation leaves it open: ``"f"`` for floats.
    optional
        Whether an array of no number at all, of as many sides, will do as well.

    >>> Shaped("n", low=0).check("labels", np.array([0, 1, 1]), {"n": 4})
    Traceback (most recent call last):
    fedcohort._internal.errors.BadInput: 'labels' has shape (3,), not (4,)
    """

    def __init__(
        self,
        *shape: int | str,
        low: float = -math.inf,
        below: float | str = math.inf,
        finite: bool = True,
        kind: str = "",
        optional: bool = False,
    ) -> None:
        self.shape, self.low, self.below = shape, low, below
        self.finite, self.kind, self.optional = finite, kind, optional

    def check(self, name: str, array: Array, lengths: Lengths) -> None:
        """Refuse an array that is not as declared."""
        if self.kind and array.dtype.kind not in self.kind:
            raise BadInput(f"'{name}' is of the type {array.dtype}")
        if self.optional and array.size == 0 and array.ndim == len(self.shape):
            return
        wanted = self.shape[:-1] if self.shape[-1] == "..." else self.shape
        found = array.shape[: len(wanted)] if wanted is not self.shape else array.shape
        if len(found) != len(wanted) or not all(map(_agrees, wanted, found, repeat(lengths))):
            wanted = tuple(lengths.get(str(side), side) for side in self.shape)
            raise BadInput(f"'{name}' has shape {array.shape}, not {wanted}")
        if self.finite and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BadInput(f"'{name}' has numbers that are not finite")
        below = lengths[self.below] if isinstance(self.below, str) else self.below
        if np.any(array < self.low) or (below < math.inf and np.any(array >= below)):
            raise BadInput(f"'{name}' has numbers outside their range")


def _agrees(side: int | str, found: int, lengths: Lengths) -> bool:
    if side == "n-1":
        return found == max(0, lengths["n"] - 1)
    return found == (side if isinstance(side, int) else lengths.setdefault(side, found))


_KINDS = ((np.floating, "fiu"), (np.integer, "iuO"), (np.bool_, "b"))
"""Which kinds of arrays will do where floats, integers (of any size) or booleans are declared."""


def check(name: str, value: Any, hint: Any, lengths: Lengths) -> None:
    """Refuse a value that is not what an annotation says; an unknown annotation says nothing."""
    if get_origin(hint) is Annotated:
        kind, *extras = get_args(hint)
        check(name, value, kind, lengths)
        for extra in extras:
            if isinstance(extra, Shaped):
                extra.check(name, value, lengths)
    elif not _is_a(value, hint):
        if hint is float and isinstance(value, float):
            raise BadInput(f"'{name}' is not finite")
        found = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise BadInput(f"'{name}' is of the type {found}")


def _is_a(value: Any, hint: Any) -> bool:
    alias = getattr(get_origin(hint), "__value__", None)
    if alias is not None:  # NDArray[...] since numpy 2.5: a name for ndarray[...]
        return _is_a(value, alias[get_args(hint)])
    if get_origin(hint) in (Union, UnionType):
        return any(_is_a(value, each) for each in get_args(hint))
    if get_origin(hint) is list:
        return isinstance(value, list) and all(_is_a(each, *get_args(hint)) for each in value)
    if get_origin(hint) is dict:
        inner = get_args(hint)[1]
        return isinstance(value, dict) and all(_is_a(each, inner) for each in value.values())
    if get_origin(hint) is np.ndarray:
        scalar = get_args(get_args(hint)[1])[0]
        return isinstance(value, np.ndarray) and all(
            value.dtype.kind in fine
            for kind, fine in _KINDS
            if isinstance(scalar, type) and issubclass(scalar, kind)
        )
    if hint is float:
        return is_real(value)  # finite: no integer that no float can hold, either
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    told = hint in (str, bool, dict, NoneType) or (isinstance(hint, type) and is_dataclass(hint))
    return isinstance(value, hint) if told else True


# Plain files for arrays and settings: no pickle, one hash, all or nothing.
#
# A file is an uncompressed ``.npz`` that holds the arrays, a JSON header and the SHA-256 of both.
# It is written beside its place and moved there, so a crash or a full disk leaves the old file.
# Reading refuses damage, object arrays, newer formats, and whatever could unpack to more than the
# file's own size: compressed members, and members that share their bytes.

T = TypeVar("T")

FORMAT = 2
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
        {"format": FORMAT, "big": big, "sha256": _digest(header, plain), **header}, allow_nan=False
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
    clients; see `fedcohort._internal.store`.
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
        check(name, values[name], hints[name], known)
    state = cls(**values)
    if isinstance(state, Coherent):
        state.check_coherent()
    return state


@runtime_checkable
class Coherent(Protocol):
    """A state that can tell more than the shapes of its arrays."""

    def check_coherent(self) -> None:
        """Refuse what could not have come about."""
