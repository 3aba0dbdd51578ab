"""Figure 5: clients of equal size that hold one label each, who converges faster and smoother."""

from __future__ import annotations

from fedcohort_papers.recipes.fedsampling import PAPER
from fedcohort_papers.recipes.fedsampling._labels import (
    ESTIMATE_NOTE,
    NOTES,
    READINGS,
    SHOWS,
    SOFTMAX,
    SOFTMAX_ARMS,
    cell,
    claims,
    panels,
)
from fedcohort_papers.recipes.fedsampling._runs import tuned
from fedcohort_papers.reproduction import Recipe, Scale

FIGURE_5 = Recipe(
    "fedsampling-fig5",
    "Clients that hold one label each: convergence and smoothness of softmax",
    PAPER,
    where="Figure 5, softmax",
    cells=(cell(SOFTMAX, SOFTMAX_ARMS),),
    scales={
        "quick": Scale(
            partitions=2,
            rounds=8,
            changed="8 rounds instead of 150, 2 federations; evaluated on 1,000 samples; one run "
            "of every step size, of two.",
            change={
                "options": {"evaluate_on": 1000},
                "tuned": tuned(SOFTMAX_ARMS, (0.25, 1.0), (0.03, 0.1), seeds=1),
            },
        ),
        "standard": Scale(partitions=5),
        "full": Scale(partitions=5),
    },
    claims=claims(SOFTMAX),
    panels=panels(SOFTMAX),
    shows=SHOWS,
    notes=(*NOTES, ESTIMATE_NOTE),
    readings=READINGS,
)
