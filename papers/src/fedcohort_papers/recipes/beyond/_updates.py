"""What every client of a run would answer now, and how much an aggregate of it varies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats
from fedcohort.selection import UPDATE, Ask, Design, RoundContext
from fedcohort.server import Aggregator, aggregator
from fedcohort.server._memory import MemoryState
from fedcohort.server._state import Setup
from fedcohort.simulation import Always, LocalWork
from fedcohort.simulation._arms import arm
from fedcohort.simulation._clients import SimulatedClients
from fedcohort.simulation._engine import Simulation
from fedcohort.theory._moments import estimated_variance
from fedcohort.training import Task

COHORTS = 100
"""Drawn where a variance has no formula."""


def variance(design: Design, x: Floats, seed: int) -> float:
    """Of the aggregate of x (n, d): exact where there is a formula, else from drawn cohorts."""
    if design.second_moments.startswith("exact"):
        return design.aggregate_variance(x)
    return estimated_variance(design, x, COHORTS, stream(seed, "variance")).variance


def supposed(estimate: Any, memory: Any, shape: tuple[int, ...]) -> Floats:
    """(n, d) what an aggregator expects of every client; zero where it has no memory."""
    if not isinstance(memory, MemoryState):
        return np.zeros(shape)
    everybody = np.arange(shape[0])
    known = memory.latest.rows(everybody).astype(np.float64)
    return np.asarray(known + memory.guess.of(everybody, memory.guess.slopes(estimate.alpha)))


def looks(
    task: Task, word: str, work: LocalWork, rounds: tuple[int, ...], seed: int
) -> Iterator[tuple[int, Design, Floats, Floats]]:
    """Of a run, after some rounds: the law of the next, all updates, and what is expected."""
    one = arm(word)
    estimate: Aggregator = aggregator(one.aggregator)
    setup = Setup(one.scheme, seed, aggregator=estimate)  # type: ignore[arg-type]
    run = Simulation(task, setup, work, Always(), None)
    for round in range(max(rounds) + 1):
        if round in rounds:
            updates = all_updates(task, work, run.state.theta, round, seed)
            known, federation = run.state.scheme, run.state.federation
            law = setup.scheme.design(known, federation, RoundContext(round))
            if law is None:
                raise BadInput(f"{word} has no law that is known before a cohort is drawn.")
            yield round, law, updates, supposed(estimate, run.state.aggregator, updates.shape)
        run.play()


def all_updates(task: Task, work: LocalWork, theta: Floats, round: int, seed: int) -> Floats:
    """(n, d) what every client would answer."""
    clients = SimulatedClients(task, work, seed, round, theta)
    everybody = Ask(UPDATE, np.arange(len(task.sizes)))
    return np.asarray(clients.answer(everybody), dtype=np.float64)
