"""Figure 3: the rounds of Figure 1 with standard deviation, least and largest distance."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedcohort_papers.recipes.impact import PAPER
from fedcohort_papers.recipes.impact._quadratic import (
    CASES,
    LEVEL,
    MINIMA_NOTE,
    MINIMA_READING,
    SCHEMES,
    Point,
    columns_of,
    off_spread,
    points_of,
)
from fedcohort_papers.reproduction import (
    Claim,
    Computed,
    Drawn,
    Exact,
    Holds,
    Recipe,
    Results,
    Scale,
)
from fedcohort_papers.reproduction.drawing import colour_of


def compute(scale: Scale, seed: int) -> Computed:
    """Spread and extremes of one round: of all outcomes, and simulated."""
    points, repetitions = points_of(scale, seed), scale.numbers["repetitions"]
    columns = columns_of(points, Point._fields)
    every = [p for row in points.values() for p in row]
    outside = sum(p.simulated_low < p.low - 1e-9 or p.simulated_high > p.high + 1e-9 for p in every)
    off = max(off_spread(p, repetitions, LEVEL / len(every)) for p in every)
    large = columns["r"] > 0.6
    more = columns["non-iid uniform spread"][large] > columns["non-iid md spread"][large]
    samples = {
        "simulated distances outside of all outcomes": outside,
        "simulated deviations within their interval": off <= 1,
        "share of it that is used": off,
        "iid: largest deviation of MD": max(p.simulated_spread for p in points["iid", "md"]),
        "uniform varies more than MD for every r > 0.6": bool(more.all()),
    }
    return Computed(columns, samples)


def _bands(middle: str, low: str, high: str, case: str, axes: Any, results: Results) -> None:
    data = results.columns
    for index, name in enumerate(SCHEMES):
        y, colour = data[f"{case} {name} {middle}"], colour_of(index)
        edges = [data[f"{case} {name} {field}"] for field in (low, high)]
        if low == high:  # a spread, not a place
            edges = [y - edges[0], y + edges[1]]
        axes.plot(data["r"], y, color=colour, label=name)
        axes.fill_between(data["r"], *edges, color=colour, alpha=0.2, lw=0)
    axes.set(xlabel="importance r of client 1", ylabel="squared distance after a round")
    axes.legend()


FIGURE_3 = Recipe(
    "impact-fig3",
    "The same with standard deviation, least and largest distance",
    PAPER,
    where="Figure 3",
    compute=compute,
    scales={
        "quick": Scale(
            changed="300 simulated rounds for every r instead of 1000.",
            numbers={"points": 200, "repetitions": 300},
        ),
        "standard": Scale(seeds=5, changed="5 problems instead of 1.",
                          numbers={"points": 200, "repetitions": 1000}),
        "full": Scale(numbers={"points": 200, "repetitions": 1000}),
    },
    claims=(
        Claim(
            "simulated distances lie among all outcomes",
            "none outside",
            Exact("simulated distances outside of all outcomes", 0, 0),
            kind="toy",
        ),
        Claim(
            "simulated deviations agree with the exact ones",
            "bands coincide",
            Holds("simulated deviations within their interval",
                  "every variance within its Bernstein interval, level 1e-6 for all together",
                  "share of it that is used"),
            kind="theory",
        ),
        Claim(
            "iid: MD has no spread at all",
            "0",
            Exact("iid: largest deviation of MD", 0, 1e-9),
            kind="toy",
        ),
        Claim(
            "for large r uniform varies more than MD",
            "r > 0.6",
            Holds("uniform varies more than MD for every r > 0.6"),
            kind="theory",
        ),
    ),
    panels=tuple(
        Drawn(partial(_bands, "simulated", low, high, case), f"{case}, {what}")
        for what, low, high in (
            ("standard deviation", "simulated_spread", "simulated_spread"),
            ("least and largest", "simulated_low", "simulated_high"),
        )
        for case in CASES
    ),
    shows="The curves of Figure 1 with bands: plus and minus one standard deviation, and from the "
    "least to the largest of the 1000 simulated distances. The bands of uniform sampling widen "
    "with r; iid, MD has none.",
    readings=(MINIMA_READING, "large r: above 0.6 here, where Figure 1 has MD ahead"),
    notes=(MINIMA_NOTE,),
)  # fmt: skip
