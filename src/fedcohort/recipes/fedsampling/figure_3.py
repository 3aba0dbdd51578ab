"""Figure 3: all methods at sigma = 4, uniform and weighted sampling of clients."""

from __future__ import annotations

from fedcohort.recipes.fedsampling import PAPER
from fedcohort.recipes.fedsampling._runs import (
    EXACT,
    LEVEL,
    METHODS,
    NOT_PRINTED,
    NOTES,
    SERVERS,
    alike,
    news,
    tuned,
    worse,
)
from fedcohort.reproduction import Bars, Curves, Recipe, Scale

FIGURE_3 = Recipe(
    "fedsampling-fig3",
    "FedSampling beside uniform, weighted and naive sampling, and centralised training",
    PAPER,
    where="Figure 3",
    cells=(news("sigma = 4", 4.0, rounds=150),),
    scales={
        "quick": Scale(
            partitions=2,
            rounds=20,
            changed="20 rounds instead of 150, 2 federations; one run of every step size.",
            change={"tuned": tuned(METHODS, seeds=1)},
        ),
        "standard": Scale(partitions=10),
        "full": Scale(partitions=10),
    },
    claims=(
        alike(EXACT, "centralised", "FedSampling is as good as centralised training"),
        alike("fedsampling, paper", EXACT, "the paper's estimate of N costs nothing"),
        alike("fedsampling, levels", EXACT, "nor does an estimate by levels, asked once",
              NOT_PRINTED, ours=True),
        worse("naive", EXACT, "the naive method is worse than FedSampling"),
        *(
            claim
            for name in SERVERS
            for claim in (
                worse(f"{name}, uniform", EXACT, f"{name} is worse than FedSampling"),
                worse(f"{name}, uniform", f"{name}, weighted",
                      f"{name} gains by weighted sampling"),
                worse(f"{name}, weighted", EXACT, f"{name} stays worse with weighted sampling"),
            )
        ),
    ),
    panels=(Bars(LEVEL, xlabel="test accuracy, last quarter"), Curves("accuracy")),
    shows="Bars of accuracy on MIND with sigma = 4: FedSampling is as high as centralised "
    "training; FedAvg, FedYogi, FedAdagrad and FedAdam are below it with uniform sampling of "
    "clients, gain by weighted sampling, and stay below.",
    notes=NOTES,
)  # fmt: skip
