"""How a figure or table of a paper is repeated: what a recipe is, how it is run, judged, drawn.

The recipes themselves are in `fedcohort_papers.recipes`, a folder per paper.
"""

from __future__ import annotations

from fedcohort_papers.reproduction.drawing import Along, Bars, Columns, Curves, Drawn, Panel
from fedcohort_papers.reproduction.estimate import Estimate
from fedcohort_papers.reproduction.exact import Exact, Holds
from fedcohort_papers.reproduction.findings import (
    NOT,
    NOT_RUN,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    VERDICTS,
    Finding,
    Judge,
)
from fedcohort_papers.reproduction.judged import EXIT, Judged
from fedcohort_papers.reproduction.judges import (
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
from fedcohort_papers.reproduction.measures import MEASURES, measure
from fedcohort_papers.reproduction.recipe import SCALES, Cell, Claim, Computed, Recipe, Scale, Tuned
from fedcohort_papers.reproduction.results import COMPUTED, Results
from fedcohort_papers.reproduction.running import Interrupted, Run

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
