"""Figures 3 and 4: how Algorithms 1 and 2 pour clients into m distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from fedcohort._internal.types import Floats
from fedcohort.data.partition import PAPER1_SIZES
from fedcohort.designs import Rows
from fedcohort.schemes import as_scheme
from fedcohort.selection import Federation, Replies
from fedcohort.server import Selector
from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.recipes.clustered._arms import KINDS, MD, READINGS, SCHEMES, arms
from fedcohort_papers.reproduction import (
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

M = 10
ROUNDING = 1e-12
FULL = "every client is expected m times its share"
LESS = "no weight varies more than under MD"
OFTEN = "every client is chosen at least as often as under MD"
ALIKE = "equal clients have one variance"
DIFFERENT = "different clients of 100 equal ones"
LINES = {"Algorithm 1": "line 13 is wrong", "Algorithm 2": "line 12 is wrong"}
TYPES = 8
"""Directions in which updates point, for the picture of Algorithm 2."""


ALGORITHMS = tuple(label for label in arms(M) if label != MD)
EQUAL = (500,) * 100
"""The clients of Figure 1."""


def designs(sizes: Sequence[int], seed: int) -> dict[str, Rows]:
    """The distributions of MD and of both algorithms, as printed and corrected.

    For Algorithm 2 every client has sent one update, in one of a few directions, with noise.
    """
    federation = Federation.from_sizes(sizes)
    n, rng = len(sizes), np.random.default_rng(seed)
    towards = np.eye(TYPES)[rng.integers(TYPES, size=n)]
    updates = towards + 0.05 * rng.standard_normal(towards.shape)
    found = {}
    for label, word in arms(M).items():
        selector = Selector(as_scheme(word), federation, seed=seed)
        seen: set[int] = set()
        while "similarity" in word and len(seen) < n:
            chosen = selector.select().clients
            selector.observe(Replies(chosen, {"update": updates[chosen]}))
            seen |= set(chosen.tolist())
        found[label] = cast(Rows, selector.design())
    return found


def filled(law: Rows) -> Floats:
    """(rows, clients): the chance of every client in every distribution."""
    row, client, mass = law.entries
    table = np.zeros((law.rows, law.n))
    np.add.at(table, (row, client), (mass / law.width).astype(np.float64))
    return table


def compute(scale: Scale, seed: int) -> Computed:
    """What the pictures show, in numbers, and what the text says of chances and variances."""
    sizes, total = np.array(PAPER1_SIZES), sum(PAPER1_SIZES)
    md = sum(Fraction(size, total) * (1 - Fraction(size, total)) for size in PAPER1_SIZES) / M
    samples: dict[str, Any] = {"MD: variance of weights": float(md)}
    columns = {"client": np.arange(len(sizes)), "size": sizes}
    laws, equal = designs(PAPER1_SIZES, seed), designs(EQUAL, seed)
    variance, chance = laws[MD].variance() + ROUNDING, laws[MD].inclusion() - ROUNDING
    for name in ALGORITHMS:
        law, table = laws[name], filled(laws[name])
        samples[f"{name}: {FULL}"] = bool(np.allclose(table.sum(axis=0), M * sizes / total))
        samples[f"{name}: {LESS}"] = bool(np.all(law.variance() <= variance))
        samples[f"{name}: {OFTEN}"] = bool(np.all(law.inclusion() >= chance))
        samples[f"{name}: variance of weights"] = float(law.variance().sum())
        samples[f"{name}: chances above 0"] = np.count_nonzero(table)
        shared = np.count_nonzero(table, axis=0)
        samples[f"{name}: clients in two distributions"] = np.count_nonzero(shared == 2)
        samples[f"{name}: most distributions of a client"] = int(shared.max())
        samples[f"{name}: {ALIKE}"] = bool(np.ptp(equal[name].variance()) < ROUNDING)
        for k, row in enumerate(table):
            columns[f"{name}, W{k + 1}"] = row
    for name, law in equal.items():
        samples[f"{name}: {DIFFERENT}"] = law.distinct().mean
        samples[f"{name}: variance of equal clients"] = float(law.variance().sum())
    return Computed(columns, samples | {"MD: chance of 6 to 8 digits": _six_to_eight()})


def _six_to_eight() -> float:
    """The chance that ten draws of ten digits show six to eight different ones."""
    chances = [1.0] + [0.0] * M
    for _ in range(M):
        chances = [
            chances[k] * k / M + (chances[k - 1] * (M - k + 1) / M if k else 0.0)
            for k in range(M + 1)
        ]
    return sum(chances[6:9])


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


def _holds(statement: str, printed: str, sample: str, *names: str) -> Iterator[Claim]:
    """A statement about both algorithms as printed, and corrected; all of it is computed."""
    for suffix in KINDS.values():
        for name in names:
            judge = Holds(f"{name}{suffix}: {sample}")
            wrong = ("", "") if suffix else (LINES[name], "errata.md#clustered-sampling")
            yield Claim(f"{name}{suffix}: {statement}", printed, judge, *wrong, kind="theory")


FIGURE_3 = Recipe(
    "clustered-fig3",
    "How Algorithms 1 and 2 pour 100 clients into 10 distributions",
    PAPER,
    where="Figures 3 and 4, Section 3.2",
    compute=compute,
    version=2,
    scales={"quick": Scale(), "standard": Scale(seeds=5), "full": Scale(seeds=5)},
    claims=(
        *_holds("every client is expected m times its share", "Proposition 1, (8)", FULL, *SCHEMES),
        *_holds("no client's weight varies more than under MD", "(17)", LESS, *SCHEMES),
        *_holds("every client is chosen at least as often as under MD", "(23)", OFTEN, *SCHEMES),
        *_holds("clients of one size have one variance", "Section 6", ALIKE, "Algorithm 1"),
        Claim(
            "Algorithm 1, corrected: weights vary less than under MD",
            "Theorem 3; exactly 4116/47045 against 0.09869, and 10/11 of MD with equal clients",
            Every(
                Exact("Algorithm 1, corrected: variance of weights", 4116 / 47045, 1e-12),
                Exact("MD: variance of weights", 0.09869, 5e-6),
                Exact("Algorithm 1, corrected: variance of equal clients", 0.09, 1e-12),
                Exact("MD: variance of equal clients", 0.099, 1e-12),
            ),
            kind="theory",
        ),
        Claim(
            "Algorithm 1, corrected: no more than two distributions share a small client, at most "
            "n + m - 1 chances",
            "Figure 3; here 108 chances, 8 clients in two distributions",
            Every(
                Exact("Algorithm 1, corrected: clients in two distributions", 8, 0),
                Exact("Algorithm 1, corrected: most distributions of a client", 2, 0),
                Exact("Algorithm 1, corrected: chances above 0", 108, 0),
            ),
            kind="theory",
        ),
        Claim(
            "with 100 equal clients Algorithm 1 chooses ten different ones in every round, MD 9.56",
            "Section 6: less than 10 in 37 % of MD's rounds, always 10 of Algorithm 1",
            Every(
                *(
                    Exact(f"Algorithm 1{suffix}: {DIFFERENT}", 10, 1e-9)
                    for suffix in KINDS.values()
                ),
                Exact(f"MD: {DIFFERENT}", 9.5618, 5e-5),
            ),
            kind="theory",
        ),
        Claim(
            "with MD between 6 and 8 different digits are generally chosen",
            "Section 6; 84 % of the rounds",
            Exact("MD: chance of 6 to 8 digits", 0.84, 0.005),
            kind="theory",
            exploratory="the paper prints no share; 84 % was computed first",
        ),
    ),
    panels=(_draw("Algorithm 1, corrected"), _draw("Algorithm 2, corrected")),
    shows="Two drawings. Algorithm 1 fills one distribution after the other with clients by "
    "decreasing size; a client that does not fit goes on in the next. Algorithm 2 gives each of "
    "the m largest groups a distribution of its own and splits the other groups among the room "
    "that is left.",
    readings=tuple(READINGS[word] for word in ("ties", "rows")),
    notes=(
        "Sizes are those of the CIFAR-10 experiments. For Algorithm 2 every client sent one update "
        f"in one of {TYPES} directions, with noise: the paper's drawing has no numbers.",
    ),
)
