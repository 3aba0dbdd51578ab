"""Figure 1: the decomposition theorem, theory beside simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort_papers.recipes.impact import PAPER
from fedcohort_papers.recipes.impact._quadratic import (
    CASES,
    LEVEL,
    MINIMA_NOTE,
    MINIMA_READING,
    SCHEMES,
    Point,
    columns_of,
    off_mean,
    points_of,
)
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

NEAR = 0.2
"""r is near 1/n = 0.1 where it is at most 1/n away."""
COMPARABLE = 0.01
"""Of the distance under full participation; closer than that two schemes are comparable."""


def compute(scale: Scale, seed: int) -> Computed:
    """E||theta - theta*||^2 after one round, for every r, scheme and case."""
    points = points_of(scale, seed)
    columns = columns_of(points, ("theory", "simulated"))
    return Computed(columns, _samples(points, columns, scale.numbers["repetitions"]))


def _samples(
    points: dict[tuple[str, str], list[Point]], columns: dict[str, Any], repetitions: int
) -> dict[str, float]:
    every = [p for row in points.values() for p in row]
    off = max(off_mean(p, repetitions, LEVEL / len(every)) for p in every)
    r, far = columns["r"], columns["r"] > NEAR
    full, md, uniform = (columns[f"iid {name} theory"] for name in ("full", "md", "uniform"))
    excess = (uniform - full) / full
    full_, md_, uniform_ = (columns[f"non-iid {name} theory"] for name in ("full", "md", "uniform"))
    wins = uniform_ < md_
    return {
        "simulation within its interval": off <= 1,
        "share of it that is used": off,
        "iid: MD against full participation": float(np.abs(full - md).max()),
        "iid: r at which uniform is nearest to full": float(r[int(np.argmin(excess))]),
        "iid: uniform is farther beyond r = 2/n": bool((excess[far] > COMPARABLE).all()),
        "least excess there": float(excess[far].min()),
        "non-iid: full is best": bool(np.all(full_ <= np.minimum(md_, uniform_) + 1e-12)),
        "non-iid: uniform wins at r = 1/n": bool(wins[np.argmin(np.abs(r - 0.1))]),
        "non-iid: uniform wins only below r = 2/n": not wins[far].any(),
        "largest r at which it wins": float(r[wins].max(initial=0.0)),
        "non-iid: MD wins for r > 0.6": not wins[r > 0.6].any(),
    }


FIGURE_1 = Recipe(
    "impact-fig1",
    "The decomposition theorem: theory beside simulation",
    PAPER,
    where="Figure 1",
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
            "theory and simulation agree",
            "curves coincide",
            Holds("simulation within its interval",
                  "every mean within its Bernstein interval, level 1e-6 for all together",
                  "share of it that is used"),
            kind="theory",
        ),
        Claim(
            "iid: MD equals full participation",
            "equal",
            Exact("iid: MD against full participation", 0.0, 1e-9),
            kind="theory",
        ),
        Claim(
            "iid: uniform is comparable to full participation only near r = 1/n",
            "1/n = 0.1",
            Every(
                Exact("iid: r at which uniform is nearest to full", 0.1, 0.005),
                Holds("iid: uniform is farther beyond r = 2/n",
                      "for r > 2/n it is more than 1 % farther", "least excess there"),
            ),
            kind="theory",
        ),
        Claim(
            "non-iid: full participation is best for every r",
            "always",
            Holds("non-iid: full is best"),
            kind="theory",
        ),
        Claim(
            "non-iid: uniform beats MD near r = 1/n only",
            "around 1/n = 0.1",
            Every(
                Holds("non-iid: uniform wins at r = 1/n"),
                Holds("non-iid: uniform wins only below r = 2/n", "",
                      "largest r at which it wins"),
            ),
            kind="theory",
        ),
        Claim(
            "non-iid: for large r MD is better",
            "r > 0.6",
            Holds("non-iid: MD wins for r > 0.6"),
            kind="theory",
        ),
    ),
    panels=tuple(
        Columns("r", {f"{case} {name} {field}": name for name in SCHEMES},
                "importance r of client 1", "squared distance after a round",
                title=f"{case}, {field}", log="y")
        for case in CASES
        for field in ("theory", "simulated")
    ),
    shows="Squared distance to the optimum after one round against the importance r of one "
    "client, for n = 10, m = 5; iid and non-iid minima; theory beside the mean of 1000 "
    "simulations. Iid, MD lies on full participation and uniform touches it near r = 1/n; "
    "non-iid, full is lowest everywhere and uniform is below MD near r = 1/n.",
    readings=(
        MINIMA_READING,
        "'around 1/n': at most 1/n away here; a share of the grid is possible",
        "'comparable': within 1 % of the distance under full participation here",
    ),
    notes=(MINIMA_NOTE, "r = 0 and 1 are left out: there clients without importance exist."),
)  # fmt: skip
