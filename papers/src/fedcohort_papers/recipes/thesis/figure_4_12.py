"""Figures 4.12 to 4.15, 4.19 and 4.20: strategies over clusters beside Power-of-Choice."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fedcohort._internal.types import Floats
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    BEST,
    BEST_HALF,
    HALF,
    LOSS,
    LOSS_HALF,
    MANY,
    NOTES,
    both,
    cell,
    clustered,
    for_both,
    readings,
    scales,
)
from fedcohort_papers.reproduction import (
    Claim,
    Curves,
    Drawn,
    Every,
    Judge,
    Own,
    Ratio,
    Recipe,
    Results,
    difference,
    order,
)
from fedcohort_papers.reproduction.drawing import PRINTED, colour_of

PAIRS = ((6, 3), (8, 4), (10, 5), (16, 8))
"""Candidates d and clients w."""
MANY_CANDIDATES = (50, 100)
STRATEGIES = {
    "Data": "data-loss",
    "AverageLoss": "average-loss",
    "BestLoss": "best-loss",
    "AverageLoss25": "average-loss-x",
    "BestLoss25": "best-loss-x",
}
SOONER = ",x=2"
"""At the scale ``quick``, which has four rounds: otherwise nothing would change in them."""
SOONER_SAID = "Strategies change after 2 rounds instead of 25."


def name(d: int, w: int) -> str:
    """Of a cell."""
    return f"d = {d}, w = {w}"


def over_clusters(d: int, w: int, change: str = "") -> dict[str, str]:
    """Every strategy; ``change`` says when those that become Data do so."""
    return both(
        {
            label: clustered(word, d, w) + change * word.endswith("-x")
            for label, word in STRATEGIES.items()
        }
    )


def arms(d: int, w: int, change: str = "") -> dict[str, str]:
    """Power-of-Choice with several d, and every strategy."""
    plain = {f"Pow-{each}": f"pow-d:m={w},d={each}" for each in (d, d + 1, *MANY_CANDIDATES)}
    return plain | over_clusters(d, w, change)


NAMES = {name(d, w): (d, w) for d, w in PAIRS}
BEST_LOSS = tuple(both({"BestLoss": ""}))
FIRST, LAST = name(*PAIRS[0]), name(*PAIRS[-1])


SCALES = scales(dict.fromkeys(NAMES, MANY))


BY_LOSS = tuple(over_clusters(*PAIRS[0]))
"""Every strategy, as printed and as corrected."""


def _every(judge: str, arm: str) -> Judge:
    """An arm against Power-of-Choice with the same d, in all cells."""
    return Every(*(
        difference(judge, (cell_name, arm), (cell_name, f"Pow-{d}"))
        for cell_name, (d, _) in NAMES.items()
    ))  # fmt: skip


def _worst(arm: str, results: Results) -> Floats:
    """The loss of an arm over that of Power-of-Choice, by federation."""
    mine, plain = (results.values(LOSS, (LAST, each)) for each in (arm, f"Pow-{PAIRS[-1][0]}"))
    x, y = mine.paired(plain)
    return x / y


PRINTED_HALFWAY = {"accuracy": 10.0, "loss": -14.0}
"""Per cent, BestLoss against Power-of-Choice at round 70, (d, w) = (6, 3)."""


def _relative(of: str, axes: Any, results: Results) -> None:
    """Figures 4.19 and 4.20: per cent above Power-of-Choice, at rounds 70 and 150."""
    rows = [(label, arm) for label in results.runs for arm in results.arms(label)
            if arm in BY_LOSS]  # fmt: skip
    place = np.arange(len(rows))
    times = (BEST_HALF, BEST) if of == "accuracy" else (LOSS_HALF, LOSS)
    for index, (measured, when) in enumerate(zip(times, (f"round {HALF}", "the end"), strict=True)):
        found = []
        for label, arm in rows:
            own, plain = ((label, each) for each in (arm, f"Pow-{NAMES[label][0]}"))
            own, plain = (results.values(measured, each).numbers.mean() for each in (own, plain))
            found.append(100 * (own / plain - 1))
        axes.barh(place + 0.4 * index - 0.2, found, 0.4, color=colour_of(index), label=when)
    if (FIRST, "BestLoss") in rows:
        at = rows.index((FIRST, "BestLoss"))
        axes.plot(PRINTED_HALFWAY[of], at - 0.2, "D", color="0.35", label=PRINTED)
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(place, [f"{arm}, {label}" for label, arm in rows], fontsize=5)
    axes.invert_yaxis()
    axes.set(xlabel=f"{of}, % against Power-of-Choice")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def _claims(version: str) -> tuple[Claim, ...]:
    data, average, best, average_25, best_25 = (f"{label}{version}" for label in STRATEGIES)
    return (
        Claim(
            "BestLoss is best, AverageLoss close behind, Data worst",
            "Figures 4.12 and 4.13, d = 6, w = 3",
            order(BEST, [(FIRST, best), (FIRST, average), (FIRST, data)]),
        ),
        Claim(
            "BestLoss25 and AverageLoss25 lie between their originals and Data",
            "Figures 4.12 and 4.13, d = 6, w = 3",
            Every(
                order(BEST, [(FIRST, best), (FIRST, best_25), (FIRST, data)]),
                order(BEST, [(FIRST, average), (FIRST, average_25), (FIRST, data)]),
            ),
            erratum="" if version else "as printed, BestLoss25 is Data",
            see="" if version else "schemes/label-clusters.md#as-printed",
        ),
        Claim(
            "BestLoss beats Power-of-Choice, whatever its d",
            "Figures 4.14 and 4.15, d = 6, w = 3",
            Every(
                *(difference(BEST, (FIRST, best), (FIRST, f"Pow-{d}"))
                  for d in (6, 7, *MANY_CANDIDATES))
            ),
        ),
        Claim(
            "halfway BestLoss is over 10 % more accurate than Power-of-Choice",
            "Figure 4.19, round 70, d = 6, w = 3",
            Ratio(BEST_HALF, (FIRST, best), (FIRST, "Pow-6"), 1.1, partly=1.0),
        ),
        Claim(
            "halfway its loss is about 14 % lower",
            "Figure 4.20, round 70, d = 6, w = 3",
            Ratio(LOSS_HALF, (FIRST, "Pow-6"), (FIRST, best), 1.1, partly=1.0),
        ),
        Claim(
            "BestLoss beats Power-of-Choice for every (d, w)",
            "Figure 4.19, round 150",
            _every(BEST, best),
        ),
        Claim(
            "in the worst case its loss is 1 % higher, within 5 points",
            "Figure 4.20, d = 16, w = 8, round 150",
            Own(f"the lowest loss of {best} over that of Pow-16, {LAST},", partial(_worst, best),
                within=0.05, printed=1.01),
        ),
    )  # fmt: skip


FIGURE_4_12 = Recipe(
    "thesis-fig-4-12",
    "Strategies over clusters beside Power-of-Choice, four numbers of clients",
    PAPER,
    where="Figures 4.12 to 4.15, 4.19 and 4.20",
    cells=tuple(cell(arms(d, w), name=label) for label, (d, w) in NAMES.items()),
    scales=SCALES | {
        "quick": replace(
            SCALES["quick"],
            changed=f"{SCALES['quick'].changed} {SOONER_SAID}",
            each={
                label: {**SCALES["quick"].each[label], "arms": arms(d, w, SOONER)}
                for label, (d, w) in NAMES.items()
            },
        ),
        "standard": replace(
            SCALES["standard"],
            changed=f"{SCALES['standard'].changed} With other (d, w) than (6, 3) only "
            "Power-of-Choice and BestLoss.",
            each={
                label: {"arms": {arm: arms(d, w)[arm] for arm in (f"Pow-{d}", *BEST_LOSS)}}
                for label, (d, w) in NAMES.items()
                if label != FIRST
            },
        ),
    },
    claims=for_both(_claims),
    panels=(
        *(Curves(of, cell=label, smooth="best", title=f"{title}, {label}")
          for label in NAMES
          for of, title in (("accuracy", "best accuracy so far"),
                            ("test_loss", "lowest loss so far"))),
        *(Drawn(partial(_relative, of)) for of in PRINTED_HALFWAY),
    ),
    shows="Best accuracy and lowest loss so far for the strategies over clusters, for (d, w) = "
    "(6, 3), (8, 4), (16, 8), beside Power-of-Choice with several d; then both relative to "
    "Power-of-Choice at rounds 70 and 150. BestLoss is ahead of everything, by over 10 % of "
    "accuracy and 14 % of loss at round 70; in the worst case, (16, 8), its loss is 1 % higher.",
    notes=NOTES,
    readings=readings("pixels", "losses", "data", "least"),
)  # fmt: skip
