"""Balanced cohorts beside clustered ones, plain and with a memory: what the recipes share."""

from __future__ import annotations

from dataclasses import replace
from math import exp
from statistics import NormalDist

from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.beyond import PAPER
from fedcohort_papers.reproduction import (
    Alike,
    Bars,
    Cell,
    Claim,
    Curves,
    Every,
    Judge,
    Recipe,
    Scale,
    difference,
)

N, M = 100, 10
SCHEMES = {
    "md": f"md:m={M}",
    "uniform": f"uniform:m={M}",
    "similarity": f"clustered-similarity:m={M}",
    "labels": f"balanced:m={M},by=labels",
    "updates": f"balanced:m={M},by=updates",
}
HOW = {"": "", " + memory": "+memory", " + guess": "+memory:guess=labels"}
ARMS = {
    f"{label}{how}": word + more for label, word in SCHEMES.items() for how, more in HOW.items()
}
ONE, SIZES, EVEN, WRITERS = "one class", "Dirichlet 0.1 with sizes", "Dirichlet 0.3", "writers"
MARGIN = 0.005
"""Areas that differ by less are alike: half a point of accuracy."""


def lognormal(n: int, mean: float, sigma: float = 1.0) -> str:
    """Sizes at the quantiles of a log-normal law, as a partition takes them.

    >>> lognormal(3, 100)
    '28-75-197'
    """
    law = NormalDist(0, sigma)
    raw = [exp(law.inv_cdf((i + 0.5) / n)) for i in range(n)]
    return "-".join(str(round(n * mean * x / sum(raw))) for x in raw)


DIVISIONS = {
    ONE: f"one-class-per-client:n={N},per_client=500",
    SIZES: f"dirichlet-per-client:alpha=0.1,sizes={lognormal(N, 300)}",
    EVEN: f"dirichlet-per-client:n={N},alpha=0.3",
    WRITERS: f"natural:n={N}",
}


def _more(more: str, less: str, *divisions: str) -> Judge:
    """More area under the curve, on every division."""
    return Every(*(difference("area", (each, more), (each, less)) for each in divisions))


def _alike(one: str, other: str, *divisions: str) -> Judge:
    return Every(*(Alike("area", (each, one), (each, other), MARGIN) for each in divisions))


def claims(number: int) -> tuple[Claim, ...]:
    """What the prototype found, with softmax regression (0) and with an MLP (1)."""

    def points(*printed: tuple[float, float]) -> str:
        shown = ", ".join(f"{pair[number]:+.1f}" for pair in printed)
        return f"area under the curve of the prototype, in points: {shown}"

    every = (
        Claim(
            "by labels, balanced cohorts beat clustered ones wherever labels are skewed",
            points((6.4, 12.1), (1.1, 1.3), (1.2, 1.3)),
            _more("labels", "similarity", ONE, SIZES, EVEN),
        ),
        Claim(
            "by updates, they beat clustered ones where clusters are not clean",
            points((1.2, 1.6), (0.9, 0.8)),
            _more("updates", "similarity", SIZES, EVEN),
        ),
        Claim(
            "by updates, they lose where clusters are clean",
            points((-0.4, -4.0)),
            _more("similarity", "updates", ONE),
        ),
        Claim(
            "on writers nothing is gained by labels",
            points((-0.1, 0.0)),
            _alike("labels", "similarity", WRITERS),
        ),
        Claim(
            "one class: a memory hurts a design that is balanced by labels",
            points((-3.3, -10.2)),
            _more("labels", "labels + memory", ONE),
        ),
        Claim(
            "one class: with a guess for those not seen yet it beats md with memory",
            points((6.3, 13.0)),
            _more("labels + guess", "md + memory", ONE),
        ),
        Claim(
            "and under Dirichlet's law",
            points((0.6, 0.8), (0.8, 1.0)),
            _more("labels + guess", "md + memory", SIZES, EVEN),
        ),
        Claim(
            "on top of a memory, balance by updates brings nothing under Dirichlet's law",
            points((0.2, 0.6), (0.0, 0.2)),
            _alike("updates + memory", "md + memory", SIZES, EVEN),
        ),
        Claim(
            "a guess helps md as well, where labels are skewed",
            "not tried by the prototype",
            _more("md + guess", "md + memory", ONE, SIZES, EVEN),
        ),
    )
    return tuple(replace(claim, ours=True) for claim in every)


def recipe(name: str, number: int, model: str, title: str, lr: float) -> Recipe:
    """All four divisions with one model."""
    return Recipe(
        name,
        title,
        PAPER,
        where="what a prototype found, repeated",
        cells=tuple(
            Cell(
                division,
                Problem("mnist", partition, model=model),
                ARMS,
                rounds=80,
                work=LocalWork(steps=20, batch=20, lr=lr),
                options={"evaluate_on": 2000},
            )
            for division, partition in DIVISIONS.items()
        ),
        scales={
            "quick": Scale(
                seeds=2,
                rounds=4,
                changed="4 rounds instead of 80, one partition, evaluated on 500 samples.",
                change={"options": {"evaluate_on": 500}},
            ),
            "standard": Scale(
                seeds=2, partitions=3, changed="3 partitions x 2 seeds instead of 5 x 5."
            ),
            "full": Scale(seeds=5, partitions=5),
        },
        claims=claims(number),
        panels=tuple(
            panel
            for division in DIVISIONS
            for panel in (
                Curves(cell=division, title=division),
                Bars("area", cell=division, title=division, xlabel="mean accuracy of all rounds"),
            )
        ),
        notes=(
            "Images have 28 x 28 pixels where the prototype had 14 x 14, and 5 partitions x 5 "
            "seeds are run instead of 3 x 3. The step size was a first guess.",
        ),
    )
