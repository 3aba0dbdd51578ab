"""Figure 3: rounds to 60 % with networks."""

from __future__ import annotations

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.hcsfed import PAPER
from fedcohort_papers.recipes.hcsfed._arms import (
    CORRECTED,
    DIVIDED,
    DIVISION,
    NOTES,
    ONE_CLASS,
    READINGS,
    SMALL,
    cifar,
    methods,
)
from fedcohort_papers.reproduction import (
    Bars,
    Cell,
    Claim,
    Curves,
    Every,
    Judge,
    Recipe,
    Scale,
    difference,
)

ROUNDS_TO = "rounds-to:target=0.6,window=5"
ARMS = methods(10, ifca=True)
OTHERS = ("random", "SCAFFOLD", "importance", "cluster", "IFCA")
MLP, FASHION = "MNIST, MLP", "FMNIST, CNN"
CIFAR = {f"CIFAR-10, alpha = {alpha:g}": alpha for alpha in (0.01, 0.001)}
NETWORKS = (FASHION, *CIFAR)
SMALLER = methods(4, ifca=True)


def _first(cell: str, arm: str = "HCSFed", others: tuple[str, ...] = OTHERS) -> Judge:
    return Every(*(difference(ROUNDS_TO, (cell, other), (cell, arm)) for other in others))


FIGURE_3 = Recipe(
    "hcsfed-fig3",
    "Networks: rounds to 60 % for random, SCAFFOLD, IFCA, importance, cluster and HCSFed",
    PAPER,
    where="Figure 3",
    cells=(
        Cell(MLP, Problem("mnist", ONE_CLASS, model="mlp:hidden=50"), ARMS, rounds=200,
             work=LocalWork(steps=50, batch=50, lr=0.01)),
        Cell(FASHION, Problem("fashion-mnist", ONE_CLASS, model="cnn"), ARMS, rounds=200,
             work=LocalWork(steps=50, batch=50, lr=0.01), options={"evaluate_every": 2}),
        *(cifar(label, alpha, ARMS) for label, alpha in CIFAR.items()),
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=12,
            only=(MLP,),
            changed="MNIST only, 12 rounds; 40 clients of 100 samples, 4 a round; evaluated on "
            "1,000 samples.",
            change={"problem": {"partition": SMALL}, "arms": SMALLER,
                    "options": {"evaluate_on": 1000}},
        ),
        "standard": Scale(
            seeds=3,
            rounds=100,
            only=(MLP,),
            changed="MNIST only: importance sampling and HCSFed ask all 100 clients to train in "
            "every round, which takes hours with a CNN; 100 rounds, evaluated on 2,000 samples.",
            change={"options": {"evaluate_on": 2000}},
        ),
        "full": Scale(seeds=5),
    },
    claims=(
        Claim(
            "HCSFed needs the fewest rounds to 60 %",
            "bars; no numbers",
            _first(MLP),
        ),
        Claim(
            "and with a CNN on Fashion-MNIST and CIFAR-10",
            "bars for alpha = 0.01 and 0.001; no numbers",
            Every(*map(_first, NETWORKS)),
        ),
        Claim(
            "corrected, it needs fewer rounds than random sampling, SCAFFOLD and IFCA",
            "bars; no numbers",
            _first(MLP, CORRECTED, ("random", "SCAFFOLD", "IFCA")),
            kind="sound",
        ),
        Claim(
            "corrected, it needs fewer rounds than importance and cluster sampling",
            "bars; no numbers",
            _first(MLP, CORRECTED, ("importance", "cluster")),
            kind="sound",
        ),
    ),
    panels=(
        Bars(ROUNDS_TO, cell=MLP, xlabel="rounds until 60 % is held", title=MLP),
        Curves("accuracy", cell=MLP, title="test accuracy"),
        *(Bars(ROUNDS_TO, cell=cell, xlabel="rounds until 60 % is held", title=cell)
          for cell in NETWORKS),
    ),
    shows="Bars of the rounds to 60 % on MNIST, Fashion-MNIST and CIFAR-10 (alpha = 0.01, 0.001), "
    "q = 0.1: HCSFed lowest everywhere.",
    notes=(DIVIDED, *NOTES, "IFCA has two models; the paper does not say how many it had."),
    readings=(*READINGS, DIVISION),
)  # fmt: skip
