"""Schemes at equal epsilon: what the law of the cohorts is worth where noise hides clients."""

from __future__ import annotations

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.beyond import PAPER
from fedcohort_papers.reproduction import Bars, Cell, Claim, Curves, Recipe, Scale, difference

N, M, ROUNDS, EPSILON = 500, 50, 50, 2.0
LAST = 0.1
"""The share of evaluations at the end over which accuracy is taken."""
CELL = "Dirichlet 0.3"
SCHEMES = {
    "binomial": f"binomial:m={M}",
    "uniform": f"uniform:m={M}",
    "md": f"md:m={M}",
    "balanced": f"balanced:m={M},by=sizes",
    "pow-d": f"pow-d:m={M},d={2 * M}",
}
NOISE = f"+gaussian:clip=0.1,noise=none,weight={1 / M:g},epsilon={EPSILON:g},rounds={ROUNDS},seed=0"
"""Such that all rounds cost epsilon, by the law of each scheme; every draw weighs 1/m."""


def _above(more: str, less: str) -> Claim:
    return Claim(
        f"{more} is more accurate than {less} at equal epsilon",
        "not printed",
        difference(f"accuracy:last={LAST}", (CELL, more), (CELL, less)),
        ours=True,
    )


PRIVATE = Recipe(
    "private",
    "At equal epsilon independent clients are worth more than any other law",
    PAPER,
    where="noise as in McMahan et al. (ICLR 2018), priced by the law of each scheme",
    cells=(
        Cell(
            CELL,
            Problem("mnist", f"dirichlet-per-client:n={N},alpha=0.3", model="softmax"),
            {
                **{label: word + NOISE for label, word in SCHEMES.items()},
                "binomial, no noise": SCHEMES["binomial"],
            },
            rounds=ROUNDS,
            work=LocalWork(steps=5, batch=10, lr=0.1),
            options={"evaluate_every": 10},
        ),
    ),
    scales={
        "quick": Scale(
            seeds=1,
            changed="1 seed on 1 division, evaluated on 1,000 samples.",
            change={"options": {"evaluate_on": 1000, "evaluate_every": 50}},
        ),
        "standard": Scale(seeds=5, partitions=3),
    },
    claims=(
        _above("binomial", "uniform"),
        _above("uniform", "md"),
        _above("uniform", "balanced"),
        _above("balanced", "pow-d"),
    ),
    panels=(
        Curves(cell=CELL, title=CELL),
        Bars(f"accuracy:last={LAST}", cell=CELL, title=CELL, xlabel="test accuracy at the end"),
    ),
)
