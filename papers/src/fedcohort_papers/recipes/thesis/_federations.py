"""The federations of the thesis, and what its runs have in common: Fashion-MNIST, an MLP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from fedcohort.simulation import MLP, Problem
from fedcohort.simulation._arms import Which
from fedcohort.training import LocalWork
from fedcohort_papers.reproduction import Cell, Claim, Drawn, Results, Scale
from fedcohort_papers.reproduction.drawing import colour_of

DATA = "fashion-mnist"
CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle-boot",
)
MODEL = "mlp:hidden=64-30"
WORK = LocalWork(epochs=2, batch=64, lr=0.005)
ROUNDS, EVERY, HALF = 150, 5, 70
"""All rounds, those between evaluations of the scale ``standard``, and what is called halfway."""
SELDOM = {"options": {"evaluate_every": EVERY}}
SELDOM_SAID = f"The best so far of every {EVERY}th round, evaluated then, instead of every one."
BEST, BEST_HALF = "best", f"best:round={HALF}"
"""The best accuracy so far: what the thesis plots."""
LOSS, LOSS_HALF = "best:of=test_loss", f"best:of=test_loss,round={HALF}"
LEAST = 10
"""Samples of every client, as FedArtML draws them."""
FEDERATIONS = 6
"""Of the scale ``standard``, one seed on each: a verdict is about federations, not about one."""
CORRECTED = ", corrected"
"""After the label of a strategy over clusters that is not to the letter of the thesis."""
FITS = "the rule was chosen because it fits the printed numbers"
READINGS = {
    "pixels": "Pixel scale: 0 to 1 here; standardized and 0 to 255 are possible.",
    "losses": "Losses that are compared: the mean over the samples of a client here; the sum, as "
    "in early copies of FedLab 1.3.0, with which the thesis was made, is possible "
    "(`thesis-readings`).",
    "candidates": "Candidates of Power-of-Choice: with chances by size here, as Algorithm 1 has "
    "it; uniform ones, as in FedLab, are possible (`thesis-readings`).",
    "data": "Candidates of Data in a cluster, for which Algorithm 6 prints no law: uniform as "
    "printed, by size as corrected.",
    "network": "Network: hidden layers of 64 and 30 here; 200 and 200, as in FedLab, are possible.",
    "least": "Smallest client: 10 samples here, as FedArtML draws them; 1 sample is possible.",
    "noise": "Clients alone in the silhouette: left out here; a cluster of their own is possible.",
}
"""Choices that the thesis leaves open, by name."""


def readings(*names: str) -> tuple[str, ...]:
    """Some of them."""
    return tuple(READINGS[name] for name in names)


NOTES = (
    "Two hidden layers, 64 and 30, as in the experiments of Cho et al. that the thesis builds on; "
    "it does not print its MLP.",
    "The step size is 0.005 in every round, as Section 4 says; the decaying one of (1.10), an "
    "assumption of the theorem, is in the recipe thesis-decay.",
    "Curves are the best value so far, as in the thesis; it runs one federation.",
)


@dataclass(frozen=True)
class Setting:
    """A federation of the thesis: K clients, each class spread by Dirichlet(alpha)."""

    clients: int
    alpha: float
    distance: float  # RMS Hellinger distance as the thesis names it

    def __str__(self) -> str:
        return f"K = {self.clients}, HD {self.distance:g}"

    def partition(self, least: int = LEAST) -> str:
        """Drawn again until every client holds so many samples: with K = 100, 13,000 times."""
        division = f"dirichlet-per-class:n={self.clients},alpha={self.alpha}"
        return f"{division},min_size={least},retries=200000"

    def problem(self, seed: int = 0, data: str = DATA, least: int = LEAST) -> Problem:
        """Its data and its model."""
        return Problem(data, self.partition(least), model=MODEL, partition_seed=seed)

    def task(self, seed: int = 0, data: str = DATA, least: int = LEAST) -> MLP:
        """Its clients."""
        made: Any = self.problem(seed, data, least).task()
        return cast(MLP, made)


MANY, FEW, ALIKE = SETTINGS = (
    Setting(100, 0.05, 0.9),
    Setting(30, 0.05, 0.9),
    Setting(100, 0.2, 0.8),
)


def cell(arms: Mapping[str, Which], setting: Setting = MANY, name: str = "") -> Cell:
    """Schemes on one federation, as the thesis trains them; called as the federation is."""
    options = {"evaluate_every": 1}
    return Cell(name or str(setting), setting.problem(), arms, ROUNDS, WORK, options)


def clustered(name: str, d: int, w: int) -> str:
    """The word of a strategy over clusters."""
    return f"{name}:d={d},m={w}"


def both(arms: Mapping[str, str]) -> dict[str, str]:
    """Strategies that compare losses as printed, then as corrected."""
    printed = {label: f"{word},version=printed" for label, word in arms.items()}
    return printed | {f"{label}{CORRECTED}": word for label, word in arms.items()}


def for_both(claims: Callable[[str], tuple[Claim, ...]]) -> tuple[Claim, ...]:
    """Claims about the strategies as printed, then the same about the corrected ones.

    ``claims`` is given what to put after their labels.
    """
    sound = (
        replace(claim, statement=f"corrected: {claim.statement}", kind="sound")
        for claim in claims(CORRECTED)
    )
    return (*claims(""), *sound)


def scales(settings: Mapping[str, Setting] | None = None, partitions: int = 3) -> dict[str, Scale]:
    """The same for all recipes; ``settings`` says by cell which federation it is.

    ``partitions`` are those of the scale ``full``.
    """
    settings = settings or {str(MANY): MANY}
    return {
        "quick": Scale(
            seeds=2,
            rounds=4,
            changed="4 rounds instead of 150, 2 seeds instead of 10; clients of 1 sample or more "
            "instead of 10, 5 local steps, evaluated on 500 samples.",
            change={
                "work": LocalWork(steps=5, batch=64, lr=0.005),
                "options": {"evaluate_every": 1, "evaluate_on": 500},
            },
            each={
                name: {"problem": {"partition": setting.partition(1)}}
                for name, setting in settings.items()
            },
        ),
        "standard": Scale(
            partitions=FEDERATIONS,
            changed="One seed on each federation instead of 10 on one; "
            f"evaluated on 2,000 samples. {SELDOM_SAID}",
            change={"options": {"evaluate_every": EVERY, "evaluate_on": 2000}},
        ),
        "full": Scale(
            seeds=10,
            partitions=partitions,
            changed=f"{partitions} federations instead of one." if partitions > 1 else "",
        ),
    }


def _profile(axes: Any, results: Results) -> None:
    arms = results.arms()
    width = 0.8 / len(arms)
    for place, arm in enumerate(arms):
        found = [trace.f1 for trace in results.traces(arm).values()]
        at = np.arange(len(found[0])) + (place - (len(arms) - 1) / 2) * width
        axes.bar(at, np.mean(found, axis=0), width, label=arm, color=colour_of(place))
    axes.set_xticks(np.arange(len(CLASSES)), CLASSES, rotation=45, ha="right")
    axes.set_ylabel("F1 of the last model")
    axes.legend()


PROFILE = Drawn(_profile, "F1 by class")
