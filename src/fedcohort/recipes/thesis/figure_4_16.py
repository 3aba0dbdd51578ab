"""Figures 4.16 to 4.18, Tables 4.4 and 4.5: where clusters help less."""

from __future__ import annotations

import numpy as np

from fedcohort.recipes.thesis import PAPER
from fedcohort.recipes.thesis import _federations as federations
from fedcohort.recipes.thesis._federations import BEST, NOTES, cell, clustered, scales
from fedcohort.reproduction import Alike, Bars, Claim, Close, Curves, Every, Recipe, difference
from fedcohort.trace import Trace

ARMS = {
    "Pow-6": "pow-d:m=3,d=6",
    "AverageLoss": clustered("average-loss", 6, 3),
    "BestLoss": clustered("best-loss", 6, 3),
}
ALIKE, FEW = str(federations.ALIKE), str(federations.FEW)
MATCH = 0.03
"""Accuracies so close match."""
PRINTED = {
    FEW: {"Pow-6": 0.408, "AverageLoss": 0.423, "BestLoss": 0.275},
    ALIKE: {"Pow-6": 0.530, "AverageLoss": 0.626, "BestLoss": 0.545},
}
"""Means over the ten classes of Tables 4.4 and 4.5."""
NEAR = 0.1
"""Of a mean F1, that counts as the printed one."""


def ever_chosen(trace: Trace) -> float:
    """How many clients took part at all."""
    chosen = [trace.cohort(number).clients for number in range(trace.rounds)]
    return float(len(np.unique(np.concatenate(chosen))))


FIGURE_4_16 = Recipe(
    "thesis-fig-4-16",
    "Clusters where labels differ less, and where clients are few",
    PAPER,
    where="Figures 4.16 to 4.18, Tables 4.4 and 4.5",
    cells=(cell(ARMS, federations.ALIKE), cell(ARMS, federations.FEW)),
    scales=scales({ALIKE: federations.ALIKE, FEW: federations.FEW}),
    claims=(
        Claim(
            "at HD 0.8 BestLoss matches Power-of-Choice",
            "Figure 4.16",
            Alike(BEST, (ALIKE, "BestLoss"), (ALIKE, "Pow-6"), MATCH),
        ),
        Claim(
            "with 30 clients BestLoss is worse",
            "Figure 4.17",
            difference(BEST, (FEW, "Pow-6"), (FEW, "BestLoss")),
        ),
        Claim(
            "with 30 clients BestLoss ever chooses only 15",
            "Figure 4.18: 15 of 30 in 150 rounds",
            Close(ever_chosen, (FEW, "BestLoss"), 15, 3),
        ),
        *(
            Claim(
                f"the mean F1 over classes is as printed ({federation})",
                f"Table {table}: " + ", ".join(f"{a} {v}" for a, v in PRINTED[federation].items()),
                Every(
                    *(Close("class-f1", (federation, arm), value, NEAR)
                      for arm, value in PRINTED[federation].items())
                ),
            )
            for federation, table in ((FEW, "4.4"), (ALIKE, "4.5"))
        ),
    ),
    panels=(
        Curves("accuracy", cell=ALIKE, smooth="best", title=f"best accuracy so far, {ALIKE}"),
        Curves("accuracy", cell=FEW, smooth="best", title=f"best accuracy so far, {FEW}"),
        Bars(ever_chosen, cell=FEW, xlabel="clients ever chosen", title=FEW,
             printed={(FEW, "BestLoss"): 15}),
        Bars("class-f1", of=[(f, a) for f in (FEW, ALIKE) for a in ARMS], xlabel="mean F1",
             printed={(f, a): v for f, row in PRINTED.items() for a, v in row.items()}),
    ),
    shows="Best accuracy and lowest loss so far at HD 0.8, where BestLoss matches Power-of-Choice, "
    "and with 30 clients, where it is poor; there 15 of 30 clients are ever chosen. Tables: F1 of "
    "every class, whose means are marked.",
    notes=NOTES,
)  # fmt: skip
