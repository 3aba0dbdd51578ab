"""Figures 4 and 5: the number of clusters and the compression rate."""

from __future__ import annotations

from fedcohort.recipes.hcsfed import PAPER
from fedcohort.recipes.hcsfed._arms import NOTES, SMALL, cifar, convex
from fedcohort.reproduction import (
    Alike,
    Bars,
    Claim,
    Curves,
    Every,
    Recipe,
    Scale,
    difference,
)

CLUSTERS = (5, 6, 7, 8, 9, 10)
RATES = (0.05, 0.1, 0.2, 0.4, 1.0)
ALIKE = 0.01
"""Accuracies a point apart or less are alike."""
MNIST, CIFAR = "MNIST", "CIFAR-10"


def arms(m: int) -> dict[str, str]:
    """One setting after the other."""
    by_h = {f"H = {h}": f"hcsfed:m={m},strata={h}" for h in CLUSTERS}
    by_r = {f"R = {r:.0%}": f"hcsfed:m={m},rate={r:g}" for r in RATES}
    return by_h | by_r


H = tuple(f"H = {h}" for h in CLUSTERS)
R = tuple(f"R = {r:.0%}" for r in RATES)

FIGURE_4 = Recipe(
    "hcsfed-fig4",
    "How HCSFed depends on the number of clusters and on the compression rate",
    PAPER,
    where="Figures 4 and 5",
    cells=(
        convex(MNIST, "mnist", arms(10)),
        cifar(CIFAR, 0.01, arms(10)),
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=8,
            only=(MNIST,),
            changed="MNIST only, 8 rounds; 40 clients of 100 samples; evaluated on 1,000 samples.",
            change={"problem": {"partition": SMALL}, "options": {"evaluate_on": 1000}},
        ),
        "standard": Scale(
            seeds=3,
            rounds=60,
            only=(MNIST,),
            changed="MNIST only, 60 rounds (the paper does not say how many), evaluated on 2,000 "
            "samples.",
            change={"options": {"evaluate_on": 2000}},
        ),
        "full": Scale(seeds=5),
    },
    claims=(
        Claim(
            "the number of clusters hardly matters",
            "Figure 4a: stable accuracy for H = 5 to 10",
            Every(*(Alike("best", (MNIST, each), (MNIST, H[-1]), ALIKE) for each in H[:-1])),
        ),
        Claim(
            "too low a compression rate is worse",
            "Figure 4b: 5 % against 10 %",
            difference("area", (MNIST, "R = 10%"), (MNIST, "R = 5%")),
        ),
        Claim(
            "no compression is worse",
            "Figure 4b: 100 % against 10 %",
            difference("area", (MNIST, "R = 10%"), (MNIST, "R = 100%")),
        ),
    ),
    panels=(
        Bars("best", of=[(MNIST, each) for each in (*H, *R)], xlabel="best accuracy"),
        Bars("area", of=[(MNIST, each) for each in (*H, *R)], xlabel="mean accuracy of all rounds"),
        Curves("accuracy", cell=MNIST, arms=H, title="number of clusters"),
        Curves("accuracy", cell=MNIST, arms=R, title="compression rate"),
    ),
    shows="Best accuracy and the rounds to it for H = 5 to 10 (about the same) and for R = 5, 10, "
    "20, 40, 100 % (best in between).",
    notes=(*NOTES, "Figure 6, the same on CIFAR-100, is not run: there is no such data set here."),
)
