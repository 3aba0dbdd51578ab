"""The memory of last updates (FedVARP's estimator) beside plain aggregation."""

from __future__ import annotations

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.beyond import PAPER
from fedcohort_papers.reproduction import Bars, Cell, Claim, Recipe, Scale, difference

LAST = 0.3
"""The share of evaluations at the end over which accuracy and its spread are taken."""
SCHEMES = ("uniform", "md", "clustered-similarity")
DIVISIONS = {
    "one class per client": "one-class-per-client:n=100,per_client=500",
    "Dirichlet 0.1": "dirichlet-per-client:n=100,alpha=0.1",
}


def _claims(division: str, scheme: str) -> tuple[Claim, Claim]:
    plain, kept = (division, scheme), (division, f"{scheme}+memory")
    return (
        Claim(
            f"{division}, {scheme}: memory is steadier",
            "not printed",
            difference(f"spread:last={LAST}", plain, kept),
            ours=True,
        ),
        Claim(
            f"{division}, {scheme}: and not less accurate",
            "not printed",
            difference(f"accuracy:last={LAST}", kept, plain, above=-0.005),
            ours=True,
        ),
    )


MEMORY = Recipe(
    "memory",
    "The memory of last updates steadies every unbiased scheme",
    PAPER,
    where="the estimator is that of FedVARP (Jhunjhunwala et al., UAI 2022)",
    cells=tuple(
        Cell(
            name,
            Problem("mnist", partition, model="softmax"),
            [f"{scheme}:m=10{how}" for scheme in SCHEMES for how in ("", "+memory")],
            rounds=100,
            work=LocalWork(steps=50, batch=50, lr=0.01),
        )
        for name, partition in DIVISIONS.items()
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=10,
            changed="10 rounds instead of 100, evaluated on 1,000 samples.",
            change={"options": {"evaluate_on": 1000}},
        ),
        "standard": Scale(seeds=5),
        "full": Scale(seeds=5, partitions=5, changed="5 partitions instead of 1."),
    },
    claims=tuple(
        claim for name in DIVISIONS for scheme in SCHEMES for claim in _claims(name, scheme)
    ),
    panels=tuple(
        Bars(measure, cell=name, title=name, xlabel=label)
        for name in DIVISIONS
        for measure, label in (
            (f"accuracy:last={LAST}", "test accuracy of the last rounds"),
            (f"spread:last={LAST}", "spread over the last rounds"),
        )
    ),
)
