"""Cohorts that look like the federation, with a CNN."""

from __future__ import annotations

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.beyond import PAPER
from fedcohort_papers.recipes.beyond._balanced import ARMS, DIVISIONS, HOW, SIZES
from fedcohort_papers.reproduction import Cell, Claim, Curves, Recipe, Scale, difference

LABELS = tuple(
    [f"{scheme}{how}" for scheme in ("md", "labels") for how in HOW]
    + ["similarity", "updates", "updates + guess"]
)

BALANCED_CNN = Recipe(
    "balanced-cnn",
    "Cohorts that look like the federation, with a CNN on Fashion-MNIST",
    PAPER,
    where="not tried by the prototype",
    cells=(
        Cell(
            SIZES,
            Problem("fashion-mnist", DIVISIONS[SIZES], model="cnn"),
            {label: ARMS[label] for label in LABELS},
            rounds=40,
            work=LocalWork(steps=20, batch=20, lr=0.05),
            options={"evaluate_on": 1000, "evaluate_every": 2},
        ),
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=2,
            changed="2 rounds of 2 steps instead of 40 of 20.",
            change={
                "work": LocalWork(steps=2, batch=20, lr=0.05),
                "options": {"evaluate_on": 100, "evaluate_every": 1},
            },
        ),
        "standard": Scale(partitions=3, changed="3 partitions with one seed each, not 5 x 5."),
        "full": Scale(seeds=5, partitions=5),
    },
    claims=(
        Claim(
            "by labels, balanced cohorts beat clustered ones",
            "not printed",
            difference("area", "labels", "similarity"),
            ours=True,
        ),
        Claim(
            "with guesses for those not seen yet they beat md with memory",
            "not printed",
            difference("area", "labels + guess", "md + memory"),
            ours=True,
        ),
    ),
    panels=(Curves(title=SIZES),),
)
