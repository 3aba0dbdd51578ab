"""Figures 3 and 4: how Algorithms 1 and 2 pour clients into m distributions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

import numpy as np

from fedcohort.core.cohort import Replies
from fedcohort.core.federation import Federation
from fedcohort.core.types import Floats
from fedcohort.data.partition.dirichlet_per_client import PAPER1_SIZES
from fedcohort.designs import Rows
from fedcohort.recipes.clustered import PAPER
from fedcohort.reproduction import (
    Claim,
    Computed,
    Drawn,
    Every,
    Exact,
    Holds,
    Recipe,
    Results,
    Scale,
)
from fedcohort.schemes import scheme
from fedcohort.selector import Selector

M = 10
TYPES = 8
"""Directions in which updates point, for the picture of Algorithm 2."""


def designs(seed: int) -> dict[str, Rows]:
    """The distributions of both algorithms for the sizes of the CIFAR-10 experiments.

    For Algorithm 2 every client has sent one update, in one of a few directions, with noise.
    """
    federation = Federation.from_sizes(PAPER1_SIZES)
    n, rng = len(PAPER1_SIZES), np.random.default_rng(seed)
    towards = np.eye(TYPES)[rng.integers(TYPES, size=n)]
    updates = towards + 0.05 * rng.standard_normal(towards.shape)
    found = {}
    for name, words in (("Algorithm 1", "clustered-size"), ("Algorithm 2", "clustered-similarity")):
        selector = Selector(scheme(words, m=M), federation, seed=seed)
        seen: set[int] = set()
        while words == "clustered-similarity" and len(seen) < n:
            chosen = selector.select().clients
            selector.observe(Replies(chosen, {"update": updates[chosen]}))
            seen |= set(chosen.tolist())
        found[name] = cast(Rows, selector.design())
    return found


def filled(law: Rows) -> Floats:
    """(rows, clients): the chance of every client in every distribution."""
    row, client, mass = law.entries
    table = np.zeros((int(row.max()) + 1, len(PAPER1_SIZES)))
    np.add.at(table, (row, client), mass / law.width)
    return table


def compute(scale: Scale, seed: int) -> Computed:
    """What the pictures show, in numbers."""
    sizes, total = np.array(PAPER1_SIZES), sum(PAPER1_SIZES)
    laws = designs(seed)
    md = sum(Fraction(size, total) * (1 - Fraction(size, total)) for size in PAPER1_SIZES) / M
    samples: dict[str, Any] = {"MD: variance of weights": float(md)}
    columns = {"client": np.arange(len(sizes)), "size": sizes}
    for name, law in laws.items():
        table = filled(law)
        samples[f"{name}: every distribution is full, every client has its share"] = bool(
            np.allclose(table.sum(axis=1), 1) and np.allclose(table.sum(axis=0), M * sizes / total)
        )
        samples[f"{name}: variance of weights"] = float(law.variance().sum())
        samples[f"{name}: chances above 0"] = np.count_nonzero(table)
        shared = np.count_nonzero(table, axis=0)
        samples[f"{name}: clients in two distributions"] = np.count_nonzero(shared == 2)
        samples[f"{name}: most distributions of a client"] = int(shared.max())
        for k, row in enumerate(table):
            columns[f"{name}, W{k + 1}"] = row
    return Computed(columns, samples)


def _draw(name: str) -> Drawn:
    """Distributions as bars, clients as pieces of them."""

    def draw(axes: Any, results: Results) -> None:
        for k in range(M):
            row = results.columns[f"{name}, W{k + 1}"]
            left = 0.0
            for client in np.flatnonzero(row):
                shade = 0.35 + 0.6 * (client % 7) / 7
                axes.barh(
                    k + 1, row[client], left=left, color=str(shade), edgecolor="white", lw=0.3
                )
                left += row[client]
        axes.set(xlabel="chance of every client", ylabel="distribution", title=name)
        axes.invert_yaxis()

    return Drawn(draw)


def _full(name: str) -> Claim:
    return Claim(
        f"{name} fills m distributions and gives every client m times its share",
        "Proposition 1",
        Holds(f"{name}: every distribution is full, every client has its share"),
    )


FIGURE_3 = Recipe(
    "clustered-fig3",
    "How Algorithms 1 and 2 pour 100 clients into 10 distributions",
    PAPER,
    where="Figures 3 and 4",
    compute=compute,
    scales={"quick": Scale(), "standard": Scale(seeds=5), "full": Scale(seeds=5)},
    claims=(
        _full("Algorithm 1"),
        _full("Algorithm 2"),
        Claim(
            "under Algorithm 1 weights vary less than under MD",
            "Theorem 3; exactly 4116/47045 against 0.09869",
            Every(
                Exact("Algorithm 1: variance of weights", 4116 / 47045, 1e-12),
                Exact("MD: variance of weights", 0.09869, 5e-6),
            ),
        ),
        Claim(
            "no more than two distributions share a small client, at most n + m - 1 chances",
            "Figure 3; here 108 chances, 8 clients in two distributions",
            Every(
                Exact("Algorithm 1: clients in two distributions", 8, 0),
                Exact("Algorithm 1: most distributions of a client", 2, 0),
                Exact("Algorithm 1: chances above 0", 108, 0),
            ),
        ),
    ),
    panels=(_draw("Algorithm 1"), _draw("Algorithm 2")),
    shows="Two drawings. Algorithm 1 fills one distribution after the other with clients by "
    "decreasing size; a client that does not fit goes on in the next. Algorithm 2 gives each of "
    "the m largest groups a distribution of its own and splits the other groups among the room "
    "that is left.",
    notes=(
        "Sizes are those of the CIFAR-10 experiments. For Algorithm 2 every client sent one update "
        f"in one of {TYPES} directions, with noise: the paper's drawing has no numbers.",
    ),
)
