"""Figures 3.1 and 3.2: a static selection over clusters beside Power-of-Choice."""

from __future__ import annotations

from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    LOSS,
    NOTES,
    cell,
    clustered,
    readings,
    scales,
)
from fedcohort_papers.reproduction import Claim, Curves, Every, Recipe, difference

D, W = 10, 5
STATIC = {
    "uniform-oriented": clustered("static-uniform", D, W),
    "data-oriented": clustered("static-data", D, W),
    "client-oriented": clustered("static-client", D, W),
}

FIGURE_3_1 = Recipe(
    "thesis-fig-3-1",
    "Choosing from clusters by size alone beside Power-of-Choice",
    PAPER,
    where="Figures 3.1 and 3.2",
    cells=(cell({"Pow-10": f"pow-d:m={W},d={D}", **STATIC}),),
    scales=scales(),
    claims=(
        Claim(
            "the data-oriented static strategy cannot match Power-of-Choice",
            "curves, d = 10, m = 5",
            Every(
                difference(BEST, "Pow-10", "data-oriented"),
                difference(LOSS, "data-oriented", "Pow-10"),
            ),
        ),
        Claim(
            "of the static strategies the data-oriented one is best",
            "Section 3.3.1",
            Every(
                difference(BEST, "data-oriented", "uniform-oriented"),
                difference(BEST, "data-oriented", "client-oriented"),
            ),
        ),
    ),
    panels=(
        Curves("accuracy", smooth="best", title="best accuracy so far"),
        Curves("test_loss", smooth="best", title="lowest loss so far"),
    ),
    shows="Best accuracy and lowest loss so far over 150 rounds, d = 10, m = 5: the data-oriented "
    "strategy stays below Power-of-Choice.",
    notes=NOTES,
    readings=(
        *readings("pixels", "losses", "network"),
        "Clusters with fewer clients than candidates: filled from outside here, as in the adaptive "
        "strategies; fewer candidates are possible.",
    ),
)
