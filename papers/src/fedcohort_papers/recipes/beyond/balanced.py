"""Cohorts that look like the federation, with softmax regression."""

from __future__ import annotations

from fedcohort_papers.recipes.beyond._balanced import recipe

BALANCED = recipe(
    "balanced",
    0,
    "softmax",
    "Cohorts that look like the federation, plain and with a memory",
    lr=0.05,
)
