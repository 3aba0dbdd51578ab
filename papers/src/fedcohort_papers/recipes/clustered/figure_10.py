"""Figure 10: the same with FedProx."""

from __future__ import annotations

from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import MD, arms, of_both
from fedcohort_papers.recipes.clustered._cifar import CIFAR_READINGS, LOSS, NOTES, cell, scales
from fedcohort_papers.reproduction import Curves, Every, Learned, Recipe, difference

MU = 0.1
ARMS = arms(10, f"+fedprox:mu={MU}")

FIGURE_10 = Recipe(
    "clustered-fig10",
    "Clustered sampling with FedProx",
    PAPER,
    where="Figure 10",
    cells=(cell("alpha = 0.01, mu = 0.1", ARMS),),
    scales=scales(20),
    claims=(
        *of_both(
            "with FedProx, too, clustered sampling learns faster than MD",
            "curves of the training loss below MD's",
            lambda suffix: Learned(
                Every(*(difference(LOSS, MD, f"Algorithm {k}{suffix}") for k in (1, 2))),
                f"Algorithm 2{suffix}",
            ),
        ),
    ),
    panels=(
        Curves("train_loss", title="training loss"),
        Curves("accuracy", title="test accuracy"),
    ),
    shows="Training loss with FedProx, mu = 0.1: Algorithms 1 and 2 below MD.",
    readings=(
        *CIFAR_READINGS[:-1],
        f"{CIFAR_READINGS[-1]}; so is one of mu, 0.1 of {{0.001, 0.01, 0.1, 1}}",
    ),
    notes=NOTES,
)
