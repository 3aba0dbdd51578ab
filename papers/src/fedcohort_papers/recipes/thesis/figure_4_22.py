"""Figure 4.22: time to accuracy, on devices that are said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    MANY,
    NOTES,
    cell,
    for_both,
    readings,
    scales,
)
from fedcohort_papers.recipes.thesis.figure_4_12 import SOONER, SOONER_SAID, over_clusters
from fedcohort_papers.reproduction import (
    Alike,
    Bars,
    Claim,
    Drawn,
    Every,
    Judge,
    Ratio,
    Recipe,
    Results,
)
from fedcohort_papers.reproduction.drawing import colour_of, dash_of
from fedcohort_papers.reproduction.estimate import Estimate

PLAIN = {"Pow-6": "pow-d:m=3,d=6"}
ARMS = PLAIN | over_clusters(6, 3)
MACHINE, PHONES = "one machine", "phones"
DEVICES = {
    MACHINE: "equal:seconds=0.001,down=1000,up=1000",
    PHONES: "phones:seconds=0.01,jitter=0.3",
}
"""What is assumed; the thesis names no devices."""
COMPARED = ("Data", "AverageLoss", "BestLoss")
"""Those that claims are about; the others ask everybody in the first 25 rounds."""
MEASURED = PLAIN | {
    label: word for label, word in ARMS.items() if label.partition(",")[0] in COMPARED
}
LEVELS = (0.2, 0.3, 0.4)
LEVEL = 0.3
CHOSEN = "the level, which most runs here reach"
NEGLIGIBLE = 120.0
"""Two minutes."""


def _negligible(where: str, version: str) -> Judge:
    """No strategy is further from Power-of-Choice than two minutes."""
    measure, plain = f"time-to:target={LEVEL}", (where, "Pow-6")
    arms = [(where, f"{label}{version}") for label in COMPARED]
    return Every(*(Alike(measure, arm, plain, NEGLIGIBLE) for arm in arms))


def _claims(version: str) -> tuple[Claim, ...]:
    return (
        Claim(
            f"on one machine the times to {LEVEL:.0%} differ by two minutes at most",
            "negligible (up to two minutes), whatever the level",
            _negligible(MACHINE, version),
            exploratory=CHOSEN,
        ),
        Claim(
            "so they do on phones that differ",
            "a reasonable approximation of what could be observed in a realistic environment",
            _negligible(PHONES, version),
            exploratory=CHOSEN,
        ),
        Claim(
            "on phones BestLoss, which asks all clients in every round, takes at least twice as "
            "long as Data, which asks six",
            "not in the thesis",
            Ratio(f"time-to:target={LEVEL}", (PHONES, f"BestLoss{version}"),
                  (PHONES, f"Data{version}"), 2.0),
            ours=True,
            exploratory=CHOSEN,
        ),
    )  # fmt: skip


def _levels(where: str) -> Any:
    """Time against the level that was reached, as the thesis draws it."""

    def draw(axes: Any, results: Results) -> None:
        for index, arm in enumerate(results.arms(where)):
            found = [results.values(f"time-to:target={level}", (where, arm)) for level in LEVELS]
            means = [Estimate.of(each.numbers, each.unit).mean / 60 for each in found]
            style = {"color": colour_of(index), "ls": dash_of(index), "marker": "o"}
            axes.plot([f"{level:.0%}" for level in LEVELS], means, label=arm, **style)
        axes.set(xlabel="best accuracy so far", ylabel="simulated minutes", yscale="log")
        axes.legend()

    return draw


def _cells() -> Any:
    for where, devices in DEVICES.items():
        plain = cell(ARMS, name=where)
        yield replace(plain, options={**plain.options, "devices": devices})


SCALES = scales(dict.fromkeys(DEVICES, MANY))

FIGURE_4_22 = Recipe(
    "thesis-fig-4-22",
    "Time to accuracy of the strategies over clusters, in simulated time",
    PAPER,
    where="Figure 4.22",
    cells=tuple(_cells()),
    scales=SCALES | {
        "quick": replace(
            SCALES["quick"],
            changed=f"{SCALES['quick'].changed} {SOONER_SAID}",
            each={
                where: {**SCALES["quick"].each[where],
                        "arms": PLAIN | over_clusters(6, 3, SOONER)}
                for where in DEVICES
            },
        ),
        "standard": replace(
            SCALES["standard"],
            partitions=3,
            changed="One seed on each of 3 federations instead of 10 on one; evaluated on 2,000 "
            "samples, every 5 rounds; without the two strategies that change after 25 rounds.",
            each={where: {"arms": MEASURED} for where in DEVICES},
        ),
    },
    claims=for_both(_claims),
    panels=(
        *(Drawn(_levels(where), f"time to accuracy, {where}") for where in DEVICES),
        *(Bars(f"time-to:target={LEVEL}", cell=where, title=where,
               xlabel=f"simulated seconds to {LEVEL:.0%}") for where in DEVICES),
    ),
    shows="Time to several levels of accuracy for every strategy, K = 100, HD 0.9, d = 6, w = 3, "
    "as measured on the one machine that emulated all clients; differences are called negligible, "
    "up to two minutes.",
    readings=readings("pixels", "losses", "data"),
    notes=(
        *NOTES,
        "The devices are our assumption, because the thesis names none. One machine: every client "
        "computes a sample in 1 ms and has a line of 1 Gbit/s. Phones: the 333 measured ones, the "
        "median computes a sample in 10 ms; 20 Mbit/s down and 10 up, log-normal, and jitter 0.3 "
        "from round to round. Clients work side by side, questions are asked before training.",
        "The levels of the figure are not printed in the text; 20, 30 and 40 % are those that "
        "most runs here reach in 150 rounds, so they were chosen after looking.",
    ),
)  # fmt: skip
