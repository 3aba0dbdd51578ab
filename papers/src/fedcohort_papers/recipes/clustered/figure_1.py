"""Figure 1: MNIST, one digit per client, the MLP; MD, Algorithms 1 and 2, and target sampling."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import MD, ORACLE, READINGS, arms, of_both
from fedcohort_papers.reproduction import (
    Alike,
    Cell,
    Claim,
    Computed,
    Contrast,
    Curves,
    Every,
    Exact,
    Judge,
    Recipe,
    Scale,
    difference,
)

N, M, DIGITS = 100, 10, 10
DIVIDED = "one-class-per-client"
LAST = "accuracy:last=0.25"
"""Over the last quarter, when Algorithm 2 has seen everybody."""
ALIKE = 0.01
"""Two curves coincide where they are a point of accuracy apart or less."""
LOSS = "area:of=train_loss"
NEARLY_ALL = 9.0
"""Digits in a round, of ten."""
ARMS = arms(M) | {ORACLE: f"target:m={M}"}


def compute(scale: Scale, seed: int) -> Computed:
    """What needs no training: chances of 100 equal clients, exactly."""
    all_different = math.prod(Fraction(N - k, N) for k in range(M))
    digits = DIGITS * (1 - Fraction(DIGITS - 1, DIGITS) ** M)
    return Computed(
        samples={
            "MD: chance of ten different clients": float(all_different),
            "MD: expected digits in a cohort": float(digits),
        }
    )


def _digits(suffix: str) -> Judge:
    first, second = f"Algorithm 1{suffix}", f"Algorithm 2{suffix}"
    return Every(
        Exact("MD: expected digits in a cohort", 6.513, 5e-4),
        difference("classes", first, MD),
        difference("classes", second, first),
        Contrast("classes", {second: 1.0}, above=NEARLY_ALL),
    )


def _both_less(measure: str, suffix: str) -> Judge:
    """Both algorithms have less of a measure than MD."""
    return Every(*(difference(measure, MD, f"Algorithm {k}{suffix}") for k in (1, 2)))


FIGURE_1 = Recipe(
    "clustered-fig1",
    "One digit per client: MD, Algorithms 1 and 2 and target sampling",
    PAPER,
    where="Figure 1",
    cells=(
        Cell(
            "one digit per client",
            Problem(
                "mnist", f"{DIVIDED}:n=100,per_client=500,shuffle=false", model="mlp:hidden=50"
            ),
            ARMS,
            rounds=600,
            work=LocalWork(steps=50, batch=50, lr=0.01, batches="fresh"),
        ),
    ),
    compute=compute,
    scales={
        "quick": Scale(
            seeds=2,
            rounds=20,
            changed="20 rounds instead of 600; 40 clients of 100 samples, evaluated on 1,000.",
            change={
                "problem": {"partition": f"{DIVIDED}:n=40,per_client=100,shuffle=false"},
                "options": {"evaluate_on": 1000},
            },
        ),
        "standard": Scale(
            seeds=5,
            rounds=200,
            changed="The 200 rounds that are plotted instead of 600; evaluated every second one.",
            change={"options": {"evaluate_every": 2}},
        ),
        "full": Scale(seeds=5),
    },
    claims=(
        Claim(
            "MD chooses ten different clients with probability 63 %",
            "100!/(90! 100^10), Section 6",
            Exact("MD: chance of ten different clients", 0.62816, 5e-6),
            kind="theory",
        ),
        *of_both(
            "both algorithms represent more digits than MD in a round, Algorithm 2 nearly all",
            "classes per round, fourth panel; MD 6.5",
            _digits,
        ),
        *of_both(
            "Algorithm 1 learns better than MD",
            "its curve is above MD's",
            lambda suffix: difference("area", f"Algorithm 1{suffix}", MD),
        ),
        *of_both(
            "Algorithm 2 learns better than Algorithm 1 and MD",
            "its curve is above both",
            lambda suffix: Every(
                difference("area", f"Algorithm 2{suffix}", f"Algorithm 1{suffix}"),
                difference("area", f"Algorithm 2{suffix}", MD),
            ),
        ),
        *of_both(
            "both algorithms have a lower training loss than MD",
            "first panel: their curves are below MD's",
            partial(_both_less, LOSS),
        ),
        *of_both(
            "both algorithms converge with less variability than MD",
            "Section 6: less variability at every iteration; no numbers",
            partial(_both_less, "jumps"),
        ),
        *(
            replace(claim, kind="oracle")
            for claim in of_both(
                "Algorithm 2 becomes as good as target sampling",
                "the curves coincide after the first rounds",
                lambda suffix: Alike(LAST, f"Algorithm 2{suffix}", ORACLE, ALIKE),
            )
        ),
    ),
    panels=(
        Curves("train_loss", title="training loss", log=True),
        Curves("accuracy", title="test accuracy"),
        Curves("classes", smooth=20, title="classes in a round, mean of 20"),
        Curves("distinct", smooth=20, title="clients in a round, mean of 20"),
    ),
    shows="Training loss, accuracy, and the classes and clients of a round, over 200 rounds. "
    "Algorithm 1 lies above MD and Algorithm 2 above both; Algorithm 2 reaches target sampling, "
    "which knows the digits, and shows all ten digits in nearly every round.",
    readings=tuple(READINGS[word] for word in ("ties", "rows", "unseen", "pixels")),
    notes=("Clients are numbered digit by digit, as the authors store them.",),
)
