"""Figures 4.10 and 4.11: OPTICS or DBSCAN."""

from __future__ import annotations

from fedcohort.recipes.thesis import PAPER
from fedcohort.recipes.thesis._federations import BEST, LOSS, NOTES, cell, clustered, scales
from fedcohort.reproduction import Claim, Contrast, Curves, Recipe

D, W = 10, 5
STRATEGIES = ("best-loss", "average-loss", "data-loss")
ARMS = {
    f"{name}, {method.upper()}": f"{clustered(name, D, W)},clusters={method}"
    for name in STRATEGIES
    for method in ("optics", "dbscan")
}
MEAN = 1 / len(STRATEGIES)
OPTICS = {f"{name}, OPTICS": MEAN for name in STRATEGIES}
DBSCAN = {f"{name}, DBSCAN": MEAN for name in STRATEGIES}


def _less(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    return first | {name: -weight for name, weight in second.items()}


FIGURE_4_10 = Recipe(
    "thesis-fig-4-10",
    "Strategies over clusters made by OPTICS and by DBSCAN",
    PAPER,
    where="Figures 4.10 and 4.11",
    cells=(cell(ARMS),),
    scales=scales(),
    claims=(
        Claim(
            "OPTICS is slightly more accurate",
            "curves: comparable, with a slight improvement",
            Contrast(BEST, _less(OPTICS, DBSCAN)),
        ),
        Claim(
            "and has a slightly lower loss",
            "curves: comparable, with a slight improvement",
            Contrast(LOSS, _less(DBSCAN, OPTICS)),
        ),
    ),
    panels=(
        Curves("accuracy", smooth="best", title="best accuracy so far"),
        Curves("test_loss", smooth="best", title="lowest loss so far"),
    ),
    shows="Best accuracy and lowest loss so far for the strategies over OPTICS and over DBSCAN "
    "clusters, d = 10, w = 5: about the same, OPTICS slightly ahead.",
    notes=NOTES,
)
