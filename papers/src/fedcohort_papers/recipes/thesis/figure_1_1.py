"""Figures 1.1 and 1.2: Power-of-Choice with m = 3, speed against bias."""

from __future__ import annotations

from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    HALF,
    NOTES,
    PROFILE,
    SELDOM,
    SELDOM_SAID,
    cell,
    readings,
    scales,
)
from fedcohort_papers.reproduction import (
    Alike,
    Claim,
    Contrast,
    Curves,
    Every,
    Recipe,
    Scale,
    difference,
)

CANDIDATES = (4, 6, 7, 10, 50, 100)
OTHERS = (4, 10, 50, 100)
MATCH = 0.03
"""Accuracies so close are more or less the same."""
HALVES = {"d=6": 0.5, "d=10": 0.5, "d=50": -0.5, "d=100": -0.5}

FIGURE_1_1 = Recipe(
    "thesis-fig-1-1",
    "Power-of-Choice with m = 3: speed and bias for six numbers of candidates",
    PAPER,
    where="Figures 1.1 and 1.2",
    cells=(cell({f"d={d}": f"pow-d:m=3,d={d}" for d in CANDIDATES}),),
    scales=scales() | {"standard": Scale(seeds=10, changed=SELDOM_SAID, change=SELDOM)},
    claims=(
        Claim(
            f"from d = 4 to 6 it gets better (round {HALF})",
            "higher accuracy",
            difference(f"best:round={HALF}", "d=6", "d=4"),
        ),
        Claim(
            "d = 6 and d = 7 end with more or less the same accuracy",
            "Section 1.4: more or less the same results",
            Alike(BEST, "d=6", "d=7", MATCH),
        ),
        Claim(
            "beyond d = 10 it stops improving: 50 and 100 end below 6 and 10",
            "lower accuracy",
            Contrast(BEST, HALVES),
        ),
        Claim(
            "d = 6 and 7 are best for m = 3",
            "their curves end above those of the others",
            Every(*(Contrast(BEST, {"d=6": 0.5, "d=7": 0.5, f"d={d}": -1}) for d in OTHERS)),
        ),
        Claim(
            "bias: with many candidates more classes are never recognised",
            "Section 1.4: more biased results, clear with d = 50 and 100; the measure is ours",
            difference("lost-classes:below=0.05", "d=100", "d=6"),
        ),
    ),
    panels=(
        Curves("accuracy", smooth="best", title="best accuracy so far"),
        Curves("test_loss", smooth="best", title="lowest test loss so far"),
        PROFILE,
    ),
    shows="Running best of accuracy and loss over 150 rounds for several d: more "
    "candidates speed up the first rounds; d = 6 or 7 is best for m = 3, and beyond d = 10 it "
    "stops improving.",
    notes=NOTES,
    readings=readings("pixels", "losses", "candidates", "network"),
)
