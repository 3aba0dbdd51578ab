"""Cohorts that look like the federation, with an MLP."""

from __future__ import annotations

from fedcohort_papers.recipes.beyond._balanced import recipe

BALANCED_MLP = recipe(
    "balanced-mlp",
    1,
    "mlp:hidden=50",
    "The same as balanced with an MLP of 50 hidden units",
    lr=0.1,
)
