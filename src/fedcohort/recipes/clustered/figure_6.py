"""Figure 6: whether the measure of similarity matters for Algorithm 2."""

from __future__ import annotations

from fedcohort.recipes.clustered import PAPER
from fedcohort.recipes.clustered._cifar import LOSS, NOTES, ROLLING, cell, scales
from fedcohort.reproduction import Alike, Claim, Curves, Every, Learned, Recipe, difference

ARMS = {
    "MD": "md:m=10",
    "Algorithm 1": "clustered-size:m=10",
    "arccos": "clustered-similarity:m=10",
    "L2": "clustered-similarity:m=10,similarity=l2",
    "L1": "clustered-similarity:m=10,similarity=l1",
}
ALIKE = 0.05
"""Two curves are alike where their mean losses are so close; guessing has ln 10 = 2.3."""

FIGURE_6 = Recipe(
    "clustered-fig6",
    "Algorithm 2 with angles, L2 and L1 distances of updates",
    PAPER,
    where="Figure 6",
    cells=(cell("alpha = 0.01", ARMS),),
    scales=scales(25),
    claims=(
        Claim(
            "the three measures are alike",
            "curves coincide",
            Learned(
                Every(
                    Alike(LOSS, "arccos", "L2", ALIKE),
                    Alike(LOSS, "arccos", "L1", ALIKE),
                ),
                "arccos",
            ),
        ),
        Claim(
            "each learns faster than MD",
            "curves of the training loss below MD's",
            Learned(
                Every(*(difference(LOSS, "MD", name) for name in ("arccos", "L2", "L1"))), "arccos"
            ),
        ),
        Claim(
            "Algorithm 1 outperforms MD",
            "Appendix D.2; curves of the training loss",
            Learned(difference(LOSS, "MD", "Algorithm 1"), "Algorithm 1"),
        ),
    ),
    panels=(
        Curves("train_loss", smooth=3, title="training loss, mean of 3"),
        Curves("train_loss", title="training loss"),
        Curves("accuracy", title="test accuracy"),
    ),
    shows="Training loss with MD, Algorithm 1, and Algorithm 2 by arccos, L2 and L1, as a rolling "
    f"mean over {ROLLING} rounds and raw: the three measures coincide, below MD.",
    notes=NOTES,
)
