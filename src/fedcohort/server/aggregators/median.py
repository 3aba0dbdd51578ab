"""The weighted median of the answers, coordinate by coordinate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort._internal.types import Floats
from fedcohort.selection._citation import Citation
from fedcohort.server.aggregators._robust import ROUNDING, YIN, Robust, by_value


@dataclass(frozen=True)
class Median(Robust):
    """In every coordinate, the value with half of the weight on either side.

    Less than half of the weight cannot move it beyond what the others say. Yin, Chen, Ramchandran,
    Bartlett, "Byzantine-Robust Distributed Learning" (ICML 2018), Definition 1, with weights.

    >>> from fedcohort.selection._cohort import Cohort
    >>> updates = np.array([[1.0], [2.0], [1e9]])
    >>> cohort = Cohort.equal([0, 1, 2])
    >>> Median().direction(None, cohort, cohort.clients, updates)[0]
    array([2.])
    """

    name: ClassVar[str] = "median"
    paper: ClassVar[Citation | None] = replace(YIN, where="Definition 1")

    def centre(self, weights: Floats, rows: Floats) -> Floats:
        out = np.empty(rows.shape[1])
        for where, values, reached in by_value(weights, rows):
            low = np.argmax(reached >= 0.5 - ROUNDING, axis=0)[None]
            high = np.argmax(reached > 0.5 + ROUNDING, axis=0)[None]
            ends = [np.take_along_axis(values, end, axis=0)[0] for end in (low, high)]
            out[where] = (ends[0] + ends[1]) / 2
        return out
