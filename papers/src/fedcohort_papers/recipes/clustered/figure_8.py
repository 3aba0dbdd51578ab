"""Figures 8 and 9: the number of local steps, and of clients per round."""

from __future__ import annotations

from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import MD, arms, of_both
from fedcohort_papers.recipes.clustered._cifar import (
    CIFAR_READINGS,
    FEW,
    LOSS,
    NOTES,
    cell,
    divided,
    work,
)
from fedcohort_papers.reproduction import (
    Contrast,
    Curves,
    Every,
    Judge,
    Learned,
    Recipe,
    Scale,
    difference,
)

CELLS = (
    cell("N = 10", arms(10), steps=10, lr=0.1, rounds=2000),
    cell("N = 500", arms(10), steps=500, rounds=500),
    cell("m = 5", arms(5)),
    cell("m = 20", arms(20)),
)
NAMES = tuple(each.name for each in CELLS)
STEPS = {"N = 10": (1, 0.1), "N = 500": (20, 0.05), "m = 5": (10, 0.05), "m = 20": (10, 0.05)}
"""Local steps and their size at the scale ``standard``: fewer by as much everywhere as one can."""


MORE = {"problem": {"partition": divided(0.01, f"{FEW}-{FEW.removeprefix('sizes=')}")}}
"""With twice as many clients none fills a distribution of m = 20 alone."""


def _gain(suffix: str, name: str, sign: float = 1.0) -> dict[tuple[str, str], float]:
    """By how much Algorithm 2 has less training loss than MD."""
    return {(name, MD): sign, (name, f"Algorithm 2{suffix}"): -sign}


def _more(suffix: str, here: str, there: str) -> Judge:
    """Algorithm 2 gains more in one cell than in another."""
    gains = Contrast(LOSS, _gain(suffix, here) | _gain(suffix, there, -1.0))
    return _learned(suffix, gains, here, there)


def _learned(suffix: str, judge: Judge, *cells: str) -> Learned:
    """Open while Algorithm 2 guesses: then losses differ by nothing but noise."""
    return Learned(judge, *((cell, f"Algorithm 2{suffix}") for cell in cells))


def _still_better(suffix: str) -> Judge:
    judge = difference(LOSS, ("m = 20", MD), ("m = 20", f"Algorithm 2{suffix}"))
    return _learned(suffix, judge, "m = 20")


def _faster(suffix: str) -> Judge:
    labels = (MD, f"Algorithm 2{suffix}")
    each = (difference(LOSS, ("m = 5", label), ("m = 20", label)) for label in labels)
    return _learned(suffix, Every(*each), "m = 20")


FIGURE_8 = Recipe(
    "clustered-fig8",
    "More local steps, fewer clients: where clustered sampling gains most",
    PAPER,
    where="Figures 8 and 9",
    cells=CELLS,
    scales={
        "quick": Scale(
            seeds=2,
            rounds=2,
            changed="2 rounds instead of 500 to 2,000; 20 clients of 20 to 60 samples, 40 "
            "for m = 20; N = 1 and 4 for 10 and 500, 3 otherwise, steps of 10, evaluated on 200.",
            change={
                "problem": {"partition": divided(0.01, FEW)},
                "options": {"evaluate_on": 200, "evaluate_every": 1},
            },
            each={
                name: {"work": work(steps, batch=10)} | more
                for name, steps, more in zip(NAMES, (1, 4, 3, 3), ({}, {}, {}, MORE), strict=True)
            },
        ),
        "standard": Scale(
            seeds=3,
            rounds=15,
            changed="15 rounds instead of 500 to 2,000; N = 1 and 20 for 10 and 500, 10 otherwise; "
            "evaluated every 5 rounds on 2,000 samples.",
            change={"options": {"evaluate_every": 5, "evaluate_on": 2000}},
            each={name: {"work": work(*how)} for name, how in STEPS.items()},
        ),
        "full": Scale(seeds=3, changed="3 seeds instead of 1."),
    },
    claims=(
        *of_both(
            "clustered sampling gains more with more local steps",
            "N = 500 against N = 10",
            lambda suffix: _more(suffix, "N = 500", "N = 10"),
        ),
        *of_both(
            "and more with fewer clients per round",
            "m = 5 against m = 20",
            lambda suffix: _more(suffix, "m = 5", "m = 20"),
        ),
        *of_both(
            "it is still better with m = 20", "closer but still better than MD", _still_better
        ),
        *of_both(
            "both learn faster with more clients",
            "the loss with m = 20 is below that with m = 5",
            _faster,
        ),
    ),
    panels=tuple(Curves("train_loss", cell=name, title=name) for name in NAMES),
    shows="Training loss for N = 10 and 500 local steps (m = 10) and for m = 5 and 20 clients "
    "(N = 100), CIFAR-10 with alpha = 0.01. Clustered sampling is below MD everywhere, by more "
    "where N is large and m small.",
    readings=CIFAR_READINGS,
    notes=NOTES,
)  # fmt: skip
