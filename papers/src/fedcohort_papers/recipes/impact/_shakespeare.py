"""What the Shakespeare figures have in common: roles, the character LSTM, MD against uniform.

At the scale ``standard`` a client takes 5 local steps instead of 50: a round of the paper with
n = 20 computes 32,000 gradients of the LSTM, over half a minute on one core.
"""

from __future__ import annotations

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.reproduction import Cell, Curves

EQUAL, BY_SIZE = "p = 1/n", "p = n_i/M"
IMPORTANCE = {EQUAL: "equal", BY_SIZE: "size"}
LOSS = "area:of=train_loss"
"""The mean of the loss over all evaluations: what lies between two curves."""
BATCH, LR = 64, 1.5
READINGS = (
    "roles: drawn at random here; the first users of LEAF's version are possible",
    "step size: 1.5 at every number of local steps, which the paper chose in {.1, .5, 1, 1.5, 2, "
    "2.5} for 50 steps and n = 80 with full participation",
    "'outperforms': the mean of the training loss over all evaluations here; the loss at the end "
    "is possible",
)
NOTES = (
    "Roles are drawn at random from those of the plays; the paper takes the first users of LEAF's "
    "version.",
    "Losses are estimated on a fixed sample of everybody's data.",
)


def cell(name: str, n: int, m: int, weighing: str, *, steps: int = 50, rounds: int = 600) -> Cell:
    """Of n roles m take part in a round, by MD and by uniform sampling."""
    return Cell(
        name,
        Problem("shakespeare", f"natural:n={n}", model="lstm", importance=IMPORTANCE[weighing]),
        {"MD": f"md:m={m}", "uniform": f"uniform:m={m}"},
        rounds=rounds,
        work=work(steps),
        options={"evaluate_every": 10, "evaluate_on": 2000},
    )


def work(steps: int, batch: int = BATCH) -> LocalWork:
    """K steps of local SGD."""
    return LocalWork(steps=steps, batch=batch, lr=LR, batches="fresh")


def panels(*names: str) -> tuple[Curves, ...]:
    """The loss, cell by cell."""
    return tuple(Curves("train_loss", cell=name, title=name) for name in names)
