"""Figures 1.3 and 1.4: Power-of-Choice beside weighted and uniform random selection."""

from __future__ import annotations

from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    BEST_HALF,
    LOSS,
    NOTES,
    cell,
    readings,
    scales,
)
from fedcohort_papers.reproduction import Claim, Curves, Every, Recipe, difference

ARMS = {"Pow-6": "pow-d:m=3,d=6", "Rand": "md:m=3", "FedAvg": "fedavg:m=3,weights=equal"}
OTHERS = ("Rand", "FedAvg")

FIGURE_1_3 = Recipe(
    "thesis-fig-1-3",
    "Power-of-Choice beside weighted random selection and FedAvg",
    PAPER,
    where="Figures 1.3 and 1.4",
    cells=(cell(ARMS),),
    scales=scales(),
    claims=(
        Claim(
            "Pow-6 is more accurate than both",
            "curves, round 150",
            Every(*(difference(BEST, "Pow-6", other) for other in OTHERS)),
        ),
        Claim(
            "and has a lower loss",
            "curves, round 150",
            Every(*(difference(LOSS, other, "Pow-6") for other in OTHERS)),
        ),
        Claim(
            "and gets there sooner",
            "curves, round 70",
            Every(*(difference(BEST_HALF, "Pow-6", other) for other in OTHERS)),
        ),
    ),
    panels=(
        Curves("accuracy", smooth="best", title="best accuracy so far"),
        Curves("test_loss", smooth="best", title="lowest loss so far"),
    ),
    shows="Best accuracy and lowest loss so far over 150 rounds, m = 3: Pow-6 above Rand and "
    "FedAvg, and sooner.",
    notes=NOTES,
    readings=(
        *readings("pixels", "losses", "candidates"),
        "FedAvg: the mean of the three chosen models here, as FedLab averages; a mean weighted by "
        "their sizes is possible.",
    ),
)
