"""What the CIFAR-10 figures have in common: 100 clients of unequal size, the CNN, m = 10.

At the scale ``standard`` the local work is a tenth of the paper's and rounds are few: a round of
the paper computes 50,000 gradients of the CNN, half a minute on one core.
"""

from __future__ import annotations

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.clustered._arms import READINGS
from fedcohort_papers.reproduction import Cell, Scale

SIZES = "sizes=paper1"
"""10 clients of 100 samples, 30 of 250, 30 of 500, 20 of 750, 10 of 1,000."""
FEW = "sizes=" + "-".join(["20"] * 5 + ["40"] * 10 + ["60"] * 5)
"""20 clients of 20, 40 or 60 samples, for a try."""
LOSS = "area:of=train_loss"
"""The mean of the training loss over all evaluations: what lies between two curves."""
ROLLING = 50
"""Rounds of the paper's rolling mean."""
CIFAR_READINGS = (
    READINGS["ties"],
    READINGS["rows"],
    READINGS["faster"],
    "step sizes: those that the paper chose in {.001, .005, .01, .05, .1} for its own number of "
    "local steps; a choice anew for the steps of a smaller scale is possible",
)
NOTES = (
    "Samples are drawn without replacement; the authors draw with replacement, independently "
    "for every client, and give what rounding leaves to class 9.",
    "The test set is that of CIFAR-10, not one of each client's own shares.",
)


def divided(alpha: float, sizes: str = SIZES) -> str:
    """The partition with label shares from Dirichlet(alpha)."""
    return f"dirichlet-per-client:alpha={alpha:g},{sizes}"


def cell(
    name: str,
    arms: tuple[str, ...] | dict[str, str],
    *,
    alpha: float = 0.01,
    steps: int = 100,
    lr: float = 0.05,
    rounds: int = 1000,
) -> Cell:
    """One federation of CIFAR-10, as in the paper."""
    return Cell(
        name,
        Problem("cifar10", divided(alpha), model="cnn"),
        arms,
        rounds=rounds,
        work=work(steps, lr),
        options={"evaluate_every": 10},
    )


def work(steps: int, lr: float = 0.05, batch: int = 50) -> LocalWork:
    """N local steps, on a new batch each, as the authors draw them."""
    return LocalWork(steps=steps, batch=batch, lr=lr, batches="fresh")


def scales(standard: int) -> dict[str, Scale]:
    """Those of a figure with one cell, alpha = 0.01; ``standard`` says how many rounds."""
    return {
        "quick": Scale(
            seeds=2,
            rounds=3,
            changed="3 rounds instead of 1,000; 20 clients of 20 to 60 samples, 3 steps of 10, "
            "evaluated on 200.",
            change={
                "work": work(3, batch=10),
                "problem": {"partition": divided(0.01, FEW)},
                "options": {"evaluate_on": 200, "evaluate_every": 1},
            },
        ),
        "standard": Scale(
            seeds=3,
            rounds=standard,
            changed=f"{standard} rounds instead of 1,000, 10 local steps instead of 100; evaluated "
            "every 5 rounds on 2,000 samples.",
            change={"work": work(10), "options": {"evaluate_every": 5, "evaluate_on": 2000}},
        ),
        "full": Scale(seeds=3, changed="3 seeds instead of 1."),
    }
