"""How large the numbers of a formula may be: so that its squares and products stay finite."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Real, Whole
from fedcohort._internal.types import Floats, as_floats
from fedcohort.selection._design import Design

SMALLEST, LARGEST = 1e-30, 1e30
POSITIVE = Real(SMALLEST, LARGEST)
"""A step size, a constant of smoothness: what is squared, and divided by."""
NOT_NEGATIVE = Real(0, LARGEST)
"""A variance, a distance: what may be 0."""
COUNT = Whole(1, 10**15)
"""Rounds, steps, clients: what is counted, and never listed."""
MOST_STEPS = 10_000_000
LISTED = Whole(1, MOST_STEPS)
"""Rounds or steps, each of which has a number of its own."""
LARGEST_NUMBER = 1e140
"""Of an array: products of these, and sums of them, are finite."""


def finite(values: ArrayLike, name: str, *ndims: int) -> Floats:
    """An array of so many dimensions (one of ``ndims``), of finite numbers that are not huge."""
    must = f"'{name}' must be finite numbers in {' or '.join(map(str, ndims))} dimension"
    must += "s" if ndims[-1] > 1 else ""
    out = as_floats(values, must)
    if out.ndim not in ndims or not np.all(np.abs(out) <= LARGEST_NUMBER):  # NaN included
        beyond = " with NaN or infinity"
        raise BadInput(
            f"{must}; got shape {out.shape}{'' if np.all(np.isfinite(out)) else beyond}."
        )
    return out


def rows_of(design: Design, values: ArrayLike, name: str) -> Floats:
    """(n, d) or (n,) one row of finite numbers for each client of a design."""
    rows = finite(values, name, 1, 2)
    if len(rows) != design.n:
        raise BadInput(
            f"'{name}' must hold one row of finite numbers for each of {design.n} clients; got "
            f"shape {rows.shape}."
        )
    return rows
