"""Theorem 2: the convergence bound beside runs of quadratic clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort._internal.random import stream
from fedcohort._internal.types import Array
from fedcohort.theory.simulated import bound_beside_runs
from fedcohort.training import LocalWork, Quadratic
from fedcohort_papers.recipes.impact import PAPER
from fedcohort_papers.reproduction import (
    COMPUTED,
    Claim,
    Columns,
    Computed,
    Contrast,
    Every,
    Holds,
    Judge,
    Recipe,
    Scale,
)

N, M, D = 10, 5, 20
SCHEMES = ("md", "uniform")
WORK = LocalWork(steps=5, lr=0.002, batch=None)
CASES = {"equal": np.full(N, 1 / N), "unequal": np.array([0.55] + [0.05] * (N - 1))}
"""Importances: all alike, or one client that counts more than the others together."""


AHEAD = {"expected": "in the mean of runs", "bound": "in the bound"}
"""Where one scheme is ahead of the other."""


def _gap(case: str, what: str) -> str:
    return f"{case}: uniform less MD, {AHEAD[what]}, after the last round"


def _ahead(case: str, sign: float) -> Judge:
    """MD has the smaller gradients (sign 1), or uniform sampling (-1), over random problems."""
    return Every(*(Contrast(COMPUTED, {_gap(case, what): sign}) for what in AHEAD))


def compute(scale: Scale, seed: int) -> Computed:
    """Bound, exact mean and runs, for both schemes and importances."""
    rounds, runs = scale.numbers["rounds"], range(scale.numbers["runs"])
    minima = stream(seed, "minima").uniform(-1, 1, (N, D))
    columns: dict[str, Array] = {"round": np.arange(1.0, rounds + 1)}
    samples: dict[str, Any] = {}
    for case, importance in CASES.items():
        task = Quadratic(minima, importance=importance)
        for name in SCHEMES:
            found = bound_beside_runs(task, f"{name}:m={M}", WORK, rounds, seeds=runs)
            curves = found.columns()
            for what in ("bound", "measured", "expected"):
                columns[f"{case} {name} {what}"] = curves[what]
            samples[f"{case} {name}: bound above the exact mean"] = bool(
                found.details.valid and np.all(curves["expected"] <= curves["bound"])
            )
            samples[f"{case} {name}: bound over mean"] = (
                curves["bound"][-1] / curves["expected"][-1]
            )
        for what in AHEAD:
            md, uniform = (columns[f"{case} {name} {what}"][-1] for name in SCHEMES)
            samples[_gap(case, what)] = float(uniform - md)
    return Computed(columns, samples)


THEOREM_2 = Recipe(
    "impact-theorem2",
    "The convergence bound beside runs, MD and uniform sampling",
    PAPER,
    where="Theorem 2",
    compute=compute,
    scales={
        "quick": Scale(seeds=3, numbers={"rounds": 100, "runs": 3}, changed="100 rounds."),
        "standard": Scale(seeds=5, numbers={"rounds": 500, "runs": 5}),
        "full": Scale(seeds=20, numbers={"rounds": 1000, "runs": 20}),
    },
    claims=(
        *(
            Claim(
                f"the bound holds ({case} importances, {name})",
                "Theorem 2",
                Holds(
                    f"{case} {name}: bound above the exact mean",
                    "the exact mean of all runs lies below it in every round",
                    f"{case} {name}: bound over mean",
                ),
                kind="theory",
            )
            for case in CASES
            for name in SCHEMES
        ),
        Claim(
            "with equal importances uniform sampling is ahead in runs and in the bound",
            "Section 3: the covariance parameter",
            _ahead("equal", -1.0),
            kind="theory",
        ),
        Claim(
            "with unequal importances MD is ahead in runs and in the bound",
            "Section 3: the variance of the sum of weights",
            _ahead("unequal", 1.0),
            kind="theory",
        ),
    ),
    panels=tuple(
        Columns(
            "round",
            {f"{case} {name} {what}": f"{name}, {what}"
             for name in SCHEMES for what in ("bound", "expected", "measured")},
            "round", "mean squared gradient so far", title=f"{case} importances", log="y",
        )
        for case in CASES
    ),
    shows="A theorem; the paper draws no bound.",
    readings=(
        "the O of (10): sound constants here; those of the proof are too small",
        "unequal importances: one client with 0.55, nine with 0.05 here; any others are possible",
    ),
    notes=(
        "Quadratic clients, whose constants are known; sound constants instead of the printed "
        "ones. Theorem 2 bounds the mean of ||grad L||^2 over rounds.",
    ),
)  # fmt: skip
