"""Figures 1 and 3 of "On the Impact of Client Sampling on Federated Learning Convergence".

The synthetic scenario of Section 4.1: client i has the loss 1/2 ||theta - theta_i*||^2, one
client has importance r and the others share the rest equally. What one round does is known in
closed form, so theory stands beside simulation, and for n = 10 beside all outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from math import factorial, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from fedcohort.core.design import Design
from fedcohort.core.errors import BadParameter
from fedcohort.core.federation import Federation
from fedcohort.core.parameters import is_whole
from fedcohort.core.streams import stream
from fedcohort.core.types import Floats
from fedcohort.designs import Everyone, Rows, Simple
from fedcohort.recipes.base import Outcome, Recipe, Verdict
from fedcohort.theory import crossing_share, drawn_weights, quadratic

PAPER = "Fraboni, Vidal, Kameni, Lorenzi (2021), On the Impact of Client Sampling"
SCHEMES = ("full", "md", "uniform")
CASES = ("iid", "non-iid")
LEVEL = 1e-6
INTERVAL = "within the interval of level 1e-6 (Bernstein)"
ROUNDING = 1e-9
MINIMA_NOTE = (
    "The text says minima ~ N(0, I); the authors' code draws them, and the first model, from "
    "Uniform(-1, 1)^20. We follow the code (with our own generator)."
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


def _grid() -> Floats:
    """200 values of r inside (0, 1): at the ends some clients would have no importance."""
    return (np.arange(200) + 0.5) / 200


def _points(seed: int, repetitions: int) -> dict[tuple[str, str], list[Point]]:
    scenario = Scenario()
    return {
        (case, name): [
            after_one_round(scenario, name, r, case, seed, repetitions) for r in _grid().tolist()
        ]
        for case in CASES
        for name in SCHEMES
    }


def _columns(points: dict[tuple[str, str], list[Point]], fields: tuple[str, ...]) -> dict[str, Any]:
    columns: dict[str, Any] = {"r": _grid()}
    for (case, name), row in points.items():
        for field in fields:
            columns[f"{case} {name} {field}"] = np.array([getattr(p, field) for p in row])
    return columns


def figure_1(seed: int = 0, repetitions: int | None = None) -> Outcome:
    """The decomposition theorem, theory beside simulation."""
    number = checked(repetitions, 1000)
    points = _points(seed, number)
    columns = _columns(points, ("theory", "simulated"))

    def draw(figure: Any) -> None:
        axes = figure.subplots(2, 2, sharex=True)
        for j, case in enumerate(CASES):
            for i, field in enumerate(("theory", "simulated")):
                for name in SCHEMES:
                    axes[i, j].plot(columns["r"], columns[f"{case} {name} {field}"], label=name)
                axes[i, j].set(title=f"{case}, {field}", yscale="log")
                axes[i, j].axvline(crossing_share(10, 5), lw=0.5, color="grey")
            axes[1, j].set_xlabel("importance r of client 1")
        axes[0, 0].legend()
        axes[0, 0].set_ylabel("E||theta - theta*||^2 after one round")

    return Outcome(
        columns, _verdicts_1(points, columns, number), draw, settings_of(seed, number),
        (MINIMA_NOTE, "r = 0 and 1 are left out: there clients without importance exist."),
    )  # fmt: skip


def _verdicts_1(
    points: dict[tuple[str, str], list[Point]], columns: dict[str, Any], number: int
) -> tuple[Verdict, ...]:
    every = [p for row in points.values() for p in row]
    off = [off_mean(p, number, LEVEL / len(every)) for p in every]
    full, md = columns["iid full theory"], columns["iid md theory"]
    gap = float(np.max(np.abs(full - md)))
    best = columns["r"][int(np.argmin(columns["iid uniform theory"] - full))]
    noniid = {name: columns[f"non-iid {name} theory"] for name in SCHEMES}
    least = bool(np.all(noniid["full"] <= np.minimum(noniid["md"], noniid["uniform"]) + 1e-12))
    wins = noniid["uniform"] < noniid["md"]
    inside = columns["r"][wins]
    large = columns["r"] > 0.6
    return (
        Verdict("simulation agrees with theory", INTERVAL, f"at most {max(off):.2f} of it",
                max(off) <= 1),
        Verdict("iid: MD equals full participation", "equal", f"differ by {gap:.1e}", gap < 1e-9),
        Verdict("iid: uniform is comparable only at r = 1/n", "0.1", f"{best:.4f}",
                abs(best - 0.1) < 0.005),
        Verdict("non-iid: full participation is best for every r", "always",
                "always" if least else "not always", least),
        Verdict("non-iid: uniform beats MD near r = 1/n only", "around 0.1",
                f"r in [{inside.min():.3f}, {inside.max():.3f}]" if len(inside) else "never",
                bool(len(inside)) and bool(wins[np.argmin(np.abs(columns["r"] - 0.1))])),
        Verdict("non-iid: for large r MD is better", "r > 0.6",
                "yes" if not wins[large].any() else "no", not bool(wins[large].any())),
    )  # fmt: skip


def figure_3(seed: int = 0, repetitions: int | None = None) -> Outcome:
    """The same rounds: standard deviation, least and largest distance."""
    number = checked(repetitions, 1000)
    points = _points(seed, number)
    fields = Point._fields
    columns = _columns(points, fields)

    def draw(figure: Any) -> None:
        axes = figure.subplots(2, 2, sharex=True)
        for j, case in enumerate(CASES):
            for k, name in enumerate(SCHEMES):
                data = {f: columns[f"{case} {name} {f}"] for f in fields}
                _band(axes[0, j], columns["r"], data["simulated"],
                      data["simulated"] - data["simulated_spread"],
                      data["simulated"] + data["simulated_spread"], f"C{k}", name)  # fmt: skip
                axes[0, j].plot(columns["r"], data["theory"] + data["spread"], f"C{k}--", lw=0.8)
                _band(axes[1, j], columns["r"], data["simulated"], data["simulated_low"],
                      data["simulated_high"], f"C{k}", name)  # fmt: skip
                axes[1, j].plot(columns["r"], data["high"], f"C{k}--", lw=0.8)
            axes[0, j].set_title(f"{case}, standard deviation")
            axes[1, j].set_title(f"{case}, least and largest (dashed: of all outcomes)")
            axes[1, j].set_xlabel("importance r of client 1")
        axes[0, 0].legend()

    return Outcome(
        columns,
        _verdicts_3(points, columns, number),
        draw,
        settings_of(seed, number),
        (MINIMA_NOTE,),
    )


def _band(axes: Any, x: Any, middle: Any, low: Any, high: Any, colour: str, name: str) -> None:
    axes.plot(x, middle, colour, label=name)
    axes.fill_between(x, low, high, color=colour, alpha=0.2)


def _verdicts_3(
    points: dict[tuple[str, str], list[Point]], columns: dict[str, Any], number: int
) -> tuple[Verdict, ...]:
    every = [p for row in points.values() for p in row]
    outside = sum(p.simulated_low < p.low - 1e-9 or p.simulated_high > p.high + 1e-9 for p in every)
    off = [off_spread(p, number, LEVEL / len(every)) for p in every]
    still = max(p.simulated_spread for p in points["iid", "md"])
    large = columns["r"] > 0.6
    more = columns["non-iid uniform spread"][large] > columns["non-iid md spread"][large]
    return (
        Verdict("simulated distances lie among all outcomes", "0 outside", f"{outside} outside",
                outside == 0),
        Verdict("simulated deviations agree with the exact ones", INTERVAL,
                f"at most {max(off):.2f} of it", max(off) <= 1),
        Verdict("iid: MD has no spread at all", "0", f"{still:.1e}", still < 1e-9),
        Verdict("for large r uniform varies more than MD", "r > 0.6",
                "always" if more.all() else "not always", bool(more.all())),
    )  # fmt: skip


def settings_of(seed: int, repetitions: int) -> dict[str, Any]:
    """What is needed to run it again."""
    base = Scenario()
    return {
        "seed": seed, "repetitions": repetitions, "n": base.n, "m": base.m, "K": base.steps,
        "dimension": base.dimension, "eta_l": base.eta_l, "eta_g": base.eta_g,
    }  # fmt: skip


def checked(repetitions: int | None, default: int) -> int:
    """A number of repetitions that is enough for the verdicts."""
    if repetitions is None:
        return default
    if not is_whole(repetitions) or repetitions < 100:
        raise BadParameter("seeds", "this recipe", "an int of at least 100", repetitions)
    return repetitions


FIGURE_1 = Recipe(
    "impact-fig1",
    "The decomposition theorem: theory beside simulation",
    f"{PAPER}, Figure 1",
    figure_1,
    "1000 simulated rounds per point",
)
FIGURE_3 = Recipe(
    "impact-fig3",
    "The same with standard deviation, least and largest distance",
    f"{PAPER}, Figure 3",
    figure_3,
    "1000 simulated rounds per point",
)
