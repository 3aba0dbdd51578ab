"""Figures 4.10 and 4.11: OPTICS or DBSCAN."""

from __future__ import annotations

from functools import partial

from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    LOSS,
    NOTES,
    both,
    cell,
    clustered,
    for_both,
    readings,
    scales,
)
from fedcohort_papers.reproduction import Claim, Contrast, Curves, Own, Recipe, Results
from fedcohort_papers.reproduction.estimate import Estimate
from fedcohort_papers.reproduction.findings import combined

D, W = 10, 5
STRATEGIES = ("best-loss", "average-loss", "data-loss")
ARMS = {
    f"{name}, {method.upper()}": f"{clustered(name, D, W)},clusters={method}"
    for name in STRATEGIES
    for method in ("optics", "dbscan")
}
MATCH = 0.03
"""Accuracies so close are comparable."""


def _less(first: str, second: str, version: str) -> dict[str, float]:
    """The mean of the strategies over one kind of clusters, less that over the other."""
    signs = {first: 1, second: -1}
    return {
        f"{name}, {method}{version}": sign / len(STRATEGIES)
        for method, sign in signs.items()
        for name in STRATEGIES
    }


def _gap(version: str, results: Results) -> Estimate:
    weights = _less("OPTICS", "DBSCAN", version)
    return combined([results.values(BEST, arm) for arm in weights], list(weights.values()))


def _claims(version: str) -> tuple[Claim, ...]:
    ahead = _less("OPTICS", "DBSCAN", version)
    return (
        Claim(
            "OPTICS and DBSCAN are comparable in accuracy",
            "Section 4.2: these results are comparable",
            Own(
                f"best: OPTICS − DBSCAN, mean of three{version},",
                partial(_gap, version),
                within=MATCH,
            ),
        ),
        Claim(
            "OPTICS is slightly more accurate",
            "curves: comparable, with a slight improvement",
            Contrast(BEST, ahead),
        ),
        Claim(
            "and has a slightly lower loss",
            "curves: comparable, with a slight improvement",
            Contrast(LOSS, _less("DBSCAN", "OPTICS", version)),
        ),
    )


FIGURE_4_10 = Recipe(
    "thesis-fig-4-10",
    "Strategies over clusters made by OPTICS and by DBSCAN",
    PAPER,
    where="Figures 4.10 and 4.11",
    cells=(cell(both(ARMS)),),
    scales=scales(),
    claims=for_both(_claims),
    panels=(
        Curves("accuracy", smooth="best", title="best accuracy so far"),
        Curves("test_loss", smooth="best", title="lowest loss so far"),
    ),
    shows="Best accuracy and lowest loss so far for the strategies over OPTICS and over DBSCAN "
    "clusters, d = 10, w = 5: about the same, OPTICS slightly ahead.",
    notes=NOTES,
    readings=readings("pixels", "losses", "data", "noise"),
)
