"""Figure 6: whether the measure of similarity matters for Algorithm 2."""

from __future__ import annotations

from fedcohort.recipes.clustered import PAPER
from fedcohort.recipes.clustered._cifar import NOTES, ROLLING, cell, scales
from fedcohort.reproduction import Alike, Claim, Curves, Every, Recipe, difference

ARMS = {
    "MD": "md:m=10",
    "arccos": "clustered-similarity:m=10",
    "L2": "clustered-similarity:m=10,similarity=l2",
    "L1": "clustered-similarity:m=10,similarity=l1",
}
ALIKE = 0.02
"""Two curves are alike where their mean accuracies are two points apart or less."""

FIGURE_6 = Recipe(
    "clustered-fig6",
    "Algorithm 2 with angles, L2 and L1 distances of updates",
    PAPER,
    where="Figure 6",
    cells=(cell("alpha = 0.01", ARMS),),
    scales=scales(30),
    claims=(
        Claim(
            "the three measures are alike",
            "curves coincide",
            Every(
                Alike("area", "arccos", "L2", ALIKE),
                Alike("area", "arccos", "L1", ALIKE),
            ),
        ),
        Claim(
            "each learns better than MD",
            "curves above MD's",
            Every(*(difference("area", name, "MD") for name in ("arccos", "L2", "L1"))),
        ),
    ),
    panels=(
        Curves("train_loss", smooth=3, title="training loss, mean of 3"),
        Curves("train_loss", title="training loss"),
        Curves("accuracy", title="test accuracy"),
    ),
    shows=f"Training loss with MD and with Algorithm 2 by arccos, L2 and L1, as a rolling mean "
    f"over {ROLLING} rounds and raw: the three measures coincide, below MD.",
    notes=NOTES,
)
