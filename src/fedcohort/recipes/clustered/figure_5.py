"""Figure 5: what Dirichlet's alpha does to the labels of clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort.core.streams import stream
from fedcohort.data.partition.dirichlet_per_client import dirichlet_shares
from fedcohort.recipes.clustered import PAPER
from fedcohort.reproduction import Claim, Computed, Drawn, Own, Recipe, Results, Scale

ALPHAS = (0.001, 0.01, 0.1, 10.0)
CLIENTS, CLASSES = 100, 10
ONE, FLAT = 0.95, 0.25
"""The mean share of a client's commonest label: nearly one class; nearly flat (0.1 is flat)."""


def compute(scale: Scale, seed: int) -> Computed:
    """Label shares of 100 clients for every alpha."""
    columns: dict[str, Any] = {"client": np.arange(CLIENTS)}
    samples: dict[str, Any] = {}
    for alpha in ALPHAS:
        shares = dirichlet_shares(CLIENTS, CLASSES, alpha, stream(seed, "partition"))
        columns |= {f"alpha {alpha:g}, class {k}": shares[:, k] for k in range(CLASSES)}
        samples[f"commonest label, alpha {alpha:g}"] = float(shares.max(axis=1).mean())
        samples[f"clients with one label, alpha {alpha:g}"] = int((shares.max(axis=1) > ONE).sum())
    return Computed(columns, samples)


def _commonest(alpha: float) -> str:
    return f"commonest label, alpha {alpha:g}"


def _falls(results: Results) -> Any:
    """How much the commonest label loses from one alpha to the next, at least."""
    found = np.array([results.values("computed", _commonest(a)).numbers for a in ALPHAS])
    return (found[:-1] - found[1:]).min(axis=0)


def _draw(alpha: float) -> Drawn:
    def draw(axes: Any, results: Results) -> None:
        bottom = np.zeros(CLIENTS)
        for k in range(CLASSES):
            row = results.columns[f"alpha {alpha:g}, class {k}"]
            axes.stairs(bottom + row, np.arange(CLIENTS + 1) - 0.5, baseline=bottom, fill=True,
                        color=str(0.1 + 0.09 * k))  # fmt: skip
            bottom = bottom + row
        axes.set(xlabel="client", ylabel="share of each class", ylim=(0, 1))
        axes.set_title(f"alpha = {alpha:g}")

    return Drawn(draw)


FIGURE_5 = Recipe(
    "clustered-fig5",
    "What Dirichlet's alpha does to the labels of clients",
    PAPER,
    where="Figure 5",
    compute=compute,
    scales={"quick": Scale(seeds=5), "standard": Scale(seeds=20), "full": Scale(seeds=20)},
    claims=(
        Claim(
            "with alpha = 0.001 a client has nearly one class only",
            "column (a), first row",
            Own(
                "the mean share of a client's commonest label, alpha = 0.001,",
                lambda results: results.values("computed", _commonest(0.001)),
                above=ONE,
            ),
        ),
        Claim(
            "with alpha = 10 clients have nearly the same shares of all classes",
            "column (a), last row",
            Own(
                "0.25 minus the mean share of a client's commonest label, alpha = 10,",
                lambda results: FLAT - results.values("computed", _commonest(10.0)).numbers,
                above=0.0,
            ),
        ),
        Claim(
            "the smaller alpha, the fewer classes a client has",
            "column (a), from row to row",
            Own("what the commonest label loses from one alpha to the next", _falls, above=0.0),
        ),
    ),
    panels=tuple(_draw(alpha) for alpha in ALPHAS),
    shows="For alpha = 0.001, 0.01, 0.1 and 10 the share of every class of 100 clients, and how "
    "many samples of every class there are in all. With 0.001 a client has one class, with 10 "
    "all of them in similar shares.",
)
