"""What the arrays of a state look like, declared beside them and checked when a file is read.

A checksum says that a file is as it was written, not who wrote it. So the state of a scheme says
of its arrays what the code relies on, and `fedcohort.core.store.unpack` refuses anything else::

    labels: Annotated[Ints, Shaped("n", low=0, below="n")]
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import is_dataclass
from itertools import repeat
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np

from fedcohort.core.errors import BadInput
from fedcohort.core.parameters import is_real
from fedcohort.core.types import Array

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
    fedcohort.core.errors.BadInput: 'labels' has shape (3,), not (4,)
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
