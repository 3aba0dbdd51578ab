"""Figure 4: the same as the sizes of clients become more unequal."""

from __future__ import annotations

from fedcohort.recipes.fedsampling import PAPER
from fedcohort.recipes.fedsampling._runs import EXACT, LEVEL, NOTES, alike, news, tuned, worse
from fedcohort.reproduction import Along, Recipe, Scale

SIGMAS = {f"sigma = {sigma:g}": sigma for sigma in (0.5, 1.0, 2.0, 4.0)}
FIRST, *_, LAST = SIGMAS
SHOWN = (
    EXACT,
    "fedsampling, levels",
    "fedsampling, paper",
    "naive",
    "FedAvg, uniform",
    "FedAvg, weighted",
)

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
        "standard": Scale(partitions=5),
        "full": Scale(partitions=5),
    },
    claims=(
        *(
            alike((name, EXACT), (name, "centralised"), f"FedSampling = centralised at {name}")
            for name in SIGMAS
        ),
        *(
            worse((LAST, name), (FIRST, name), f"{name} declines with sigma")
            for name in ("FedAvg, uniform", "FedAvg, weighted", "naive")
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
)
