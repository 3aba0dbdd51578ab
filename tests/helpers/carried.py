"""Folders as a run on Flower leaves them, made without Flower."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.schemes import scheme as scheme_by_name
from fedcohort.selection import Cohort, Scheme
from fedcohort.server._history import History
from fedcohort.server._ledger import Entry
from fedcohort.server._records import Record


def settings_of(
    scheme: Scheme[Any], clients: int, seed: int = 0, rounds: int = 12
) -> dict[str, Any]:
    """What a strategy tells of its run before the first round."""
    sizes = 10 + 3 * np.arange(clients)
    return {
        "scheme": scheme.name,
        "parameters": dict(scheme.parameters),
        "seed": seed,
        "rounds": rounds,
        "dimension": 40,
        "ids": [f"hospital-{i:02d}" for i in range(clients)],
        "sizes": sizes,
        "importance": sizes / sizes.sum(),
        "disclosures": scheme.disclosures(rounds),
    }


def record(round: int, clients: int, seed: int = 0, *, void: bool = False) -> Record:
    """A round of three of the clients, of which one more was invited and did not answer."""
    rng = np.random.default_rng([seed, round])
    chosen = np.sort(rng.choice(clients, 4, replace=False))
    cohort = Cohort.empty() if void else Cohort.of(chosen[:3], [0.5, 0.25, 0.25])
    entry = Entry(round, "training", 4, 7, 640, 480, "the model update, unless securely aggregated")
    faults = {"late": 1} if round % 3 else {"late": 2, "not finite": 1}
    answered = 0.25 if void else 0.75
    return Record(round, cohort, chosen, clients, void, answered, (entry,), faults, (0.1, 0.4))


def leave(
    folder: Path,
    rounds: int = 12,
    *,
    scheme: str = "uniform",
    clients: int = 8,
    seed: int = 0,
    done: int | None = None,
    void: Iterable[int] = (),
    metrics: bool = True,
    **settings: Any,
) -> Path:
    """A folder of a run of so many rounds, of which ``done`` are over."""
    folder.mkdir()
    history = History(folder)
    built = scheme_by_name(scheme, m=3)
    history.settings({**settings_of(built, clients, seed, rounds), **settings})
    for round in range(rounds if done is None else done):
        history.append(record(round, clients, seed, void=round in set(void)))
        if metrics:
            for source, told in measured(round, seed).items():
                history.metrics(round, told, source)
    return folder


def measured(round: int, seed: int) -> Mapping[str, Mapping[str, float]]:
    """What clients and server send after a round, under names of their own."""
    level = 1 - np.exp(-(round + 1) / 6) + 0.01 * seed
    return {
        "train": {"train_loss": 2 - level, "grad-norm": 3 - level},
        "evaluate": {"accuracy": 0.9 * level, "f1": 0.8 * level},
        "server": {"loss": 2.2 - level},
    }
