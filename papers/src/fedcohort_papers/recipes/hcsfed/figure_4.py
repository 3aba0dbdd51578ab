"""Figures 4 and 5: the number of clusters and the compression rate."""

from __future__ import annotations

from fedcohort_papers.recipes.hcsfed import PAPER
from fedcohort_papers.recipes.hcsfed._arms import (
    DIVIDED,
    DIVISION,
    NOTES,
    READINGS,
    SMALL,
    cifar,
    convex,
)
from fedcohort_papers.reproduction import (
    Alike,
    Bars,
    Claim,
    Curves,
    Every,
    Recipe,
    Scale,
    difference,
)

CLUSTERS = (5, 6, 7, 8, 9)
RATES = (0.05, 0.2, 0.4, 1.0)
BOTH = "H = 10, R = 10%"
"""The last of the numbers of clusters, and of the rates the one that others are held against."""
H = (*(f"H = {h}" for h in CLUSTERS), BOTH)
R = ("R = 5%", BOTH, *(f"R = {r:.0%}" for r in RATES[1:]))
ALIKE, ROUNDS_ALIKE = 0.01, 2
"""Accuracies a point apart or less are alike, and so are 2 rounds, a fifth of the 9 of Table 1."""
MNIST, SOUND, CIFAR = "MNIST", "MNIST, corrected", "CIFAR-10"
ROUNDS_TO = {
    MNIST: "rounds-to:target=0.8,window=5",
    SOUND: "rounds-to:target=0.8,window=5",
    CIFAR: "rounds-to:target=0.6,window=5",
}
"""The targets of Table 1 and Figure 3."""


def arms(m: int, version: str = ",version=printed") -> dict[str, str]:
    """One setting after the other."""
    by_h = {f"H = {h}": f"hcsfed:m={m},strata={h}{version}" for h in CLUSTERS}
    by_r = {f"R = {r:.0%}": f"hcsfed:m={m},strata=10,rate={r:g}{version}" for r in RATES}
    return by_h | {BOTH: f"hcsfed:m={m},strata=10,rate=0.1{version}"} | by_r


def _claims(cell: str, figure: str, kind: str = "printed") -> tuple[Claim, ...]:
    best, low, none = ((cell, each) for each in (BOTH, "R = 5%", "R = 100%"))
    others = [(cell, each) for each in H[:-1]]
    rounds = ROUNDS_TO[cell]
    return (
        Claim(
            f"{cell}: the number of clusters hardly matters for the accuracy",
            f"Figure {figure}a: stable best accuracy for H = 5 to 10",
            Every(*(Alike("best", each, best, ALIKE) for each in others)),
            kind=kind,
        ),
        Claim(
            f"{cell}: nor for the speed",
            f"Figure {figure}a: similar convergence speeds",
            Every(*(Alike(rounds, each, best, ROUNDS_ALIKE) for each in others)),
            kind=kind,
        ),
        Claim(
            f"{cell}: with too low a compression rate it takes longer",
            f"Figure {figure}b: no good learning efficiency; 5 % against 10 %",
            difference(rounds, low, best),
            kind=kind,
        ),
        Claim(
            f"{cell}: without compression it takes longer and ends lower",
            f"Figure {figure}b: both speed and accuracy not satisfactory; 100 % against 10 %",
            Every(difference(rounds, none, best), difference("best", best, none)),
            kind=kind,
        ),
    )


FIGURE_4 = Recipe(
    "hcsfed-fig4",
    "How HCSFed depends on the number of clusters and on the compression rate",
    PAPER,
    where="Figures 4 and 5",
    cells=(
        convex(MNIST, "mnist", arms(10)),
        convex(SOUND, "mnist", arms(10, version="")),
        cifar(CIFAR, 0.01, arms(10)),
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=8,
            only=(MNIST, SOUND),
            changed="MNIST only, 8 rounds; 40 clients of 100 samples; evaluated on 1,000 samples.",
            change={"problem": {"partition": SMALL}, "options": {"evaluate_on": 1000}},
        ),
        "standard": Scale(
            seeds=3,
            rounds=60,
            only=(SOUND,),
            changed="MNIST and the corrected scheme only, 60 rounds (the paper does not say how "
            "many), evaluated on 2,000 samples.",
            change={"options": {"evaluate_on": 2000}},
        ),
        "full": Scale(seeds=5),
    },
    claims=(*_claims(MNIST, "4"), *_claims(CIFAR, "5"), *_claims(SOUND, "4", kind="sound")),
    panels=(
        *(
            Bars(which, of=[(cell, each) for each in arms(10)], title=cell, xlabel=label)
            for cell in (MNIST, SOUND, CIFAR)
            for which, label in (
                ("best", "best accuracy"),
                (ROUNDS_TO[cell], f"rounds until {60 if cell == CIFAR else 80} % is held"),
            )
        ),
        *(
            Curves("accuracy", cell=cell, arms=of, title=f"{cell}: {title}")
            for cell in (MNIST, SOUND)
            for of, title in ((H, "number of clusters"), (R, "compression rate"))
        ),
    ),
    shows="Best accuracy and the rounds to it for H = 5 to 10 (about the same) and for R = 5, 10, "
    "20, 40, 100 % (best in between).",
    notes=(
        DIVIDED,
        *NOTES,
        "Numbers of clusters are tried with R = 10 %, rates with H = 10; the paper does not say.",
        "The paper counts rounds to the best accuracy and does not say how many it ran; while "
        "accuracy still rises, that is the last round. Here rounds are counted to the targets of "
        "Table 1 and Figure 3.",
        "Figure 6, the same on CIFAR-100, is not run: there is no such data set here.",
    ),
    readings=(*READINGS, DIVISION),
)
