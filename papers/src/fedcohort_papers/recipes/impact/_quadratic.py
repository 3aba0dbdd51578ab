"""The synthetic scenario of Section 4.1: quadratic losses, in closed form and simulated.

Client i has the loss 1/2 ||theta - theta_i*||^2, one client has importance r and the others share
the rest equally. What one round does is known in closed form, so theory stands beside simulation,
and for n = 10 beside all outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from math import factorial, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats
from fedcohort.designs import Everyone, Rows, Simple
from fedcohort.selection import Design, Federation
from fedcohort.theory import drawn_weights, quadratic
from fedcohort_papers.reproduction import Scale

SCHEMES = ("full", "md", "uniform")
CASES = ("iid", "non-iid")
LEVEL = 1e-6
"""Of all comparisons of a figure together, with an interval that assumes nothing but the range."""
ROUNDING = 1e-9
MINIMA_NOTE = (
    "The text says minima ~ N(0, I); the authors' code draws them, and the first model, from "
    "Uniform(-1, 1)^20. We follow the code (with our own generator)."
)

MINIMA_READING = (
    "minima and first model: Uniform(-1, 1)^20 here, as in the authors' code; N(0, I), as in the "
    "text, is possible"
)


@dataclass(frozen=True)
class Scenario:
    """The settings of Section 4.1."""

    n: int = 10
    m: int = 5
    dimension: int = 20
    eta_l: float = 0.1
    steps: int = 10
    eta_g: float = 1.0

    @property
    def phi(self) -> float:
        """What a local training covers of the way to the local minimum."""
        return 1.0 - (1.0 - self.eta_l) ** self.steps

    def importance(self, r: float) -> Floats:
        """(n,) equation (15)."""
        return np.array([r] + [(1.0 - r) / (self.n - 1)] * (self.n - 1))

    def laws(self, r: float) -> dict[str, Design]:
        """The three designs of the figure."""
        shares = Federation(importance=self.importance(r)).shares
        return {
            "full": Everyone(shares),
            "md": Rows.alike(shares, self.m),
            "uniform": Simple(shares, self.m),
        }

    def problem(self, case: str, seed: int) -> tuple[Floats, Floats]:
        """Minima (n, d) and the first model (d,)."""
        rng = stream(seed, "minima")
        minima = rng.uniform(-1, 1, (self.n, self.dimension))
        start = rng.uniform(-1, 1, self.dimension)
        if case == "iid":
            minima = np.tile(minima[0], (self.n, 1))
        return minima, start


class Point(NamedTuple):
    """Squared distance after one round: theory, all outcomes, simulation."""

    theory: float
    spread: float  # exact standard deviation
    fourth: float  # exact fourth central moment
    low: float
    high: float
    simulated: float
    simulated_spread: float
    simulated_low: float
    simulated_high: float


def outcomes(scenario: Scenario, name: str, r: float) -> tuple[Floats, Floats]:
    """(k,) probabilities and (k, n) weights of all cohorts of a scheme."""
    n, m, p = scenario.n, scenario.m, scenario.importance(r)
    if name == "full":
        return np.ones(1), p[None, :]
    if name == "uniform":
        chosen = np.array(list(combinations(range(n), m)))
        weights = np.zeros((len(chosen), n))
        np.put_along_axis(weights, chosen, n / m * p[chosen], axis=1)
        return np.full(len(chosen), 1.0 / len(chosen)), weights
    drawn = np.array(list(combinations_with_replacement(range(n), m)))
    counts = (drawn[:, :, None] == np.arange(n)).sum(axis=1)  # (k, n)
    ways = factorial(m) / np.prod(np.vectorize(factorial)(counts), axis=1)
    return ways * np.prod(p**counts, axis=1), counts / m


def after_one_round(
    scenario: Scenario, name: str, r: float, case: str, seed: int, repetitions: int
) -> Point:
    """One point of Figures 1 and 3."""
    minima, start = scenario.problem(case, seed)
    law, p = scenario.laws(r)[name], scenario.importance(r)
    exact = quadratic(
        law, minima, start, eta_l=scenario.eta_l, steps=scenario.steps, eta_g=scenario.eta_g
    )
    chance, weights = outcomes(scenario, name, r)
    possible = _distances(scenario, weights, minima, start, p)
    rng = stream(seed, f"rounds {name} {case} {r!r}")
    drawn = _distances(scenario, drawn_weights(law, repetitions, rng), minima, start, p)
    off = possible - exact.total
    return Point(
        exact.total,
        sqrt(float(chance @ off**2)),
        float(chance @ off**4),
        possible.min(),
        possible.max(),
        drawn.mean(),
        sqrt(float(np.mean((drawn - exact.total) ** 2))),
        drawn.min(),
        drawn.max(),
    )


def _distances(
    scenario: Scenario, weights: Floats, minima: Floats, start: Floats, p: Floats
) -> Floats:
    """(k,) squared distance to the optimum after a round with each row of weights."""
    step = weights @ (scenario.phi * (minima - start))  # (k, d)
    out: Floats = ((start + scenario.eta_g * step - p @ minima) ** 2).sum(axis=1)
    return out


def bernstein(variance: float, width: float, repetitions: int, level: float) -> float:
    """How far a mean may be from its expectation, with no assumption but variance and range.

    Exceeded with probability ``level`` at most, for any number of repetitions.
    """
    need = log(2 / level)
    slack = width * need / 3
    return (slack + sqrt(slack**2 + 2 * need * max(0.0, variance) * repetitions)) / repetitions


def off_mean(point: Point, repetitions: int, level: float) -> float:
    """Theory against the mean of simulations, in units of what is allowed."""
    reach = bernstein(point.spread**2, point.high - point.low, repetitions, level)
    return abs(point.theory - point.simulated) / (reach + ROUNDING)


def off_spread(point: Point, repetitions: int, level: float) -> float:
    """The same for the mean squared deviation from theory."""
    width = max(point.high - point.theory, point.theory - point.low) ** 2
    reach = bernstein(point.fourth - point.spread**4, width, repetitions, level)
    return abs(point.spread**2 - point.simulated_spread**2) / (reach + ROUNDING)


def grid(points: int) -> Floats:
    """Values of r inside (0, 1): at the ends some clients would have no importance."""
    return (np.arange(points) + 0.5) / points


def points_of(scale: Scale, seed: int) -> dict[tuple[str, str], list[Point]]:
    """Every point of Figures 1 and 3, by case and scheme."""
    scenario, repetitions = Scenario(), scale.numbers["repetitions"]
    return {
        (case, name): [
            after_one_round(scenario, name, r, case, seed, repetitions)
            for r in grid(scale.numbers["points"]).tolist()
        ]
        for case in CASES
        for name in SCHEMES
    }


def columns_of(
    points: dict[tuple[str, str], list[Point]], fields: tuple[str, ...]
) -> dict[str, Any]:
    """Columns ``case scheme field`` over r."""
    number = len(next(iter(points.values())))
    columns: dict[str, Any] = {"r": grid(number)}
    for (case, name), row in points.items():
        for field in fields:
            columns[f"{case} {name} {field}"] = np.array([getattr(p, field) for p in row])
    return columns
