"""Figures 2 and 5: MD against uniform sampling on Shakespeare, both importances."""

from __future__ import annotations

from fedcohort_papers.recipes.impact import PAPER
from fedcohort_papers.recipes.impact._shakespeare import (
    BY_SIZE,
    EQUAL,
    LOSS,
    NOTES,
    READINGS,
    cell,
    panels,
    work,
)
from fedcohort_papers.reproduction import (
    Along,
    Claim,
    Contrast,
    Every,
    Judge,
    Recipe,
    Scale,
    difference,
)

CLIENTS = (10, 20, 40, 80)
FEW, MANY = CLIENTS[:2], CLIENTS[2:]
"""Those that are run at a reduced scale, and at full scale alone."""


def name(n: int, weighing: str) -> str:
    """Of a cell."""
    return f"n = {n}, {weighing}"


def _worse(worse: str, better: str, weighing: str, clients: tuple[int, ...] = FEW) -> Judge:
    """One scheme's loss lies above the other's, for every n."""
    cells = [name(n, weighing) for n in clients]
    return Every(*(difference(LOSS, (cell, worse), (cell, better)) for cell in cells))


def _fades(worse: str, better: str, weighing: str) -> Judge:
    """The gap is smaller with more clients."""
    few, many = (name(n, weighing) for n in FEW)
    gaps = {(few, worse): 1.0, (few, better): -1.0, (many, worse): -1.0, (many, better): 1.0}
    return Contrast(LOSS, gaps)


REDUCED = tuple(name(n, weighing) for weighing in (EQUAL, BY_SIZE) for n in FEW)

FIGURE_2 = Recipe(
    "impact-fig2",
    "Shakespeare with an LSTM: uniform sampling where clients count alike, MD where they do not",
    PAPER,
    where="Figures 2 and 5",
    cells=tuple(
        cell(name(n, weighing), n, n // 2, weighing)
        for weighing in (EQUAL, BY_SIZE)
        for n in CLIENTS
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=2,
            only=REDUCED,
            changed="2 rounds instead of 600, n = 10 and 20 only; 1 step of 8 instead of 50 of 64, "
            "evaluated on 60 samples.",
            change={"work": work(1, 8), "options": {"evaluate_every": 1, "evaluate_on": 60}},
        ),
        "standard": Scale(
            seeds=3,
            rounds=20,
            only=REDUCED,
            changed="20 rounds instead of 600, 3 local steps instead of 50, n = 10 and 20 only, "
            "3 seeds instead of 30; evaluated every 4 rounds on 500 samples.",
            change={"work": work(3), "options": {"evaluate_every": 4, "evaluate_on": 500}},
        ),
        "full": Scale(seeds=30),
    },
    claims=(
        Claim(
            "with equal importances uniform sampling outperforms MD",
            "Figure 2a: consistently, for n = 10 to 80",
            _worse("MD", "uniform", EQUAL),
        ),
        Claim(
            "and with equal importances by less, the more clients there are",
            "Figure 2a: inversely proportional to n",
            _fades("MD", "uniform", EQUAL),
        ),
        Claim(
            "with importances by size MD outperforms uniform sampling",
            "Figure 2b: always",
            _worse("uniform", "MD", BY_SIZE),
        ),
        Claim(
            "and with importances by size by less, the more clients there are",
            "Figure 2b: mitigated with a large number of clients",
            _fades("uniform", "MD", BY_SIZE),
        ),
        Claim(
            "both with more clients, too",
            "Figures 2 and 5, n = 40 and 80",
            Every(_worse("MD", "uniform", EQUAL, MANY), _worse("uniform", "MD", BY_SIZE, MANY)),
        ),
    ),
    panels=(
        *panels(*REDUCED),
        *(
            Along(LOSS, {name(n, weighing): n for n in CLIENTS}, "clients n", log=True,
                  title=weighing, ylabel="mean training loss")
            for weighing in (EQUAL, BY_SIZE)
        ),
    ),
    shows="The difference of the training losses of MD and uniform sampling over 600 rounds, for "
    "n = 10, 20, 40, 80 and m = n/2 (Figure 5: the losses). With p = 1/n uniform is lower, with "
    "p = n_i/M MD is; the difference fades as n grows.",
    readings=READINGS,
    notes=NOTES,
)  # fmt: skip
