"""What happened in a run: frozen arrays that reports read; never the engine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from fedcohort.core import store
from fedcohort.core.cohort import Cohort
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.maths.inequality import gini, jain

KIND = "trace"
PICTURE = "picture."


@dataclass(frozen=True, eq=False)
class Trace:
    """One run of one scheme with one seed.

    Entry t of a per-round array is the state *after* round t (counted from 0); losses and
    accuracy are NaN in rounds that were not evaluated.
    """

    settings: Mapping[str, Any]
    """Everything that decides the run: scheme, parameters, task, work, server, seed, versions."""
    ledger: tuple[Mapping[str, Any], ...]
    """Cost and disclosure by purpose."""

    train_loss: Floats  # (T,) F(theta) over all clients
    test_loss: Floats  # (T,)
    accuracy: Floats  # (T,) on the test set
    weight_sum: Floats  # (T,) sum of the weights of the cohort
    classes: Ints  # (T,) classes present in the cohort; -1 where the task has none
    available: Ints  # (T,) how many clients could have been chosen
    messages: Ints  # (T,)
    bytes_down: Ints  # (T,)
    bytes_up: Ints  # (T,)
    seconds: Floats  # (T, 3) choosing (with questions), training, evaluation

    cohort_ends: Ints  # (T,) where each round's cohort ends in the three arrays below
    cohort_clients: Ints
    cohort_weights: Floats
    cohort_draws: Ints

    importance: Floats  # (n,)
    sizes: Ints  # (n,)
    label_histograms: Ints  # (n, classes), or (n, 0)
    client_losses: Floats  # (n,) of the last model
    model: Floats  # (d,) the last model
    pictures: Mapping[str, Array] = field(default_factory=dict)
    """What the scheme had to show at the end, as `Scheme.picture` names it (clusters, ...)."""

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.accuracy)

    @property
    def scheme(self) -> str:
        """The name of the scheme."""
        return str(self.settings["scheme"])

    @property
    def label(self) -> str:
        """What a report calls the run: the scheme, and whatever tells it from its like."""
        return str(self.settings.get("label", self.scheme))

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.settings["seed"])

    def last(self) -> tuple[str, float]:
        """What was measured last: the test accuracy, or the training loss where there is none."""
        for name, values in (("accuracy", self.accuracy), ("training loss", self.train_loss)):
            there = values[np.isfinite(values)]
            if len(there):
                return name, float(there[-1])
        return "training loss", float("nan")

    def __repr__(self) -> str:
        name, value = self.last()
        return (
            f"<Trace of {self.label}, seed {self.seed}: {self.rounds} rounds, {name} {value:.4g}>"
        )

    def cohort(self, round: int) -> Cohort:
        """Who was chosen in a round."""
        start = int(self.cohort_ends[round - 1]) if round else 0
        inside = slice(start, int(self.cohort_ends[round]))
        return Cohort(
            self.cohort_clients[inside], self.cohort_weights[inside], self.cohort_draws[inside]
        )

    @property
    def distinct(self) -> Ints:
        """(T,) number of distinct clients in each cohort."""
        return np.diff(self.cohort_ends, prepend=0)

    @property
    def participation(self) -> Ints:
        """(n,) in how many rounds each client took part."""
        return np.bincount(self.cohort_clients, minlength=len(self.importance))

    @property
    def jain(self) -> float:
        """Jain's index of the participation: 1 if all are equal, 1/n if one does it all."""
        return jain(self.participation)

    @property
    def gini(self) -> float:
        """Gini coefficient of the participation: 0 if all are equal."""
        return gini(self.participation)

    def rounds_to(self, accuracy: float) -> int | None:
        """After how many rounds the test accuracy first reached a target; None if never."""
        reached = np.flatnonzero(self.accuracy >= accuracy)
        return int(reached[0]) + 1 if len(reached) else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file."""
        arrays: dict[str, Array] = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if isinstance(getattr(self, each.name), np.ndarray)
        }
        arrays |= {PICTURE + name: array for name, array in self.pictures.items()}
        header = {"kind": KIND, "settings": dict(self.settings), "ledger": list(self.ledger)}
        store.save(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read from one file."""
        header, arrays = store.load(path, KIND)
        pictures = {
            name.removeprefix(PICTURE): arrays.pop(name)
            for name in list(arrays)
            if name.startswith(PICTURE)
        }
        return cls(
            settings=header["settings"],
            ledger=tuple(header["ledger"]),
            pictures=pictures,
            **arrays,
        )


def versions() -> dict[str, str]:
    """What ran: our version, Python's, numpy's."""
    from fedcohort import __version__

    return {
        "fedcohort": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
