"""Figure 1, one round at a time: MD and Algorithm 1 from the same models, with the same updates.

Whole runs differ by more than their coins; here only the cohort differs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from fedcohort._internal.random import stream
from fedcohort.designs import Rows
from fedcohort.schemes import as_scheme
from fedcohort.server import Selector, aggregator
from fedcohort.server._state import Setup
from fedcohort.simulation import Always, LocalWork, Problem
from fedcohort.simulation._engine import Simulation, federation_of
from fedcohort_papers.recipes.beyond._updates import all_updates
from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import MD, READINGS, arms, of_both
from fedcohort_papers.reproduction import COMPUTED, Columns, Computed, Contrast, Recipe, Scale

M = 10
LAWS = {label: word for label, word in arms(M).items() if "2" not in label}
DIVIDED = "one-class-per-client:n=100,per_client=500,shuffle=false"
WORK = LocalWork(steps=50, batch=50, lr=0.01, batches="fresh")
CHOSEN = "the measure, when whole runs had left it open and two other divisions favored Algorithm 1"


def _less(label: str) -> str:
    return f"training loss after a round, MD less {label}"


def compute(scale: Scale, seed: int) -> Computed:
    """The training loss after a round, from models of a run of MD, the mean over many cohorts."""
    task = Problem("mnist", DIVIDED, model="mlp:hidden=50", partition_seed=seed).task()
    rounds, cohorts = scale.numbers["rounds"], scale.numbers["cohorts"]
    seen, federation = task.subset(scale.numbers["evaluate_on"]), federation_of(task)
    laws = {
        label: cast(Rows, Selector(as_scheme(word), federation, seed=seed).design())
        for label, word in LAWS.items()
    }
    run = Simulation(
        task,
        Setup(as_scheme(LAWS[MD]), seed, aggregator=aggregator(None)),
        WORK,
        Always(),
        None,
    )
    losses: dict[str, list[float]] = {label: [] for label in laws}
    for round in range(max(rounds) + 1):
        if round in rounds:
            theta = run.state.theta
            updates = all_updates(task, WORK, theta, round, seed)
            for label, law in laws.items():
                rng = stream(seed, f"cohorts {label} {round}")
                drawn = [law.draw(rng) for _ in range(cohorts)]
                moved = [theta + each.weights @ updates[each.clients] for each in drawn]
                losses[label].append(float(seen.evaluate(np.array(moved)).train_loss.mean()))
        run.play()
    columns: dict[str, Any] = {"round": np.array(rounds, dtype=np.float64)}
    columns |= {label: np.array(found) for label, found in losses.items()}
    samples = {
        _less(label): float((columns[MD] - columns[label]).mean()) for label in laws if label != MD
    }
    return Computed(columns, samples)


ONE_ROUND = Recipe(
    "clustered-one-round",
    "Whether a round of Algorithm 1 ends lower than a round of MD from the same model",
    PAPER,
    where="Figure 1, single rounds",
    compute=compute,
    scales={
        "quick": Scale(
            seeds=3,
            numbers={"rounds": (2,), "cohorts": 20, "evaluate_on": 500},
            changed="After 2 rounds, 20 cohorts.",
        ),
        "standard": Scale(
            seeds=6, numbers={"rounds": (5, 20, 60), "cohorts": 150, "evaluate_on": 2000}
        ),
    },
    claims=tuple(
        replace(claim, exploratory=CHOSEN)
        for claim in of_both(
            "a round of Algorithm 1 ends with a lower training loss than one of MD",
            "first panel: the curve of Algorithm 1 is below MD's",
            lambda suffix: Contrast(COMPUTED, {_less(f"Algorithm 1{suffix}"): 1.0}),
        )
    ),
    panels=(Columns("round", {label: label for label in LAWS}, "round", "loss after it"),),
    shows="Training loss over 200 rounds: Algorithm 1 lies below MD.",
    readings=(
        READINGS["ties"],
        READINGS["rows"],
        "models: those after 5, 20 and 60 rounds of MD here; those of any other run are possible",
    ),
    notes=("Every seed divides the data anew. Losses are estimated on a sample of all data.",),
)
