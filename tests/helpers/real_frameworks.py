"""A small federation, played by the simulator and by the loops of other frameworks."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort.training import LocalWork, Quadratic

MINIMA = np.array([[1.0, -2.0], [0.5, 3.0], [-4.0, 1.5], [2.0, 2.5]])
SIZES = [1, 2, 3, 4]
SEED, ROUNDS, RATE = 6, 3, 0.5


def framework(name: str) -> Any:
    """The package; where `make test-adapters` has installed it, it must be there."""
    if os.environ.get("FEDCOHORT_FRAMEWORK") == name:
        return importlib.import_module(name)
    return pytest.importorskip(name)


def simulated(scheme: str, rounds: int = ROUNDS, **server: Any) -> Any:
    """What all of them must come to."""
    task = Quadratic(MINIMA, sizes=SIZES)
    work = LocalWork(steps=1, lr=RATE)
    return fedcohort.simulate(task, scheme, rounds=rounds, seed=SEED, work=work, **server)


def cohorts_of(trace: Any) -> list[list[int]]:
    """Who trained in each round."""
    return [trace.cohort(number).clients.tolist() for number in range(trace.rounds)]
