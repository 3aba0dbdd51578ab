"""Figure 5: clients of equal size that hold one label each, who converges faster and smoother."""

from __future__ import annotations

from functools import partial

from fedcohort.learning import LocalWork
from fedcohort.recipes.fedsampling import PAPER
from fedcohort.recipes.fedsampling._runs import (
    EXACT,
    LEVEL,
    SERVERS,
    Setting,
    alike,
    some_methods,
    worse,
)
from fedcohort.reproduction import Bars, Cell, Claim, Curves, Ratio, Recipe, Scale
from fedcohort.simulation.problem import Problem

SHOWN = (
    EXACT,
    "fedsampling, levels",
    "fedsampling, paper",
    *(f"{name}, uniform" for name in SERVERS),
)
SETTING = Setting(2048, threshold=600)


def _less_smooth(name: str) -> Claim:
    judge = Ratio("jumps", name, EXACT, at_least=1.0)
    return Claim(f"{name} is less smooth", "moves more from round to round", judge)


FIGURE_5 = Recipe(
    "fedsampling-fig5",
    "Clients that hold one label each: convergence and smoothness",
    PAPER,
    where="Figure 5",
    cells=(
        Cell(
            "one label each",
            Problem("mnist", "one-class-per-client:n=100,per_client=300"),
            partial(some_methods, SHOWN, SETTING),
            150,
            LocalWork(steps=1, batch=None, lr=0.5),
            {"evaluate_every": 2, "centralised": SETTING.samples},
        ),
    ),
    scales={
        "quick": Scale(
            partitions=2,
            rounds=20,
            changed="20 rounds instead of 150, 2 federations; evaluated on 1,000 samples.",
            change={"options": {"evaluate_on": 1000}},
        ),
        "standard": Scale(partitions=5),
        "full": Scale(partitions=5),
    },
    claims=(
        alike(EXACT, "centralised", "FedSampling is as good as centralised"),
        alike("fedsampling, paper", EXACT, "the paper's estimate of N costs nothing"),
        alike("fedsampling, levels", EXACT, "nor does an estimate by levels, asked once",
              "not printed"),
        *(
            claim
            for name in (f"{name}, uniform" for name in SERVERS)
            for claim in (
                worse(name, EXACT, f"{name} is worse than FedSampling"),
                _less_smooth(name),
            )
        ),
    ),
    panels=(Curves("accuracy"), Bars(LEVEL), Bars("jumps")),
    shows="Accuracy over the rounds on EMNIST, clients sorted by label: FedSampling rises faster "
    "and more smoothly than the client sampling of FedAvg, FedYogi, FedAdagrad and FedAdam.",
    notes=("MNIST (100 clients x 300 images of one digit) for EMNIST, softmax for ResNet.",),
)  # fmt: skip
