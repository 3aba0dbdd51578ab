"""What drop-out rules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fedcohort.core.parameters import Checked
from fedcohort.core.types import Floats


class DropOutRule(Checked, ABC):
    """What becomes of the weights when chosen clients do not answer."""

    name: ClassVar[str]
    biased: ClassVar[bool] = False
    """Whether the step leans towards clients that answer more often."""
    attempts: int = 0
    """How often a lost draw is made again."""
    needs_rows: ClassVar[bool] = True
    """Whether weights are known only once it is known who answered."""

    @abstractmethod
    def weights(self, drawn: float, answered: Floats, factors: Floats) -> Floats:
        """(k,) what the answers weigh.

        ``drawn`` is the sum of the weights of the cohort, ``answered`` (k,) the weights of those
        who answered, ``factors`` (k,) by how much their chance to do so must be made up for.
        """


def jackknifed(drawn: float, weights: Floats) -> Floats:
    """Weights scaled to the sum ``drawn``, so that the scaling itself adds no bias.

    With H = sum_l h_l the ratio estimate is R = sum_i h_i x_i / H, R_l the same without client l,
    and the jackknife is k R - (k - 1)/k sum_l R_l: again a weighted sum of the x_i. Where it
    would give somebody a negative weight (one answer dwarfs the others) R itself is used.

    >>> jackknifed(1.0, np.array([1.0, 1.0, 2.0])).round(3)
    array([0.194, 0.194, 0.611])
    """
    k, total = len(weights), float(weights.sum())
    plain = scaled(drawn, weights)
    if k < 2:
        return plain
    without = 1.0 / (total - weights)  # (k,) one over the sum of the others
    out: Floats = drawn * weights * (k / total - (k - 1) / k * (without.sum() - without))
    return out if np.all(np.isfinite(out)) and np.all(out >= 0) else plain


def scaled(drawn: float, weights: Floats) -> Floats:
    """Weights of the sum ``drawn``; the ratio estimate."""
    total = float(weights.sum())
    return weights * (drawn / total) if total > 0 else weights
