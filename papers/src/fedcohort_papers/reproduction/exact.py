"""Criteria for computed numbers, where no chance is left to be judged."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from fedcohort_papers.reproduction.estimate import number
from fedcohort_papers.reproduction.findings import NOT, PARTLY, REPRODUCED, Finding, Judge
from fedcohort_papers.reproduction.results import COMPUTED, Of, Results


@dataclass(frozen=True)
class Exact(Judge):
    """A computed number without chance is the printed one, up to its rounding."""

    of: str
    printed: float
    within: float

    @property
    def compared(self) -> tuple[Of, ...]:
        """Return no arms: ``version`` and ``numbers`` decide what is computed."""
        return ()

    def judge(self, results: Results) -> Finding:
        found = results.values(COMPUTED, self.of).numbers
        far = np.abs(found - self.printed)
        fits = far <= self.within  # False for NaN
        verdict = REPRODUCED if fits.all() else PARTLY if fits.any() else NOT
        shown = (
            number(float(found[0]))
            if np.ptp(found) == 0
            else " to ".join(number(float(v)) for v in (found.min(), found.max()))
        )
        mean = float(found.mean())
        return Finding(verdict, shown, mean if isfinite(mean) else None, units=len(found))

    def __str__(self) -> str:
        return f"{self.of} is within ±{number(self.within)} of {number(self.printed)}, exactly"


@dataclass(frozen=True)
class Holds(Judge):
    """A computed statement is true: 1 where it is, 0 where not; partly where it is some times.

    ``shown`` names a sample that is printed beside, to say by how much.
    """

    of: str
    criterion: str = ""
    shown: str = ""

    @property
    def compared(self) -> tuple[Of, ...]:
        """Return no arms: ``version`` and ``numbers`` decide what is computed."""
        return ()

    def judge(self, results: Results) -> Finding:
        found = results.values(COMPUTED, self.of).numbers > 0.5
        verdict = REPRODUCED if found.all() else PARTLY if found.any() else NOT
        text = (
            "yes"
            if found.all()
            else "no"
            if not found.any()
            else (f"in {int(found.sum())} of {len(found)} repetitions")
        )
        if self.shown:
            values = results.values(COMPUTED, self.shown).numbers
            text += f" ({self.shown} {number(float(values.mean()))})"
        return Finding(verdict, text, float(found.mean()), units=len(found))

    def __str__(self) -> str:
        return self.criterion or f"{self.of}, in every repetition"
