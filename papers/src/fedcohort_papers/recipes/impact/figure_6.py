"""Figures 6 to 9: fewer clients per round, and a single local step."""

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

N = 80
GRID = ((50, 4), (50, 8), (50, 40), (1, 4), (1, 8), (1, 40))
"""Local steps K and clients m, as printed."""
ROUNDS = {50: 1000, 1: 2500}
SOME = ((50, 4), (50, 8), (1, 4), (1, 8))
"""Those that are run at a reduced scale."""


def name(k: int, m: int, weighing: str) -> str:
    """Of a cell."""
    return f"K = {k}, m = {m}, {weighing}"


def _worse(
    worse: str, better: str, k: int, weighing: str, clients: tuple[int, ...] = (4, 8)
) -> Judge:
    cells = [name(k, m, weighing) for m in clients]
    return Every(*(difference(LOSS, (each, worse), (each, better)) for each in cells))


def _fades(worse: str, better: str, weighing: str, least: int = 4, most: int = 8) -> Judge:
    few, many = name(50, least, weighing), name(50, most, weighing)
    return Contrast(
        LOSS, {(few, worse): 1.0, (few, better): -1.0, (many, worse): -1.0, (many, better): 1.0}
    )


REDUCED = tuple(name(k, m, weighing) for weighing in (EQUAL, BY_SIZE) for k, m in SOME)


def _steps(many: int, batch: int) -> dict[str, dict[str, object]]:
    """K = 50 becomes so many steps; K = 1 stays."""
    return {each: {"work": work(many if "50" in each else 1, batch)} for each in REDUCED}


FIGURE_6 = Recipe(
    "impact-fig6",
    "Shakespeare: how MD and uniform sampling differ with few clients, and with one local step",
    PAPER,
    where="Figures 6 to 9",
    cells=tuple(
        cell(name(k, m, weighing), N, m, weighing, steps=k, rounds=ROUNDS[k])
        for weighing in (EQUAL, BY_SIZE)
        for k, m in GRID
    ),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=2,
            only=REDUCED,
            changed="2 rounds instead of 1,000 (K = 1: 2,500), m = 4 and 8 only, 2 steps of 8 for "
            "K = 50; evaluated on 60 samples.",
            change={"options": {"evaluate_every": 1, "evaluate_on": 60}},
            each=_steps(2, 8),
        ),
        "standard": Scale(
            seeds=3,
            rounds=30,
            only=REDUCED,
            changed="30 rounds instead of 1,000 (K = 1: 2,500), m = 4 and 8 only, 5 local steps "
            "for K = 50, 3 seeds instead of 15; evaluated every 3 rounds on 500 samples.",
            change={"options": {"evaluate_every": 3, "evaluate_on": 500}},
            each=_steps(5, 64),
        ),
        "full": Scale(seeds=15),
    },
    claims=(
        Claim(
            "with equal importances uniform sampling outperforms MD, whatever m",
            "Figures 6a and 7, K = 50",
            _worse("MD", "uniform", 50, EQUAL),
        ),
        Claim(
            "with importances by size MD outperforms uniform sampling, whatever m",
            "Figures 6b and 7, K = 50",
            _worse("uniform", "MD", 50, BY_SIZE),
        ),
        Claim(
            "the difference is larger with fewer clients",
            "Figures 6a and 6b",
            Every(_fades("MD", "uniform", EQUAL), _fades("uniform", "MD", BY_SIZE)),
        ),
        Claim(
            "and so it is up to half of the clients",
            "Figures 6, 8 and 9, m = 40",
            Every(
                *(_worse("MD", "uniform", k, EQUAL, (40,)) for k in ROUNDS),
                *(_worse("uniform", "MD", k, BY_SIZE, (40,)) for k in ROUNDS),
                _fades("MD", "uniform", EQUAL, 8, 40),
                _fades("uniform", "MD", BY_SIZE, 8, 40),
            ),
        ),
        Claim(
            "the same with a single local step",
            "Figures 8 and 9, K = 1",
            Every(_worse("MD", "uniform", 1, EQUAL), _worse("uniform", "MD", 1, BY_SIZE)),
        ),
    ),
    panels=(
        *panels(*REDUCED[:2], *REDUCED[4:6]),
        *(
            Along(LOSS, {name(k, m, weighing): m for at, m in GRID if at == k}, "clients m",
                  log=True, title=f"K = {k}, {weighing}", ylabel="mean training loss")
            for weighing in (EQUAL, BY_SIZE)
            for k in ROUNDS
        ),
    ),
    shows="Differences of the training losses of MD and uniform sampling, and the losses, for "
    "n = 80, m = 4, 8, 40, K = 50 and K = 1: with p = 1/n uniform is lower, with p = n_i/M MD is, "
    "by more where m is small.",
    readings=READINGS,
    notes=NOTES,
)  # fmt: skip
