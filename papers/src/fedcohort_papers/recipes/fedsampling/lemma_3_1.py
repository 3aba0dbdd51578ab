"""Lemma 3.1 and Corollary 3.1: the error of the rate K/N~."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort._internal.random import stream
from fedcohort._internal.types import Array
from fedcohort.theory import rate_error
from fedcohort_papers.recipes.fedsampling import PAPER
from fedcohort_papers.reproduction import Claim, Columns, Computed, Exact, Holds, Recipe, Scale

CLIENTS = (100, 200, 400, 800, 1600, 3200)
THRESHOLD, ALPHA, MEAN = 20, 0.5, 4
"""M, the chance of a true answer, and the mean number of samples of a client."""
CLIPPED = 5
"""A threshold that clips sizes."""


def compute(scale: Scale, seed: int) -> Computed:
    """The exact squared error beside its leading term, as clients become more."""
    sizes = 1 + stream(seed, "sizes").poisson(MEAN - 1, CLIENTS[-1])
    rows = []
    for n in CLIENTS:
        mine, samples = sizes[:n], n / 2
        free = rate_error(mine, samples, ALPHA, THRESHOLD)
        cut = rate_error(mine, samples, ALPHA, CLIPPED)
        bias = (free.total / cut.mean - 1) ** 2
        rows.append(
            (free.squared, free.leading, free.samples_squared / samples**2,
             cut.samples_squared / samples**2, bias)
        )  # fmt: skip
    names = ("squared error", "leading term", "relative", "relative, clipped", "limit, clipped")
    table = np.array(rows).T
    columns: dict[str, Array] = {"clients": np.array(CLIENTS, dtype=np.float64)}
    columns |= dict(zip(names, table, strict=True))
    relative, clipped = columns["relative"], columns["relative, clipped"]
    found: dict[str, Any] = {
        "exact over leading, at the end": float(table[0, -1] / table[1, -1]),
        "the relative error falls with the number of clients": bool(np.all(np.diff(relative) < 0)),
        "relative error at the end": float(relative[-1]),
        "with clipped sizes it falls towards 0": bool(clipped[-1] < 2 * relative[-1]),
        "relative error at the end, clipped": float(clipped[-1]),
    }
    return Computed(columns, found)


LEMMA_3_1 = Recipe(
    "fedsampling-lemma",
    "The error of the sampling rate when the number of samples is estimated privately",
    PAPER,
    where="Lemma 3.1 and Corollary 3.1",
    compute=compute,
    scales={"quick": Scale(seeds=2), "standard": Scale(seeds=5), "full": Scale(seeds=5)},
    claims=(
        Claim(
            "the squared error of K/N~ is K^2 Var(N~)/N^4 with many clients",
            "Lemma 3.1, leading term",
            Exact("exact over leading, at the end", 1.0, 0.05),
            erratum="the series converges for |N~ - N| < N only; with a floor under N~ it holds",
            see="theory.md",
            kind="theory",
        ),
        Claim(
            "the number of samples tends to K",
            "Corollary 3.1",
            Holds(
                "the relative error falls with the number of clients",
                "the squared relative error falls from every number of clients to the next",
                "relative error at the end",
            ),
            erratum="on average it is more than K",
            see="theory.md",
            kind="theory",
        ),
        Claim(
            "so it does where sizes are clipped at M",
            "Corollary 3.1 has no condition on sizes",
            Holds(
                "with clipped sizes it falls towards 0",
                "at the end at most twice the error without clipping",
                "relative error at the end, clipped",
            ),
            erratum="a clipped size is lost for good",
            see="theory.md",
            kind="theory",
        ),
    ),
    panels=(
        Columns("clients", {"squared error": "exact", "leading term": "leading term"}, "clients",
                "squared error of the rate", log="xy"),
        Columns("clients", {"relative": "no size clipped", "relative, clipped": "clipped",
                            "limit, clipped": "limit of that"},
                "clients", "squared relative error of the number of samples", log="xy"),
    ),
    shows="A lemma and a corollary: the error of the rate vanishes as clients become more.",
    notes=("For the rate with a floor under N~; without one its expectation need not exist.",),
    readings=(
        "the floor of N~: the number of clients, as in the authors' code; none is printed",
        "how clients are added: as more draws from one law of sizes; sizes that grow with the "
        "number of clients are possible, and (14) would not cover them",
    ),
)  # fmt: skip
