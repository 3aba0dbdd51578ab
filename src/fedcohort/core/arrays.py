"""Read the arrays that callers pass, or raise an error of one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort.core.errors import BadInput, shown
from fedcohort.core.types import Array, Floats


def as_array(values: Any, must: str) -> Array:
    """An array; rows of different lengths, say, are refused by the sentence ``must``.

    >>> as_array([[1], [1, 2]], "Updates must be a table")
    Traceback (most recent call last):
    fedcohort.core.errors.BadInput: Updates must be a table; got [[1], [1, 2]].
    """
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{must}; got {shown(values)}.") from None


def as_floats(values: Any, must: str) -> Floats:
    """The same, as floats."""
    try:
        if np.iscomplexobj(values):
            raise TypeError
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{must}; got {shown(values)}.") from None
