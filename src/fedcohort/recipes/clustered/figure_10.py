"""Figure 10: the same with FedProx."""

from __future__ import annotations

from fedcohort.recipes.clustered import PAPER
from fedcohort.recipes.clustered._cifar import LOSS, NOTES, cell, scales
from fedcohort.reproduction import Claim, Curves, Every, Learned, Recipe, difference

MU = 0.1
ARMS = {
    "MD": f"md:m=10+fedprox:mu={MU}",
    "Algorithm 1": f"clustered-size:m=10+fedprox:mu={MU}",
    "Algorithm 2": f"clustered-similarity:m=10+fedprox:mu={MU}",
}

FIGURE_10 = Recipe(
    "clustered-fig10",
    "Clustered sampling with FedProx",
    PAPER,
    where="Figure 10",
    cells=(cell("alpha = 0.01, mu = 0.1", ARMS),),
    scales=scales(20),
    claims=(
        Claim(
            "with FedProx, too, clustered sampling learns faster than MD",
            "curves of the training loss below MD's",
            Learned(
                Every(
                    difference(LOSS, "MD", "Algorithm 1"),
                    difference(LOSS, "MD", "Algorithm 2"),
                ),
                "Algorithm 2",
            ),
        ),
    ),
    panels=(
        Curves("train_loss", title="training loss"),
        Curves("accuracy", title="test accuracy"),
    ),
    shows="Training loss with FedProx, mu = 0.1: Algorithms 1 and 2 below MD.",
    notes=NOTES,
)
