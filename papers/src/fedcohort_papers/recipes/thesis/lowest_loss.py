"""Section 3.3: Best-Loss turned round, towards the clients with the lowest loss."""

from __future__ import annotations

from fedcohort.schemes.label_clusters import BestLoss
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    CORRECTED,
    LOSS,
    NOTES,
    cell,
    readings,
    scales,
)
from fedcohort_papers.recipes.thesis._lowest_loss import LowestLoss
from fedcohort_papers.reproduction import Bars, Claim, Curves, Recipe, difference

HIGHEST, LOWEST = f"BestLoss{CORRECTED}", f"LowestLoss{CORRECTED}"

LOWEST_LOSS = Recipe(
    "thesis-lowest-loss",
    "Best-Loss towards the highest loss, and towards the lowest",
    PAPER,
    where="Section 3.3.2",
    cells=(cell({HIGHEST: BestLoss(m=3, d=6), LOWEST: LowestLoss(m=3, d=6)}),),
    scales=scales(),
    claims=(
        Claim(
            "those with the highest loss teach more than those with the lowest",
            "left to future research; best accuracy in 150 rounds",
            difference(BEST, HIGHEST, LOWEST),
            ours=True,
            kind="sound",
        ),
        Claim(
            "and leave a lower loss",
            "left to future research; lowest test loss in 150 rounds",
            difference(LOSS, LOWEST, HIGHEST),
            ours=True,
            kind="sound",
        ),
        Claim(
            "the lowest loss leaves more classes unknown",
            "left to future research; classes with F1 below 0.05",
            difference("lost-classes:below=0.05", LOWEST, HIGHEST),
            ours=True,
            kind="sound",
        ),
    ),
    panels=(
        Curves("accuracy", smooth="best", title="best accuracy so far"),
        Bars("lost-classes:below=0.05", xlabel="classes with F1 below 0.05"),
    ),
    shows="Nothing is printed: the name Best-Loss is explained by the possibility to turn the "
    "selection towards clients with the lowest loss, which is left to future research.",
    notes=NOTES,
    readings=readings("pixels", "losses"),
)
