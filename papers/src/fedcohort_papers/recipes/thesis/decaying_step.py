"""Equation (1.10): a step size that decays, and who is ahead with it."""

from __future__ import annotations

from dataclasses import replace

from fedcohort.training import LocalWork
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    BEST_HALF,
    CORRECTED,
    HALF,
    NOTES,
    WORK,
    cell,
    clustered,
    readings,
    scales,
)
from fedcohort_papers.reproduction import Claim, Curves, Ratio, Recipe, difference

BEST_LOSS = f"BestLoss{CORRECTED}"
ARMS = {
    "Rand": "md:m=3",
    "Pow-6": "pow-d:m=3,d=6",
    BEST_LOSS: clustered("best-loss", 6, 3),
}
DECAY = f"inverse:gamma={HALF}"
SCALES = scales()

DECAYING_STEP = Recipe(
    "thesis-decay",
    "The decaying step size of the convergence theorem: who is ahead",
    PAPER,
    where="Equation (1.10) and Theorem 1",
    cells=(replace(cell(ARMS), work=replace(WORK, schedule=DECAY)),),
    scales=SCALES
    | {
        "quick": replace(
            SCALES["quick"],
            change={
                **SCALES["quick"].change,
                "work": LocalWork(steps=5, batch=64, lr=WORK.lr, schedule=DECAY),
            },
        ),
    },
    claims=(
        Claim(
            "Power-of-Choice is sooner than weighted random selection",
            f"Theorem 1: O(1 / (T rho)); round {HALF}",
            difference(BEST_HALF, "Pow-6", "Rand"),
        ),
        Claim(
            "corrected: BestLoss is over 10 % more accurate than Power-of-Choice halfway",
            "not printed; Figure 4.19 has it with a step size that does not decay",
            Ratio(BEST_HALF, BEST_LOSS, "Pow-6", 1.1, partly=1.0),
            ours=True,
            kind="sound",
        ),
        Claim(
            "in the end weighted random selection, which has no bias, is ahead",
            "Theorem 1: a bias that does not vanish",
            difference(BEST, "Rand", "Pow-6"),
        ),
    ),
    panels=(
        Curves("accuracy", smooth="best", title="best accuracy so far"),
        Curves("test_loss", smooth="best", title="lowest test loss so far"),
    ),
    shows="Nothing is drawn with it: (1.10) is the step 1 / (mu (t + gamma)) of Theorem 1, by "
    "which biased selection is faster by a factor rho and keeps a bias that does not vanish.",
    notes=(
        f"The step is 0.005 in the first round and half of it after gamma = {HALF}: mu and L, from "
        "which the theorem takes both, are not known of an MLP.",
        *(note for note in NOTES if "(1.10)" not in note),
    ),
    readings=(
        *readings("pixels", "losses", "network"),
        f"Gamma and mu of (1.10), which the thesis does not print: the step halves in {HALF} "
        "rounds here; any other pace is possible.",
    ),
)
