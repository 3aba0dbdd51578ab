"""Figure 1, its second half: Algorithm 2 becomes target sampling once every client was seen."""

from __future__ import annotations

from fedcohort.recipes.clustered import PAPER
from fedcohort.reproduction import (
    Alike,
    Bars,
    Cell,
    Claim,
    Curves,
    Ratio,
    Recipe,
    Scale,
    difference,
)
from fedcohort.simulation import LocalWork
from fedcohort.simulation.problem import Problem

LAST = 0.2
"""The share of evaluations at the end over which accuracy and its spread are taken."""
ARMS = ("md:m=10", "clustered-similarity:m=10", "target:m=10")

BECOMES_TARGET = Recipe(
    "clustered-similarity",
    "Algorithm 2 becomes target sampling once every client has been seen",
    PAPER,
    where="Figure 1, with softmax",
    cells=(
        Cell(
            "one class per client",
            Problem("mnist", "one-class-per-client:n=100,per_client=500", model="softmax"),
            ARMS,
            rounds=200,
            work=LocalWork(steps=50, batch=50, lr=0.01, batches="fresh"),
        ),
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=30,
            changed="30 rounds instead of 200; 40 clients of 100 samples, evaluated on 1,000.",
            change={
                "problem": {"partition": "one-class-per-client:n=40,per_client=100"},
                "options": {"evaluate_on": 1000},
            },
        ),
        "standard": Scale(seeds=5, rounds=150, changed="150 rounds instead of 200."),
        "full": Scale(seeds=5),
    },
    claims=(
        Claim(
            "once everybody was seen, Algorithm 2 is as good as target",
            "the curves coincide",
            Alike(f"accuracy:last={LAST}", "clustered-similarity", "target", within=0.005),
        ),
        Claim(
            "and as steady: a fifth of the spread of MD, or less",
            "a smooth curve beside a noisy one",
            Ratio(f"spread:last={LAST}", "md", "clustered-similarity", at_least=5, partly=1),
        ),
        Claim(
            "it beats MD",
            "the curve of Algorithm 2 is above that of MD",
            difference(f"accuracy:last={LAST}", "clustered-similarity", "md"),
        ),
    ),
    panels=(
        Curves("accuracy", title="test accuracy"),
        Curves("classes", title="classes per round"),
        Bars("all-seen", xlabel="rounds until everybody was seen"),
    ),
    shows="Training loss and accuracy over 200 rounds, m = 10 of 100 clients with one digit each. "
    "Algorithm 2 lies on target sampling after the first rounds, above MD, and is as smooth; the "
    "number of classes among the clients of a round rises to ten.",
    notes=("Softmax for the paper's MLP.",),
)
