"""Figure 6: whether the measure of similarity matters for Algorithm 2."""

from __future__ import annotations

from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import CORRECTED, MD, arms, of_both
from fedcohort_papers.recipes.clustered._cifar import (
    CIFAR_READINGS,
    LOSS,
    NOTES,
    ROLLING,
    cell,
    scales,
)
from fedcohort_papers.reproduction import Alike, Curves, Every, Learned, Recipe, difference

MEASURES = ("arccos", "L2", "L1")
ARMS = {label: word for label, word in arms(10).items() if "2" not in label} | {
    f"{measure}{suffix}": f"clustered-similarity:m=10,similarity={measure.lower()}{version}"
    for suffix, version in (("", ",version=printed"), (CORRECTED, ""))
    for measure in MEASURES
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
        *of_both(
            "the three measures are alike",
            "curves coincide",
            lambda suffix: Learned(
                Every(
                    *(Alike(LOSS, f"arccos{suffix}", f"{other}{suffix}", ALIKE)
                      for other in ("L2", "L1"))
                ),
                f"arccos{suffix}",
            ),
        ),
        *of_both(
            "each learns faster than MD",
            "curves of the training loss below MD's",
            lambda suffix: Learned(
                Every(*(difference(LOSS, MD, f"{name}{suffix}") for name in MEASURES)),
                f"arccos{suffix}",
            ),
        ),
        *of_both(
            "Algorithm 1 outperforms MD",
            "Appendix D.2; curves of the training loss",
            lambda suffix: Learned(
                difference(LOSS, MD, f"Algorithm 1{suffix}"), f"Algorithm 1{suffix}"
            ),
        ),
    ),
    panels=(
        Curves("train_loss", smooth=3, title="training loss, mean of 3"),
        Curves("train_loss", title="training loss"),
        Curves("accuracy", title="test accuracy"),
    ),
    shows="Training loss with MD, Algorithm 1, and Algorithm 2 by arccos, L2 and L1, as a rolling "
    f"mean over {ROLLING} rounds and raw: the three measures coincide, below MD.",
    readings=CIFAR_READINGS,
    notes=NOTES,
)  # fmt: skip
