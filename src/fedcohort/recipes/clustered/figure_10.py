"""Figure 10: the same with FedProx."""

from __future__ import annotations

from fedcohort.recipes.clustered import PAPER
from fedcohort.recipes.clustered._cifar import FEW, NOTES, cell, divided, shortened
from fedcohort.reproduction import Claim, Curves, Every, Recipe, Scale, difference

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
    scales={
        "quick": Scale(
            seeds=2,
            rounds=3,
            changed="3 rounds instead of 1,000; 20 clients of 20 to 60 samples, 3 steps of 10, "
            "evaluated on 200.",
            change={
                "work": shortened(3, batch=10),
                "problem": {"partition": divided(0.01, FEW)},
                "options": {"evaluate_on": 200, "evaluate_every": 1},
            },
        ),
        "standard": Scale(
            seeds=3,
            rounds=20,
            changed="20 rounds instead of 1,000, 20 local steps instead of 100; evaluated every "
            "5 rounds on 2,000 samples.",
            change={"work": shortened(20), "options": {"evaluate_every": 5, "evaluate_on": 2000}},
        ),
        "full": Scale(seeds=3, changed="3 seeds instead of 1."),
    },
    claims=(
        Claim(
            "with FedProx, too, clustered sampling learns better than MD",
            "curves above MD's",
            Every(
                difference("area", "Algorithm 1", "MD"),
                difference("area", "Algorithm 2", "MD"),
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
