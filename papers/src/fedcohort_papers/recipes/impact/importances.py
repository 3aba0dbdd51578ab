"""Section 4.2: how far importances by size are from 1/n, without training."""

from __future__ import annotations

import numpy as np

from fedcohort.simulation import Problem
from fedcohort_papers.recipes.impact import PAPER
from fedcohort_papers.reproduction import (
    COMPUTED,
    Claim,
    Close,
    Columns,
    Computed,
    Recipe,
    Scale,
    difference,
)

PRINTED = {10: 0.13, 80: 0.017}
NEAR = 0.2
"""A fifth of the printed number more or less."""
CHOSEN = "the margin, when .195 and .022 were known"


def _spread(n: int) -> str:
    return f"spread of importances, n = {n}"


def compute(scale: Scale, seed: int) -> Computed:
    """The standard deviation of n_i / M over roles that are drawn at random."""
    samples, columns = {}, {}
    for n in PRINTED:
        sizes = Problem("shakespeare", f"natural:n={n}", partition_seed=seed).task().sizes
        shares = np.array(sizes) / sum(sizes)
        samples[_spread(n)] = float(shares.std())
        columns[f"n = {n}"] = np.sort(shares)[::-1][: min(PRINTED)] * n
    return Computed({"client": np.arange(1.0, min(PRINTED) + 1), **columns}, samples)


IMPORTANCES = Recipe(
    "impact-importances",
    "How far the importances of Shakespeare's roles are from 1/n",
    PAPER,
    where="Section 4.2",
    compute=compute,
    scales={"quick": Scale(seeds=3), "standard": Scale(seeds=20), "full": Scale(seeds=20)},
    claims=(
        *(
            Claim(
                f"with n = {n} importances are 1/{n} ± {printed:g}, within a fifth",
                f"{printed:g}, Section 4.2",
                Close(COMPUTED, _spread(n), printed, NEAR * printed),
                exploratory=CHOSEN,
                kind="theory",
            )
            for n, printed in PRINTED.items()
        ),
        Claim(
            "the spread falls as there are more clients",
            "0.13 and 0.017, Section 4.2",
            difference(COMPUTED, _spread(10), _spread(80)),
            kind="theory",
        ),
    ),
    panels=(
        Columns(
            "client",
            {f"n = {n}": f"n = {n}" for n in PRINTED},
            "client, the largest first",
            "importance times n",
        ),
    ),
    shows="Two numbers in the text, no figure.",
    readings=(
        "roles: drawn at random here; the first users of LEAF's version are possible",
        "±: the standard deviation over the clients of one federation here, the mean over 20 "
        "federations; that of one federation is possible",
    ),
)
