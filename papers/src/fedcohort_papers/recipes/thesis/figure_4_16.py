"""Figures 4.16 to 4.18, Tables 4.4 and 4.5: where clusters help less."""

from __future__ import annotations

import numpy as np

from fedcohort.server import Trace
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis import _federations as federations
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    NOTES,
    both,
    cell,
    clustered,
    for_both,
    readings,
    scales,
)
from fedcohort_papers.reproduction import (
    Alike,
    Bars,
    Claim,
    Close,
    Curves,
    Every,
    Recipe,
    difference,
)

STRATEGIES = {
    "AverageLoss": clustered("average-loss", 6, 3),
    "BestLoss": clustered("best-loss", 6, 3),
}
ARMS = {"Pow-6": "pow-d:m=3,d=6", **both(STRATEGIES)}
ALIKE, FEW = str(federations.ALIKE), str(federations.FEW)
MATCH = 0.03
"""Accuracies so close match."""
PRINTED = {
    FEW: {"Pow-6": 0.408, "AverageLoss": 0.423, "BestLoss": 0.275},
    ALIKE: {"Pow-6": 0.530, "AverageLoss": 0.626, "BestLoss": 0.545},
}
"""Means over the ten classes of Tables 4.4 and 4.5."""
NEAR = 0.05
"""Means of F1 so close match."""


def ever_chosen(trace: Trace) -> float:
    """How many clients took part at all."""
    chosen = [trace.cohort(number).clients for number in range(trace.rounds)]
    return float(len(np.unique(np.concatenate(chosen))))


def _claims(version: str) -> tuple[Claim, ...]:
    average, best = (f"{label}{version}" for label in STRATEGIES)
    return (
        Claim(
            "at HD 0.8 BestLoss matches Power-of-Choice",
            "Figure 4.16",
            Alike(BEST, (ALIKE, best), (ALIKE, "Pow-6"), MATCH),
        ),
        Claim(
            "with 30 clients BestLoss is worse",
            "Figure 4.17",
            difference(BEST, (FEW, "Pow-6"), (FEW, best)),
        ),
        Claim(
            "with 30 clients BestLoss ever chooses only 15",
            "Figure 4.18: 15 of 30 in 150 rounds",
            Close(ever_chosen, (FEW, best), 15, 3),
        ),
        Claim(
            "with 30 clients BestLoss has the lowest mean F1",
            "Table 4.4: 0.28 against 0.41 (Pow-6) and 0.42 (AverageLoss)",
            Every(*(difference("class-f1", (FEW, other), (FEW, best))
                    for other in ("Pow-6", average))),
        ),
        Claim(
            "at HD 0.8 the mean F1 of BestLoss matches that of Power-of-Choice",
            "Table 4.5: 0.55 against 0.53",
            Alike("class-f1", (ALIKE, best), (ALIKE, "Pow-6"), NEAR),
        ),
    )  # fmt: skip


FIGURE_4_16 = Recipe(
    "thesis-fig-4-16",
    "Clusters where labels differ less, and where clients are few",
    PAPER,
    where="Figures 4.16 to 4.18, Tables 4.4 and 4.5",
    cells=(cell(ARMS, federations.ALIKE), cell(ARMS, federations.FEW)),
    scales=scales({ALIKE: federations.ALIKE, FEW: federations.FEW}),
    claims=for_both(_claims),
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
    readings=readings("pixels", "losses", "least"),
)  # fmt: skip
