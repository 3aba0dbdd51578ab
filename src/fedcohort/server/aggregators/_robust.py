"""What robust aggregators share: they look at all answers of a round at once.

A robust centre of the answers takes the place of their average; it is multiplied with the sum of
the weights, so that where all answers are alike the step is that of the plain sum. Less than half
of the weight, or of a declared part, can say what it likes. The price: it is biased wherever
clients differ, the more the less their data is alike; and the updates of one whole cohort are
held in memory, where the plain sum holds a block of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._scheme import Claim
from fedcohort.server.aggregators.base import Aggregator

YIN = Citation(
    "Dong Yin, Yudong Chen, Kannan Ramchandran, Peter Bartlett",
    "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates",
    "ICML",
    2018,
)
ROUNDING = 1e-12
"""A weight of so little, of all, is a rounding error."""
NUMBERS_AT_ONCE = 2**22
"""A table is sorted so many numbers at a time."""

Answers = tuple[tuple[Floats, Array], ...]
"""Weights (b,) and updates (b, d) of each block."""


@dataclass(frozen=True)
class Robust(Aggregator):
    """The robust centre of all answers of a round, times the sum of their weights."""

    needs_rows: ClassVar[bool] = True
    compares: ClassVar[bool] = True
    withdraws: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EVEN_OVER_SAMPLES})
    no_sums: ClassVar[str] = (
        "A robust aggregator compares updates, but here a client sends the sum over its samples of "
        "the round, so that the number of samples would decide; use the plain aggregator, with "
        "hardened='clip'."
    )

    def start(self, importance: Floats, dimension: int) -> None:
        return None

    def begin(self, memory: None, cohort: Cohort, importance: Floats | None = None) -> Answers:
        if cohort.per_sample:
            raise BadInput(self.no_sums)
        return ()

    def add(self, account: Answers, clients: Ints, weights: Floats, updates: Array) -> Answers:
        return (*account, (weights, updates))

    def finish(self, account: Answers, dimension: int) -> tuple[Floats, None]:
        if not account:
            return np.zeros(dimension), None
        weights = np.concatenate([part for part, _ in account]).astype(np.float64)
        total = float(weights.sum())
        if not total > 0:
            return np.zeros(dimension), None
        rows = np.concatenate([part for _, part in account]).astype(np.float64, copy=False)
        return total * self.centre(weights / total, rows), None

    @abstractmethod
    def centre(self, weights: Floats, rows: Floats) -> Floats:
        """(d,) the centre of rows (k, d) with weights (k,) that sum to 1."""


def by_value(weights: Floats, rows: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Some coordinates at a time: which, their values (k, c) ascending, and the weight up to each.

    The weight up to the last is exactly 1.
    """
    step = max(1, NUMBERS_AT_ONCE // len(rows))
    for start in range(0, rows.shape[1], step):
        part = rows[:, start : start + step]
        order = np.argsort(part, axis=0, kind="stable")
        reached = np.cumsum(weights[order], axis=0)
        reached[-1] = 1.0
        yield slice(start, start + step), np.take_along_axis(part, order, axis=0), reached
