"""Figure 3: all methods at sigma = 4, uniform and weighted sampling of clients."""

from __future__ import annotations

from fedcohort_papers.recipes.fedsampling import PAPER
from fedcohort_papers.recipes.fedsampling._runs import (
    AS_PRINTED,
    BY_COUNTS,
    CHOSEN_CLIENTS,
    CORRECTED,
    FLOOR,
    KNOWN,
    LEVEL,
    METHODS,
    NAIVE,
    NOT_PRINTED,
    NOTES,
    ORACLE,
    SAME_SAMPLES,
    SERVERS,
    SOUND,
    STEP,
    alike,
    below,
    news,
    tuned,
    worse,
)
from fedcohort_papers.reproduction import Bars, Curves, Recipe, Scale

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
        "standard": Scale(partitions=10, minutes=11),
        "full": Scale(partitions=10),
    },
    claims=(
        alike(AS_PRINTED, "centralised", "FedSampling is as good as centralised training"),
        worse(NAIVE, AS_PRINTED, "the naive method is worse than FedSampling"),
        *(
            claim
            for name in SERVERS
            for claim in (
                worse(f"{name}, uniform", AS_PRINTED, f"{name} is worse than FedSampling"),
                worse(f"{name}, uniform", f"{name}, weighted",
                      f"{name} gains by weighted sampling", "significantly higher"),
                below(f"{name}, weighted", AS_PRINTED,
                      f"{name} stays worse with weighted sampling"),
            )
        ),
        below(SAME_SAMPLES, AS_PRINTED,
              "FedAvg is worse with weighted sampling and as many samples as FedSampling",
              "lower; how many samples it has is not printed", ours=True),
        alike(BY_COUNTS, AS_PRINTED,
              "the naive method weighted by counts is as good as FedSampling",
              "unbiased (Section 3.3)", ours=True),
        worse(NAIVE, BY_COUNTS, "the naive method is worse than the same weighted by counts",
              "biased (Section 3.3)", ours=True),
        alike(AS_PRINTED, KNOWN,
              "the printed estimate of N costs nothing, with a step size of its own", ours=True),
        alike(CORRECTED, "centralised", "corrected FedSampling is as good as centralised training",
              NOT_PRINTED, **SOUND),
        alike(CORRECTED, KNOWN, "the corrected estimate of N, asked once, costs nothing",
              NOT_PRINTED, **SOUND),
        alike(KNOWN, "centralised", "with N known, it is as good as centralised training",
              **ORACLE),
        worse(NAIVE, KNOWN, "the naive method is worse than with N known", **ORACLE),
        *(
            claim
            for name in SERVERS
            for claim in (
                worse(f"{name}, uniform", KNOWN, f"{name} is worse than with N known", **ORACLE),
                below(f"{name}, weighted", KNOWN,
                      f"{name} with weighted sampling is worse than with N known", **ORACLE),
            )
        ),
    ),
    panels=(Bars(LEVEL, xlabel="test accuracy, last quarter"), Curves("accuracy")),
    shows="Bars of accuracy on MIND with sigma = 4: FedSampling is as high as centralised "
    "training; FedAvg, FedYogi, FedAdagrad and FedAdam are below it with uniform sampling of "
    "clients, gain by weighted sampling, and stay below.",
    notes=NOTES,
    readings=(
        FLOOR,
        STEP,
        CHOSEN_CLIENTS,
        "weighted sampling: draws by size with replacement, and the mean of the draws; weighting "
        "by size once more is possible",
    ),
)  # fmt: skip
