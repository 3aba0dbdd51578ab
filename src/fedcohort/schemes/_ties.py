"""Clients by size, and in which order those of equal size stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedcohort._internal.random import stream
from fedcohort._internal.types import Ints
from fedcohort.maths._draws import permutation


@dataclass(frozen=True)
class Ties:
    """The order of clients of equal size: a seed, so that ten million clients cost nothing."""

    seed: int


def by_decreasing(sizes: Ints, ties: Ties) -> Ints:
    """Positions by decreasing size; equal sizes in the order of the ties."""
    behind = sizes.max() - sizes  # the largest first
    if int(behind.max()) < 2**16:
        behind = behind.astype(np.uint16)  # sorted by radix, several times as fast
    if ties.seed < 0:
        return np.argsort(behind, kind="stable")
    shuffled = permutation(stream(ties.seed, "ties"), len(sizes))
    return shuffled[np.argsort(behind[shuffled], kind="stable")]
