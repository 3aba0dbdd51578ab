"""Theorems 1 and 2: the rate of MD and of clustered sampling, as printed and corrected."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from fedcohort.core.shares import Shares
from fedcohort.core.types import Array
from fedcohort.designs import Rows
from fedcohort.recipes.clustered import PAPER
from fedcohort.reproduction import Claim, Columns, Computed, Holds, Recipe, Scale
from fedcohort.theory import Training, clustered_rate, expected_gradients, printed_rate

MINIMA = np.array([[-1.0], [1.0]])
"""Two clients that want opposite things; m = 1."""


def compute(scale: Scale, seed: int) -> Computed:
    """E||grad L||^2 averaged over T = N^5 rounds, beside both rates, as N grows."""
    steps = scale.numbers["steps"]
    law = Rows.alike(Shares.of(np.array([1, 1])), 1)
    rows = []
    for n in steps:
        rounds = n**5
        setting = Training(
            eta_l=sqrt(1 / (n * rounds)), steps=n, rounds=rounds, gap=0.0, dissimilarity=2.0, beta=2
        )
        measured = float(expected_gradients(law, MINIMA, [0.0], setting).mean())
        rows.append((measured, printed_rate(1, n, rounds), clustered_rate(law, setting).total))
    measured, printed, corrected = np.array(rows).T
    columns: dict[str, Array] = {
        "steps": np.array(steps, dtype=np.float64),
        "measured": measured,
        "printed": printed,
        "corrected": corrected,
    }
    samples: dict[str, Any] = {
        "the corrected rate bounds": bool(np.all(measured <= corrected)),
        "measured over printed stays bounded": bool(
            (measured / printed)[-1] < 2 * (measured / printed)[0]
        ),
        "measured over printed at the end": float((measured / printed)[-1]),
        "corrected over measured at the end": float((corrected / measured)[-1]),
    }
    return Computed(columns, samples)


THEOREM_2 = Recipe(
    "clustered-theorem2",
    "The rate of MD and of clustered sampling, as printed and corrected",
    PAPER,
    where="Theorems 1 and 2",
    compute=compute,
    scales={
        "quick": Scale(numbers={"steps": (4, 6, 8, 12)}, changed="N up to 12."),
        "standard": Scale(numbers={"steps": (4, 6, 8, 12, 16, 24)}),
        "full": Scale(numbers={"steps": (4, 6, 8, 12, 16, 24)}),
    },
    claims=(
        Claim(
            "the mean of ||grad L||^2 is of order 1/sqrt(m N T) + m N/T",
            "(5) and (11)",
            Holds(
                "measured over printed stays bounded",
                "with T = N^5 the measured mean over the printed rate at most doubles",
                "measured over printed at the end",
            ),
            erratum="a term of order sqrt(N/(m T)) is missing",
            see="theory.md",
        ),
        Claim(
            "with a term of order sqrt(N/(m T)) it is a bound",
            "not in the paper",
            Holds("the corrected rate bounds", "", "corrected over measured at the end"),
        ),
    ),
    panels=(
        Columns("steps", {"measured": "measured", "printed": "printed rate",
                          "corrected": "corrected, with constants"},
                "local steps N, T = N^5 rounds", "mean squared gradient", log="xy"),
    ),
    shows="Two theorems that state the same rate for MD and for any clustered sampling.",
    notes=("Two quadratic clients with opposite minima, m = 1, exact means.",),
)  # fmt: skip
