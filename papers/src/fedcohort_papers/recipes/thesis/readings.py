"""Mean or summed losses, candidates by size or uniform: where BestLoss is ahead."""

from __future__ import annotations

from functools import partial

from fedcohort._internal.types import Floats
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    BEST_HALF,
    HALF,
    NOTES,
    ROUNDS,
    cell,
    readings,
    scales,
)
from fedcohort_papers.reproduction import Claim, Curves, Own, Recipe, Results

SUM, UNIFORM = ", summed losses", ", uniform candidates"
POW, BEST_LOSS = "pow-d:m=3,d=6", "best-loss:d=6,m=3,version=printed"
ARMS = {
    "Pow-6": POW,
    f"Pow-6{SUM}": f"{POW},loss=sum",
    f"Pow-6{UNIFORM}": f"{POW},candidates=uniform",
    f"Pow-6{UNIFORM}{SUM}": f"{POW},candidates=uniform,loss=sum",
    "BestLoss": BEST_LOSS,
    f"BestLoss{SUM}": f"{BEST_LOSS},loss=sum",
}
TIMES = {HALF: BEST_HALF, ROUNDS: BEST}
PAIRS = {
    "as printed": ("BestLoss", "Pow-6"),
    "with summed losses": (f"BestLoss{SUM}", f"Pow-6{SUM}"),
    "with summed losses and uniform candidates of Pow-6": (
        f"BestLoss{SUM}",
        f"Pow-6{UNIFORM}{SUM}",
    ),
}


def _ahead(measure: str, arm: str, other: str, results: Results) -> Floats:
    """1 for every federation in which one arm is more accurate than another, 0 for the others."""
    x, y = results.values(measure, arm).paired(results.values(measure, other))
    return (x > y).astype(float)


def _said(how: str, when: int) -> str:
    return f"{how}, BestLoss is ahead of Pow-6 in most federations at round {when}"


def _claims() -> tuple[Claim, ...]:
    """As printed; the others are readings of the same two statements."""
    first = next(iter(PAIRS))
    return tuple(
        Claim(
            _said(how, when),
            "Figures 4.14 and 4.19: ahead in the one federation",
            Own(
                f"the share of federations in which {arm} is more accurate than {other} at round "
                f"{when}",
                partial(_ahead, measure, arm, other),
                above=0.5,
            ),
            ours=how != first,
            reading_of=_said(first, when) if how != first else "",
        )
        for how, (arm, other) in PAIRS.items()
        for when, measure in TIMES.items()
    )


DIFFERENT_READINGS = Recipe(
    "thesis-readings",
    "Mean or summed losses, candidates by size or uniform: in how many federations BestLoss leads",
    PAPER,
    where="Figures 4.14 and 4.19, Algorithms 1 and 8",
    cells=(cell(ARMS),),
    scales=scales(),
    claims=_claims(),
    panels=(Curves("accuracy", smooth="best", title="best accuracy so far"),),
    shows="Best accuracy so far, K = 100, HD 0.9, d = 6, w = 3: BestLoss above Power-of-Choice.",
    notes=(
        *NOTES,
        "Losses are summed over the samples of a client; early copies of FedLab 1.3.0 added up the "
        "mean losses of mini-batches.",
    ),
    readings=readings("pixels", "losses", "candidates", "least"),
)
