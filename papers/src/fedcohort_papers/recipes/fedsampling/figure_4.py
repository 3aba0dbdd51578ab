"""Figure 4: the same as the sizes of clients become more unequal."""

from __future__ import annotations

from fedcohort_papers.recipes.fedsampling import PAPER
from fedcohort_papers.recipes.fedsampling._runs import (
    AS_PRINTED,
    CHOSEN_CLIENTS,
    CORRECTED,
    FLOOR,
    KNOWN,
    LEVEL,
    NAIVE,
    NOT_PRINTED,
    NOTES,
    ORACLE,
    SOUND,
    STEP,
    alike,
    news,
    tuned,
    worse,
)
from fedcohort_papers.reproduction import Along, Claim, Contrast, Recipe, Scale

SIGMAS = {f"sigma = {sigma:g}": sigma for sigma in (0.5, 1.0, 2.0, 4.0)}
FIRST, *_, LAST = SIGMAS
SLOPE = (0.3, 0.1, -0.1, -0.3)
"""Of accuracy on -log2 of the four sigmas, by least squares: what a doubling costs."""
SHOWN = (AS_PRINTED, CORRECTED, KNOWN, NAIVE, "FedAvg, uniform", "FedAvg, weighted")


def _declines(name: str) -> Claim:
    weights = {(cell, name): weight for cell, weight in zip(SIGMAS, SLOPE, strict=True)}
    return Claim(f"{name} declines with sigma", "lower", Contrast(LEVEL, weights))


FIGURE_4 = Recipe(
    "fedsampling-fig4",
    "The same as the sizes of clients become more unequal",
    PAPER,
    where="Figure 4",
    cells=tuple(news(name, sigma, 100, SHOWN) for name, sigma in SIGMAS.items()),
    scales={
        "quick": Scale(
            partitions=2,
            rounds=15,
            only=(FIRST, LAST),
            changed="15 rounds instead of 100, two values of sigma, 2 federations each; one run of "
            "every step size.",
            change={"tuned": tuned(SHOWN, seeds=1)},
        ),
        "standard": Scale(partitions=5, minutes=6),
        "full": Scale(partitions=5),
    },
    claims=(
        *(
            alike((name, AS_PRINTED), (name, "centralised"), f"FedSampling = centralised at {name}")
            for name in SIGMAS
        ),
        worse((LAST, "FedAvg, uniform"), (FIRST, "FedAvg, uniform"),
              "FedAvg, uniform declines with sigma"),
        _declines("FedAvg, weighted"),
        worse((LAST, NAIVE), (FIRST, NAIVE), "naive declines with sigma"),
        *(
            alike((name, CORRECTED), (name, "centralised"),
                  f"corrected FedSampling = centralised at {name}", NOT_PRINTED, **SOUND)
            for name in SIGMAS
        ),
        *(
            alike((name, KNOWN), (name, "centralised"), f"N known = centralised at {name}",
                  **ORACLE)
            for name in SIGMAS
        ),
    ),
    panels=(
        Along(
            LEVEL,
            SIGMAS,
            "sigma of the log-normal sizes",
            log=True,
            ylabel="test accuracy, last quarter",
        ),
    ),
    shows="Accuracy against sigma of the log-normal sizes: FedSampling and centralised training "
    "are level, the others decline as sigma grows.",
    notes=NOTES,
    readings=(
        FLOOR,
        STEP,
        CHOSEN_CLIENTS,
        "sigma: the standard deviation of the logarithm, as in the authors' code; the text calls "
        "it a variance",
    ),
)  # fmt: skip
