"""The weighted mean of the answers without the extremes, coordinate by coordinate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import Real
from fedcohort._internal.types import Floats
from fedcohort.selection._citation import Citation
from fedcohort.server.aggregators._robust import ROUNDING, YIN, Robust, by_value


@dataclass(frozen=True)
class TrimmedMean(Robust):
    """In every coordinate, the mean without the largest and smallest values.

    Yin et al. (ICML 2018), Definition 2, with weights: a share of the *weight* is cut off at either
    end, in the middle of an answer if need be. With 0 it is the plain sum.

    Parameters
    ----------
    share
        Of the weight, cut off at either end; below 1/2. It should be above the share of attackers.

    >>> from fedcohort.selection._cohort import Cohort
    >>> updates, cohort = np.array([[0.0], [1.0], [2.0], [1e9]]), Cohort.equal(range(4))
    >>> TrimmedMean(share=0.25).direction(None, cohort, cohort.clients, updates)[0]
    array([1.5])
    """

    share: Annotated[float, Real(0, 0.5)] = 0.1

    name: ClassVar[str] = "trimmed-mean"
    paper: ClassVar[Citation | None] = replace(YIN, where="Definition 2")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share == 0.5:
            raise BadParameter("share", self.name, "below 0.5", self.share, "Use 'median'.")

    def centre(self, weights: Floats, rows: Floats) -> Floats:
        out = np.empty(rows.shape[1])
        for where, values, reached in by_value(weights, rows):
            inside = np.clip(reached, self.share, 1.0 - self.share)
            kept = np.diff(inside, axis=0, prepend=self.share)  # (k, c) what is left of each
            kept[kept < ROUNDING] = (
                0.0  # or a rounding error of the weights would count, times 1e200
            )
            out[where] = (kept * values).sum(axis=0) / kept.sum(axis=0)
        return out
