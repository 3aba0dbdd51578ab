"""What the thesis' experiments have in common: Fashion-MNIST in three federations, an MLP."""

from __future__ import annotations

from typing import Any

from fedcohort.reproduction import Cell, Scale
from fedcohort.simulation import LocalWork
from fedcohort.simulation.problem import Problem

ROUNDS, HALF = 150, 70
"""All rounds, and those that the thesis calls halfway."""
MODEL = "mlp:hidden=64-30"
WORK = LocalWork(epochs=2, batch=64, lr=0.005)
BEST = "best"
"""The best accuracy so far: what the thesis plots."""
BEST_HALF = f"best:round={HALF}"
LOSS, LOSS_HALF = "best:of=test_loss", f"best:of=test_loss,round={HALF}"
MANY, FEW, ALIKE = "K = 100, HD 0.9", "K = 30, HD 0.9", "K = 100, HD 0.8"
FEDERATIONS = {MANY: (100, 0.05), FEW: (30, 0.05), ALIKE: (100, 0.2)}
"""Clients, and the alpha by which every class is spread over them."""
NOTES = (
    "Clients hold at least 1 sample instead of 10, which with K = 100 and alpha = 0.05 hardly ever "
    "happens; at full scale at least 10. The distances are the same.",
    "Curves are the best value so far, as in the thesis; it runs one federation, here several.",
)


def divided(federation: str, more: str = "") -> str:
    """The partition of a federation."""
    n, alpha = FEDERATIONS[federation]
    return f"dirichlet-per-class:n={n},alpha={alpha}{more}"


def cell(name: str, arms: dict[str, str], federation: str = MANY) -> Cell:
    """A comparison on a federation of the thesis."""
    return Cell(
        name,
        Problem("fashion-mnist", divided(federation), model=MODEL),
        arms,
        rounds=ROUNDS,
        work=WORK,
        options={"evaluate_every": 5},
    )


def clustered(name: str, d: int, w: int) -> str:
    """The word of a strategy over clusters."""
    return f"{name}:d={d},m={w}"


def scales(
    federations: dict[str, str], only: tuple[str, ...] | None = None, partitions: int = 3
) -> dict[str, Scale]:
    """The same for all cells; ``federations`` says by cell which of the three it is."""
    ten: dict[str, dict[str, Any]] = {
        cell: {"problem": {"partition": divided(fed, ",min_size=10,retries=200000")}}
        for cell, fed in federations.items()
    }
    return {
        "quick": Scale(
            seeds=2,
            rounds=4,
            only=only,
            changed="4 rounds instead of 150, 2 seeds instead of 10; 5 local steps, evaluated "
            "on 500 samples.",
            change={
                "work": LocalWork(steps=5, batch=64, lr=0.005),
                "options": {"evaluate_every": 1, "evaluate_on": 500},
            },
        ),
        "standard": Scale(
            seeds=2,
            partitions=partitions,
            changed=f"2 seeds on each of {partitions} federations instead of 10 on one; evaluated "
            "on 2,000 samples.",
            change={"options": {"evaluate_on": 2000}},
        ),
        "full": Scale(
            seeds=10, partitions=partitions, changed=f"{partitions} federations instead of one.",
            each=ten,
        ),
    }  # fmt: skip
