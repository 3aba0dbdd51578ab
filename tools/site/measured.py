"""What the pages of schemes show: one small federation, every scheme on it, measured when built."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fedcohort
from fedcohort._internal.errors import FedcohortError
from fedcohort._internal.types import Floats, Ints
from fedcohort.advice import SchemeFacts, advise
from fedcohort.schemes import SCHEMES
from fedcohort.selection import Scheme
from fedcohort.server import Trace
from fedcohort.simulation import Problem
from fedcohort.training import LocalWork

DOCS = Path(__file__).parents[2] / "docs"
DATA, PARTITION = "digits", "dirichlet-per-class:n=24,alpha=0.3"
M, ROUNDS, SEEDS = 5, 40, 3
WORK = LocalWork(steps=10, batch=10, lr=0.1)
COMMAND = (
    f"fedcohort compare {{name}} {{other}} --data {DATA} --partition {PARTITION} -m {M} "
    f"--steps {WORK.steps} --batch {WORK.batch} --lr {WORK.lr} --rounds {ROUNDS} --seeds {SEEDS}"
)


@dataclass(frozen=True, eq=False)
class Measured:
    """One scheme on the federation; ``why_not`` says why there are no runs."""

    facts: SchemeFacts
    scheme: Scheme[Any] | None
    traces: tuple[Trace, ...]
    chances: Floats | None  # (n,) of the first round, exactly, or the share of all rounds
    exact: bool
    why_not: str = ""


@cache
def task() -> Any:
    """Handwritten digits on 24 clients of unequal size and labels."""
    return Problem(DATA, PARTITION).task()


@cache
def classes() -> Ints:
    """(n,) the class that each client has most of."""
    return np.argmax(task().label_histograms, axis=1)


@cache
def everything() -> dict[str, Measured]:
    """Every scheme by name."""
    federation = fedcohort.Federation.from_sizes(task().sizes)
    advice = advise(
        federation,
        M,
        ROUNDS,
        label_histograms=task().label_histograms,
        model_bytes=4 * task().dimension,
        noise=1.0,
        settings={name: own["shown"] for name, own in laws().items() if "shown" in own},
    )
    return {name: _one(name, advice.row(name)) for name in SCHEMES}


@cache
def laws() -> dict[str, dict[str, Any]]:
    """What people wrote: formulas, advice, which page says more, settings to be shown with."""
    with (DOCS / "schemes" / "laws.toml").open("rb") as file:
        return tomllib.load(file)


def word(name: str) -> str:
    """A scheme with the settings it is shown with, as on the command line."""
    given = laws().get(name, {}).get("shown", {})
    return f"{name}:{','.join(f'{k}={v}' for k, v in given.items())}" if given else name


def _one(name: str, facts: SchemeFacts) -> Measured:
    try:
        scheme = SCHEMES.build(word(name), otherwise={"m": M})
        traces = tuple(
            fedcohort.simulate(task(), scheme, rounds=ROUNDS, seed=seed, work=WORK)
            for seed in range(SEEDS)
        )
    except FedcohortError as error:
        return Measured(facts, None, (), None, False, str(error))
    law = None
    if not (scheme.asks or scheme.listens):
        federation = fedcohort.Federation.from_sizes(task().sizes)
        law = fedcohort.Selector(scheme, federation, seed=0).design()
    if law is not None:
        return Measured(facts, scheme, traces, law.inclusion(), True)
    share = sum(trace.participation for trace in traces) / (ROUNDS * SEEDS)
    return Measured(facts, scheme, traces, share, False)
