"""Centralised training: the upper line that federated learning is measured by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from fedcohort._internal.parameters import Checked, Whole
from fedcohort.selection._scheme import Disclosure
from fedcohort.server._trace import Trace
from fedcohort.simulation._arms import OwnWork
from fedcohort.simulation._engine import simulate
from fedcohort.simulation._measures import Progress, checked_measures
from fedcohort.training import Task
from fedcohort.training._local import LocalWork

CENTRALISED = "centralised"
CLIENTS = "client-accuracy"
"""The measure that is taken of the last model only, for no client takes part."""


@dataclass(frozen=True)
class Centralised(Checked):
    """All data in one place; a round is one step of SGD on ``samples`` samples.

    It is no scheme: nobody is chosen, and whoever runs it holds all the data. Each round draws
    its samples anew, without replacement, as FedSampling with K = ``samples`` does in the mean;
    the importance of clients plays no part, every sample counts the same.

    >>> from fedcohort.simulation import Softmax
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> task = Softmax(x, y, x, y, clients=[[0, 1], [2, 3]], classes=2)
    >>> trace = Centralised(samples=4).run(task, rounds=20, work=LocalWork(steps=1, lr=1.0))
    >>> trace.label, float(trace.accuracy[-1])
    ('centralised', 1.0)

    ``work`` is what of local work is its own, as of an `Arm`: a step size that suits it.
    """

    samples: Annotated[int, Whole(1)] = 100
    work: OwnWork | Mapping[str, Any] | str | None = None

    name = CENTRALISED
    code = None  # it is ours

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.work is not None:
            object.__setattr__(self, "work", OwnWork.of(self.work))

    def run(
        self,
        task: Task,
        *,
        rounds: int,
        seed: int | None = 0,
        work: LocalWork | None = None,
        settings: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Trace:
        """Train; step size and decay are those of ``work``.

        ``options`` are those of `simulate`; who is available does not matter here, nor
        what clients would do.
        """
        work = work or LocalWork()
        if isinstance(self.work, OwnWork):
            work = self.work.over(work)
        step = replace(work, steps=1, epochs=None, batch=self.samples, mu=0.0)
        pooled = task.pooled()
        options.pop("availability", None)
        options.pop("algorithm", None)
        options.pop("hardened", None)
        measures = checked_measures(task, options.pop("measures", None))
        options["measures"] = [name for name in measures if name != CLIENTS]  # there are none
        facts = {**(settings or {}), "scheme": self.name, "parameters": {"samples": self.samples}}
        trace = simulate(
            pooled,
            "full",
            rounds=rounds,
            seed=seed,
            work=step,
            settings=facts,
            progress=progress,
            **options,
        )
        return _without_clients(trace, task, CLIENTS in measures)

    def __str__(self) -> str:
        own = f"+{self.work.spec}" if isinstance(self.work, OwnWork) else ""
        return f"{self.name}(samples={self.samples}){own}"


def upper_lines(given: int | Centralised | Mapping[str, Centralised]) -> dict[str, Centralised]:
    """By label: one on so many samples a round, or several."""
    if isinstance(given, Mapping):
        return dict(given)
    return {CENTRALISED: given if isinstance(given, Centralised) else Centralised(given)}


def _without_clients(trace: Trace, task: Task, measured: bool) -> Trace:
    """The trace of a run in which no client took part and nothing was sent."""
    nothing = np.zeros(trace.rounds, dtype=np.int64)
    nobody = np.zeros(0, dtype=np.int64)
    histograms = task.label_histograms
    own = None
    if measured:
        own = task.evaluate(trace.model[None]).client_accuracy
    row = {"purpose": CENTRALISED, "messages": 0, "bytes_down": 0, "bytes_up": 0}
    return replace(
        trace,
        ledger=({**row, "discloses": "all data", "epsilon": None},),
        disclosures=(Disclosure("data", "beforehand", "all data"),),
        invited=nothing,
        messages=nothing,
        bytes_down=nothing,
        bytes_up=nothing,
        available=np.full(trace.rounds, len(task.sizes), dtype=np.int64),
        cohort_ends=nothing,
        cohort_clients=nobody,
        cohort_weights=np.zeros(0),
        cohort_draws=nobody,
        importance=task.importance,
        sizes=task.sizes,
        label_histograms=np.empty((len(task.sizes), 0), dtype=np.int64)
        if histograms is None
        else histograms,
        client_losses=task.client_losses(trace.model[None])[0],
        client_accuracy=np.zeros(0) if own is None else own[0],
    )
