"""The runs behind the figures of FedSampling: federations, methods, tables, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort import data
from fedcohort.core import Citation, Cohort, Federation, NoState, RoundContext, Scheme, Whole
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.data.partition import lognormal_sizes
from fedcohort.maths.draws import distinct
from fedcohort.reproduction import Verdict
from fedcohort.schemes.fedsampling import FedSampling
from fedcohort.schemes.fedsampling_naive import FedSamplingNaive
from fedcohort.schemes.md import MD
from fedcohort.server import Optimiser, optimiser
from fedcohort.simulation import Centralised, LocalWork, Softmax, Trace, simulate

SERVERS = {
    "FedAvg": optimiser("sgd"),
    "FedAdam": optimiser("adam", eta_g=0.1),
    "FedYogi": optimiser("yogi", eta_g=0.1),
    "FedAdagrad": optimiser("adagrad", eta_g=0.3),
}
"""The server's step sizes are the best of 0.03, 0.1, 0.3 and 1 with weighted sampling."""
COMPARABLE, CLEAR = 0.01, 0.005
"""Accuracies closer than a point are alike; half a point, in every repetition, is a difference."""
Run = Callable[[int], Trace]
"""A seed in, a run out."""


@dataclass(frozen=True)
class Setting:
    """What all runs of a figure have in common."""

    clients: int = 500
    samples: int = 100  # K
    rounds: int = 150
    lr: float = 20.0
    every: int = 5  # rounds between evaluations
    epsilon: float = 3.0
    threshold: int = 300  # M

    @property
    def options(self) -> dict[str, Any]:
        """As `simulate` takes them."""
        work = LocalWork(steps=1, batch=None, lr=self.lr)
        return {"rounds": self.rounds, "work": work, "evaluate_every": self.every}


@dataclass(frozen=True)
class UniformAverage(Scheme[NoState]):
    """m clients uniformly, and the plain average of their updates: the paper's FedAvg.

    (`uniform` has the weights that make this unbiased, `fedavg` those of McMahan et al.)
    """

    m: Annotated[int, Whole(1)] = 10

    name: ClassVar[str] = "uniform-average"
    paper: ClassVar[Citation] = Citation("Qi et al.", "FedSampling", "IJCAI", 2023, "Figure 1")

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        here = federation.present
        return Cohort.equal(here[distinct(rng, len(here), min(self.m, len(here)))])


# -- the runs ----------------------------------------------------------------------------------


@cache
def _news() -> data.Dataset:
    return data.load("reuters")


def long_tail(setting: Setting, sigma: float, seed: int) -> Softmax:
    """News on clients of log-normal size, drawn anew for every repetition."""
    news = _news()
    division = lognormal_sizes(news.y_train, setting.clients, sigma, stream(seed, "partition"))
    return Softmax.from_partition(news, division)


def sampling(setting: Setting, mechanism: str, fresh: str = "never") -> FedSampling:
    """FedSampling, which takes any estimate of N: the figures show what comes of it."""
    return FedSampling(
        setting.samples, setting.epsilon, setting.threshold, mechanism, fresh, "accept"
    )


def naive(setting: Setting, sizes: Ints) -> FedSamplingNaive:
    """The naive method with the same expected number of samples."""
    rate = setting.samples / float(sizes.sum())
    return FedSamplingNaive(rate, float((1 - (1 - rate) ** sizes).mean()))


def methods(setting: Setting, task: Softmax) -> dict[str, Run]:
    """Figures 3 and 4: FedSampling, its relatives, and client sampling."""
    m = max(1, round(setting.samples * len(task.sizes) / int(task.sizes.sum())))

    def run(scheme: Scheme[Any], optimiser: Optimiser | None = None) -> Run:
        return lambda seed: simulate(
            task, scheme, seed=seed, optimiser=optimiser, **setting.options
        )

    central = Centralised(setting.samples)
    return {
        "centralised": lambda seed: central.run(task, seed=seed, **setting.options),
        "fedsampling, N known": run(sampling(setting, "exact")),
        "fedsampling, levels": run(sampling(setting, "levels")),
        "fedsampling, paper": run(sampling(setting, "paper", "every-round")),
        "naive": run(naive(setting, task.sizes)),
        **{f"{name}, uniform": run(UniformAverage(m), s) for name, s in SERVERS.items()},
        **{f"{name}, weighted": run(MD(m), s) for name, s in SERVERS.items()},
    }


def level(trace: Trace) -> float:
    """The mean accuracy of the last quarter of the evaluations."""
    seen = trace.accuracy[np.isfinite(trace.accuracy)]
    return float(seen[-max(1, len(seen) // 4) :].mean())


def jumps(trace: Trace) -> float:
    """How much the accuracy moves from one evaluation to the next, in the second half."""
    seen = trace.accuracy[np.isfinite(trace.accuracy)]
    return float(np.abs(np.diff(seen[len(seen) // 2 :])).mean())


@dataclass(frozen=True, eq=False)
class Table:
    """Results by row (a method, a setting): one column per seed."""

    names: tuple[str, ...]
    values: Floats  # (rows, seeds)

    @classmethod
    def of(cls, results: Mapping[str, Sequence[float]]) -> Table:
        """A table from results by name."""
        return cls(tuple(results), np.array(list(results.values()), dtype=np.float64))

    def __getitem__(self, name: str) -> Floats:
        row: Floats = self.values[self.names.index(name)]
        return row

    @property
    def columns(self) -> dict[str, Array]:
        """Name, mean, standard deviation and every repetition, for a CSV."""
        each = {f"seed {i}": column for i, column in enumerate(self.values.T)}
        mean, sd = self.values.mean(axis=1), spread(self.values)
        return {"what": np.array(self.names), "mean": mean, "sd": sd, **each}


def spread(values: Floats) -> Floats:
    """Standard deviation of every row; 0 for a single repetition."""
    out: Floats = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    return out


# -- verdicts ----------------------------------------------------------------------------------


def alike(table: Table, one: str, other: str, statement: str) -> Verdict:
    """One is as good as the other: their means differ by less than a point."""
    gap = table[one] - table[other]
    return Verdict(statement, "within 1 point", _points(gap), abs(float(gap.mean())) < COMPARABLE)


def below(table: Table, one: str, other: str, statement: str) -> Verdict:
    """One is worse than the other: by half a point on average, and in every repetition."""
    gap = table[one] - table[other]
    holds = bool(gap.mean() < -CLEAR and (gap < 0).all())
    return Verdict(statement, "below, in every repetition", _points(gap), holds)


def _points(gap: Floats) -> str:
    return f"{100 * gap.mean():+.1f} points ({100 * gap.min():+.1f} to {100 * gap.max():+.1f})"
