"""Schemes that look at updates, and the memory of them, on MNIST: three recipes.

100 clients, softmax, m = 10, 50 local steps on batches of 50, step size 0.01: the setting of
Section 6 of "Clustered Sampling" and of Table 1 of HCSFed. The division is the same for all
runs; seeds differ in cohorts and mini-batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import is_whole
from fedcohort.core.scheme import Scheme
from fedcohort.core.types import Array, Floats
from fedcohort.learning import Task
from fedcohort.recipes.base import Outcome, Recipe, Verdict
from fedcohort.schemes import scheme
from fedcohort.server import Aggregator, Memory, Plain
from fedcohort.simulation import LocalWork, Trace, simulate
from fedcohort.simulation.problem import Problem

SEEDS = 5
WORK = LocalWork(steps=50, batch=50, lr=0.01)
FULL = 80.0
"""The accuracy that counts as there, in per cent."""
SOONER, LITTLE = 3.0, 2.0
"""Several times sooner; the paper has 2.7 for importance, 3.1 for cluster, 10.7 for hcsfed."""
LAST = 30
"""Rounds at the end over which accuracy and its spread are taken."""
PARTITIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "one class per client": ("one-class-per-client", {"n": 100, "per_client": 500}),
    "Dirichlet 0.1": ("dirichlet-per-client", {"n": 100, "alpha": 0.1}),
}


@dataclass(frozen=True)
class Setting:
    """What the runs of a recipe have in common."""

    data: str = "mnist"
    rounds: int = 60
    m: int = 10
    strata: int = 10
    work: LocalWork = WORK

    def settings(self) -> dict[str, Any]:
        """In plain values."""
        return {"data": self.data, "rounds": self.rounds, "m": self.m, "strata": self.strata}


TABLE, TARGET, REMEMBERED = Setting(), Setting(rounds=150), Setting(rounds=100)


@cache
def task(data: str, division: str) -> Task:
    """The clients and their softmax regression."""
    name, options = PARTITIONS[division]
    return Problem(data, name, options, "softmax").task()


def run(
    setting: Setting, division: str, chooser: Scheme[Any], seed: int, how: Aggregator | None = None
) -> Trace:
    """One run."""
    return simulate(
        task(setting.data, division),
        chooser,
        rounds=setting.rounds,
        seed=seed,
        work=setting.work,
        aggregator=how,
    )


# -- Table 1 of HCSFed -------------------------------------------------------------------------


def members(setting: Setting) -> dict[str, Scheme[Any]]:
    """The ablation, and hcsfed without its questions."""
    m, strata = setting.m, setting.strata
    return {
        "uniform": scheme("uniform", m=m),
        "importance": scheme("importance", m=m),
        "cluster": scheme("cluster", m=m, strata=strata),
        "cluster-neyman": scheme("cluster-neyman", m=m, strata=strata),
        "hcsfed": scheme("hcsfed", m=m, strata=strata),
        "hcsfed, printed weights": scheme("hcsfed", m=m, strata=strata, weights="paper"),
        "hcsfed, stale features": scheme("hcsfed", m=m, strata=strata, features="stale"),
    }


def table_1(seed: int = 0, repetitions: int | None = None, setting: Setting = TABLE) -> Outcome:
    """Rounds to 80 % for every stage of HCSFed."""
    choosers, seeds = members(setting), _seeds(seed, repetitions)
    found: dict[str, list[float]] = {name: [] for name in choosers}
    megabytes: dict[str, list[float]] = {name: [] for name in choosers}
    for each in seeds:
        for name, chooser in choosers.items():
            trace = run(setting, "one class per client", chooser, each)
            reached = trace.rounds_to(FULL / 100)
            found[name].append(setting.rounds + 1 if reached is None else reached)
            up = float((trace.bytes_up + trace.bytes_down).sum()) / setting.rounds
            megabytes[name].append(up / 1e6)
    rounds = {name: np.array(values, dtype=np.float64) for name, values in found.items()}
    verdicts = tuple(
        _sooner(rounds[name], rounds["uniform"], name, factor)
        for name, factor in (
            ("importance", LITTLE),
            ("cluster", SOONER),
            ("cluster-neyman", SOONER),
            ("hcsfed", SOONER),
        )
    )
    columns = _columns(rounds, list(seeds))
    columns["MB per round"] = np.array([np.mean(megabytes[name]) for name in rounds])
    draw = partial(_bars, rounds, f"rounds to {FULL:g} % ({setting.rounds + 1}: never)")
    return Outcome(columns, verdicts, draw, {"seed": seed, **setting.settings()}, NOTES)


def _sooner(mine: Floats, uniform: Floats, name: str, factor: float) -> Verdict:
    ratio = float(uniform.mean() / mine.mean())
    expected = f"{factor:g} times sooner"
    shown = f"{mine.mean():.1f} against {uniform.mean():.1f} rounds: {ratio:.1f} times"
    return Verdict(f"{name} reaches {FULL:g} % sooner than uniform", expected, shown,
                   ratio >= factor)  # fmt: skip


NOTES = (
    "Features are 10 % of the update (signed sums over random groups of coordinates); H = 10.",
    "Weights are unbiased, the allocation is Neyman's with standard deviations.",
)


# -- Algorithm 2 becomes the target ------------------------------------------------------------


def target(seed: int = 0, repetitions: int | None = None, setting: Setting = TARGET) -> Outcome:
    """Accuracy of MD, clustered-similarity and target sampling, round by round."""
    names, seeds = ("md", "clustered-similarity", "target"), _seeds(seed, repetitions)
    traces = {
        name: [
            run(setting, "one class per client", scheme(name, m=setting.m), each) for each in seeds
        ]
        for name in names
    }
    curves = {name: 100 * np.array([t.accuracy for t in traces[name]]) for name in names}
    seen = [all_seen_after(trace) for trace in traces["clustered-similarity"]]
    last = slice(-LAST, None)
    level = {name: rows[:, last].mean(axis=1) for name, rows in curves.items()}
    spread = {name: rows[:, last].std(axis=1) for name, rows in curves.items()}
    gap = level["clustered-similarity"] - level["target"]
    steady = spread["clustered-similarity"].mean() < spread["md"].mean() / 5
    verdicts = (
        Verdict("once everybody was seen, Algorithm 2 is as good as target", "within 0.5 points",
                f"{gap.mean():+.2f} points, all seen after {np.mean(seen):.0f} rounds",
                bool(abs(gap.mean()) < 0.5)),
        Verdict("and as steady", "a fifth of the spread of MD, or less",
                f"{spread['clustered-similarity'].mean():.2f} points against "
                f"{spread['md'].mean():.2f} (target {spread['target'].mean():.2f})",
                bool(steady)),
        Verdict("it beats MD", "more accurate in every repetition",
                f"{(level['clustered-similarity'] - level['md']).mean():+.1f} points",
                bool((level["clustered-similarity"] > level["md"]).all())),
    )  # fmt: skip
    columns: dict[str, Array] = {"round": np.arange(1, setting.rounds + 1)}
    columns |= {name: rows.mean(axis=0) for name, rows in curves.items()}
    columns |= {f"{name}, sd": rows.std(axis=0) for name, rows in curves.items()}

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for name, rows in curves.items():
            axes.plot(columns["round"], rows.mean(axis=0), label=name, lw=1)
        axes.axvline(float(np.mean(seen)), ls=":", lw=1, color="grey")
        axes.set(xlabel="round (dotted: everybody was seen)", ylabel="test accuracy, %")
        axes.legend()

    notes = ("Softmax for the paper's MLP.",)
    return Outcome(columns, verdicts, draw, {"seed": seed, **setting.settings()}, notes)


def all_seen_after(trace: Trace) -> int:
    """After how many rounds every client had taken part; one more than there were, if never."""
    ends = np.concatenate([[0], trace.cohort_ends])
    waiting = set(np.flatnonzero(trace.importance > 0).tolist())
    for round in range(trace.rounds):
        waiting -= set(trace.cohort_clients[ends[round] : ends[round + 1]].tolist())
        if not waiting:
            return round + 1
    return trace.rounds + 1


# -- memory ------------------------------------------------------------------------------------


def memory(seed: int = 0, repetitions: int | None = None, setting: Setting = REMEMBERED) -> Outcome:
    """Accuracy at the end and its spread from round to round, plain and with memory."""
    seeds, names = _seeds(seed, repetitions), ("uniform", "md", "clustered-similarity")
    level: dict[str, Floats] = {}
    spread: dict[str, Floats] = {}
    verdicts: list[Verdict] = []
    for division in PARTITIONS:
        for name in names:
            for how in (Plain(), Memory()):
                runs = [run(setting, division, scheme(name, m=setting.m), s, how) for s in seeds]
                rows = 100 * np.array([trace.accuracy[-LAST:] for trace in runs])
                key = f"{division}, {name}, {how.name}"
                level[key], spread[key] = rows.mean(axis=1), rows.std(axis=1)
            verdicts += _memory_verdicts(f"{division}, {name}", level, spread)
    columns = _columns(level, list(seeds))
    columns["spread"] = np.array([values.mean() for values in spread.values()])
    draw = partial(_bars, level, "test accuracy of the last rounds, %")
    settings = {"seed": seed, "last": LAST, **setting.settings()}
    return Outcome(columns, tuple(verdicts), draw, settings)


def _memory_verdicts(
    case: str, level: Mapping[str, Floats], spread: Mapping[str, Floats]
) -> list[Verdict]:
    plain, kept = f"{case}, plain", f"{case}, memory"
    steadier = bool(spread[kept].mean() < spread[plain].mean())
    gain = level[kept] - level[plain]
    return [
        Verdict(f"{case}: memory is steadier", "a smaller spread over the last rounds",
                f"{spread[kept].mean():.2f} against {spread[plain].mean():.2f} points",
                steadier),
        Verdict(f"{case}: and not less accurate", "within half a point, or better",
                f"{gain.mean():+.2f} points", bool(gain.mean() > -0.5)),
    ]  # fmt: skip


# -- what they share ---------------------------------------------------------------------------


def _columns(rows: Mapping[str, Floats], seeds: list[int]) -> dict[str, Array]:
    """Name, mean, standard deviation and every repetition, for a CSV."""
    values = np.array(list(rows.values()))
    spread = values.std(axis=1, ddof=1) if len(seeds) > 1 else np.zeros(len(values))
    each = {f"seed {s}": column for s, column in zip(seeds, values.T, strict=True)}
    return {"what": np.array(list(rows)), "mean": values.mean(axis=1), "sd": spread, **each}


def _bars(rows: Mapping[str, Floats], label: str, figure: Any) -> None:
    axes = figure.subplots()
    names = list(rows)[::-1]
    axes.barh(names, [rows[n].mean() for n in names], xerr=[rows[n].std() for n in names])
    axes.set(xlabel=label)


def _seeds(seed: int, repetitions: int | None) -> range:
    number = SEEDS if repetitions is None else repetitions
    if not is_whole(number) or number < 1:
        raise BadParameter("seeds", "this recipe", "an int of at least 1", repetitions)
    return range(seed, seed + number)


HCSFED_TABLE_1 = Recipe(
    "hcsfed-table1",
    "Every stage of HCSFed: rounds to 80 % with one class per client",
    "Song et al. (UAI 2023), Table 1 (MNIST, sampling ratio 10 %)",
    table_1,
    "5 seeds",
)
CLUSTERED_TARGET = Recipe(
    "clustered-similarity",
    "Algorithm 2 becomes target sampling once every client has been seen",
    "Fraboni et al. (ICML 2021), Figure 1",
    target,
    "5 seeds",
)
MEMORY = Recipe(
    "memory",
    "The memory of last updates steadies every unbiased scheme",
    "beyond the papers; the estimator is that of FedVARP (Jhunjhunwala et al., UAI 2022)",
    memory,
    "5 seeds per row",
)
