"""Figure 1, its second half: Algorithm 2 becomes target sampling once every client was seen."""

from __future__ import annotations

from dataclasses import replace

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import MD, ORACLE, READINGS, arms, of_both
from fedcohort_papers.reproduction import Alike, Bars, Cell, Curves, Recipe, Scale, difference

LEVEL, SPREAD = "accuracy:last=0.2", "spread:last=0.2"
"""Over the last fifth of the evaluations."""
ARMS = arms(10) | {ORACLE: "target:m=10"}

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
        *(
            replace(claim, kind="oracle")
            for claim in of_both(
                "once everybody was seen, Algorithm 2 is as good as target",
                "the curves coincide",
                lambda suffix: Alike(LEVEL, f"Algorithm 2{suffix}", ORACLE, within=0.005),
            )
        ),
        *of_both(
            "Algorithm 2 is steadier than MD",
            "a smooth curve beside a noisy one",
            lambda suffix: difference(SPREAD, MD, f"Algorithm 2{suffix}"),
        ),
        *of_both(
            "Algorithm 2 beats MD",
            "the curve of Algorithm 2 is above that of MD",
            lambda suffix: difference(LEVEL, f"Algorithm 2{suffix}", MD),
        ),
        *of_both(
            "Algorithm 1 beats MD",
            "the curve of Algorithm 1 is above that of MD",
            lambda suffix: difference("area", f"Algorithm 1{suffix}", MD),
        ),
        *of_both(
            "Algorithm 1 is steadier than MD",
            "Section 6: less variability at every iteration",
            lambda suffix: difference("jumps", MD, f"Algorithm 1{suffix}"),
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
    readings=tuple(READINGS[word] for word in ("ties", "rows", "unseen", "pixels")),
    notes=("Softmax for the paper's MLP.",),
)
