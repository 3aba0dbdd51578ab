"""Losses as clients report them, made safe to be compared.

A loss comes from a client and decides who is chosen, so the rules are strict. A report that is
no finite number (or larger than `LARGEST`) is rejected: it never goes before another, wherever a
sort would have put it; so is a negative one where the scheme cannot use it. NaN is rejected,
too, also where a carrier writes it for a client that did not answer: who does not answer a
question will hardly train. A loss that the caller does not have (None) is taken for a typical
one: it stands just below the median of the others. If nothing is left, all are equal.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from fedcohort.core.errors import BadInput, FedcohortWarning
from fedcohort.core.parameters import is_real
from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Array, Bools, Floats

REJECTED = np.nan
"""What stands in the place of a rejected loss: it is neither above nor below any other."""

LARGEST = 1e100
"""What is larger has overflowed somewhere; squares of losses, and sums of them, stay finite."""

KEPT = Shaped("n", low=-LARGEST, below=2 * LARGEST, finite=False)
"""Losses that a scheme keeps, of every client one: NaN where none is known."""


def comparable(reports: ArrayLike, owner: str, negative: bool = False) -> Floats:
    """(k,) losses as reported -> (k,) finite losses, or NaN where the report was rejected.

    ``negative`` allows losses below 0. Every departure is told in one warning. Where no report
    can be used all losses are 0, so that whoever draws among equals draws uniformly.

    >>> comparable([0.5, 2.0, 1.0], "pow-d")
    array([0.5, 2. , 1. ])
    """
    losses, silent = _told(reports, owner, negative)
    known = np.isfinite(losses)
    if not known.any():
        if len(losses):
            _warn(
                f"{owner}: none of {len(losses)} losses can be used, so clients are taken at "
                "random."
            )
        return np.zeros(len(losses))
    _tell_rejected(np.isnan(losses) & ~silent, owner, negative)
    if silent.any():
        _warn(
            f"{owner}: {int(silent.sum())} of {len(losses)} clients did not tell their loss; "
            "the median of the others is taken for it."
        )
        median = np.quantile(losses[known], 0.5, method="lower")  # one of them: exact, no overflow
        losses[silent] = np.nextafter(median, -np.inf if negative else 0.0)
    return losses


def sound(reports: ArrayLike, owner: str, negative: bool = False) -> Floats:
    """(k,) losses as reported -> (k,) finite losses, or NaN: nothing is put in their place."""
    losses, _ = _told(reports, owner, negative)
    _tell_rejected(np.isnan(losses), owner, negative)
    return losses


def _told(reports: ArrayLike, owner: str, negative: bool) -> tuple[Floats, Bools]:
    """The losses, NaN where there is none, and who was silent."""
    answers = np.asarray(reports)
    if answers.ndim != 1:
        raise BadInput(
            f"A loss must be one number per client; {owner} got an array of shape {answers.shape}."
        )
    losses = _numbers(answers)
    if not negative:
        losses[losses < 0] = REJECTED
    silent = [a is None for a in answers.tolist()] if answers.dtype == object else False
    return losses, np.full(len(losses), silent, dtype=bool)


def _tell_rejected(rejected: Bools, owner: str, negative: bool) -> None:
    if rejected.any():
        kinds = "finite numbers" if negative else "finite numbers of at least 0"
        _warn(
            f"{owner}: {int(rejected.sum())} of {len(rejected)} losses are not {kinds} and do "
            "not count (an infinity may be a loss that overflowed: compute it in 32 bits)."
        )


def _numbers(answers: Array) -> Floats:
    """As floats; NaN for whatever is not a number of at most `LARGEST`."""
    if answers.dtype.kind in "iuf":
        values = answers.astype(np.float64)
    else:
        told = [float(a) if is_real(a) else REJECTED for a in answers.tolist()]
        values = np.array(told, dtype=np.float64)
    values[np.abs(values) > LARGEST] = REJECTED
    return values


def _warn(sentence: str) -> None:
    warnings.warn(sentence, FedcohortWarning, stacklevel=4)
