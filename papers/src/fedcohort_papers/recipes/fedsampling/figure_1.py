"""Figure 1: how often a sample takes part, and how much it counts, under three ways to choose."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fedcohort._internal.types import Array
from fedcohort_papers.recipes.fedsampling import PAPER
from fedcohort_papers.reproduction import (
    Claim,
    Columns,
    Computed,
    Every,
    Exact,
    Holds,
    Recipe,
    Scale,
)

SIZES = (2, 1, 1)
"""Samples of the clients c_0, c_1, c_2 in the figure. One client takes part, or as many samples as
a client has on average."""
WAYS = ("uniform clients", "weighted clients", "FedSampling")


def exploitation(sizes: tuple[int, ...]) -> dict[str, list[tuple[Fraction, Fraction]]]:
    """By way: for a sample of every client its chance, and its expected share of the step."""
    n, total = len(sizes), sum(sizes)
    every = Fraction(1, total)
    mean = Fraction(total, n)
    return {
        "uniform clients": [(Fraction(1, n), Fraction(1, n * size)) for size in sizes],
        "weighted clients": [(Fraction(size, total), every) for size in sizes],
        "FedSampling": [(mean / total, every) for _ in sizes],
    }


def compute(scale: Scale, seed: int) -> Computed:
    """Chances and shares, and how unequal they are."""
    columns: dict[str, Array] = {"size": np.array(SIZES)}
    samples: dict[str, Any] = {}
    for way, rows in exploitation(SIZES).items():
        for what, values in zip(("chance", "share"), zip(*rows, strict=True), strict=True):
            columns[f"{way}: {what}"] = np.array([float(value) for value in values])
            samples[f"{way}: largest over smallest {what}"] = float(max(values) / min(values))
            for client, value in enumerate(values):
                samples[f"{way}: {what} in c_{client}"] = float(value)
    for way in WAYS:
        samples[f"{way} is even"] = all(
            samples[f"{way}: largest over smallest {what}"] == 1 for what in ("chance", "share")
        )
    return Computed(columns, samples)


def _chance(way: str, client: int, printed: float) -> Exact:
    return Exact(f"{way}: chance in c_{client}", printed, 0)


FIGURE_1 = Recipe(
    "fedsampling-fig1",
    "How often a sample takes part, and how much it counts",
    PAPER,
    where="Figure 1",
    compute=compute,
    scales={"quick": Scale(), "standard": Scale(), "full": Scale()},
    claims=(
        Claim(
            "uniform sampling of clients exploits data unevenly",
            "chance 1/3 each; a sample of c_0 weighs 1/2, of c_1 and c_2 1",
            Every(
                *(_chance("uniform clients", client, 1 / 3) for client in range(3)),
                Exact("uniform clients: largest over smallest share", 2, 0),
            ),
            kind="toy",
        ),
        Claim(
            "so does weighted sampling of clients",
            "chances 1/2 in c_0, 1/4 in c_1 and c_2",
            Every(
                *(
                    _chance("weighted clients", client, 1 / size)
                    for client, size in enumerate((2, 4, 4))
                ),
            ),
            kind="toy",
        ),
        Claim(
            "but under weighted sampling every sample counts alike in expectation",
            "not printed: called biased",
            Exact("weighted clients: largest over smallest share", 1, 0),
            ours=True,
            kind="toy",
        ),
        Claim(
            "FedSampling exploits data evenly",
            "the same chance for every sample",
            Holds("FedSampling is even"),
            kind="toy",
        ),
    ),
    panels=tuple(
        Columns("size", {f"{way}: {what}": way for way in WAYS}, "samples of the client", label)
        for what, label in (("chance", "chance of a sample"), ("share", "its expected share"))
    ),
    shows="A toy example with three clients of 2, 1 and 1 samples: the chances of samples under "
    "uniform and weighted sampling of clients and under FedSampling: only the last are all equal.",
    notes=(
        "Under weighted sampling the chance of a sample grows with its client, its expected share "
        "of the step does not: the scheme is unbiased.",
    ),
    readings=(
        "chance: of a sample to take part in one round; its weight in the step, which the text "
        "calls biased for uniform sampling, is another reading; there weighted sampling is even",
        "samples that FedSampling wants: 4/3, as many as a client has on average; with any other "
        "number the chances are equal, too",
    ),
    version=2,
)
