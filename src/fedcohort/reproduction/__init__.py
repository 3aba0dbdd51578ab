"""How a figure or table of a paper is repeated: what a recipe is, how it is run, judged, drawn.

The recipes themselves are in `fedcohort.recipes`, a folder per paper.
"""

from __future__ import annotations

from fedcohort.reproduction.drawing import Along, Bars, Columns, Curves, Drawn, Panel
from fedcohort.reproduction.estimate import Estimate
from fedcohort.reproduction.exact import Exact, Holds
from fedcohort.reproduction.findings import (
    NOT,
    NOT_RUN,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    VERDICTS,
    Finding,
    Judge,
)
from fedcohort.reproduction.judged import EXIT, Judged
from fedcohort.reproduction.judges import (
    Alike,
    Close,
    Contrast,
    Every,
    Learned,
    Own,
    Ratio,
    difference,
    order,
)
from fedcohort.reproduction.measures import MEASURES, measure
from fedcohort.reproduction.recipe import SCALES, Cell, Claim, Computed, Recipe, Scale, Tuned
from fedcohort.reproduction.results import COMPUTED, Results
from fedcohort.reproduction.running import Interrupted, Run

__all__ = [
    "COMPUTED",
    "EXIT",
    "MEASURES",
    "NOT",
    "NOT_RUN",
    "PARTLY",
    "REPRODUCED",
    "SCALES",
    "UNDECIDED",
    "VERDICTS",
    "Alike",
    "Along",
    "Bars",
    "Cell",
    "Claim",
    "Close",
    "Columns",
    "Computed",
    "Contrast",
    "Curves",
    "Drawn",
    "Estimate",
    "Every",
    "Exact",
    "Finding",
    "Holds",
    "Interrupted",
    "Judge",
    "Judged",
    "Learned",
    "Own",
    "Panel",
    "Ratio",
    "Recipe",
    "Results",
    "Run",
    "Scale",
    "Tuned",
    "difference",
    "measure",
    "order",
]
