"""A local algorithm on a client: its rule, its payloads, and what the client remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from fedcohort._internal import store
from fedcohort._internal.errors import BadInput
from fedcohort._internal.files import file_name
from fedcohort._internal.types import Array
from fedcohort.flower.wire import Layout
from fedcohort.flower.work import Rule
from fedcohort.training._algorithms import Algorithm, Vectors, reported, weighed_by_samples
from fedcohort.training._local import LocalWork

MEMORY = "client-memory"
KEPT, PROPOSED = "kept", "proposed"


@dataclass(frozen=True)
class Memory:
    """What a client remembers for a local algorithm: one file in its own folder.

    It holds what the client *kept* and what it *proposed* when it trained last, each with its
    round. The file is written before the reply to training goes out; which of the two is the
    client's memory is known from the next message, which names the last round of this client that
    counted. So a lost reply, a void round or a crash, here or there, leaves both sides in
    agreement, and reading changes nothing.
    """

    path: Path

    @classmethod
    def of(cls, folder: Path, task: str) -> Memory:
        """The memory of a client in a run."""
        return cls(folder / f"algorithm-{file_name(task)}.npz")

    def kept(self, algorithm: Algorithm, counted: int, dimension: int) -> dict[str, Array]:
        """(d,) what the client remembers, by name; zero where none of its answers counted."""
        if counted < 0:  # also of a client that has files of an earlier run
            return {name: np.zeros(dimension) for name in algorithm.keeps_client}
        header, arrays = self._read()
        for which in (PROPOSED, KEPT):
            if (header.get(which), header.get("algorithm")) == (counted, algorithm.spec):
                found = {name: arrays.get(f"{which}.{name}") for name in algorithm.keeps_client}
                vectors = {name: v for name, v in found.items() if _is_vector(v, dimension)}
                if len(vectors) == len(found):
                    return vectors
        raise BadInput(
            f"'{self.path}' does not hold what this client remembered for the local algorithm "
            f"'{algorithm.name}' after round {counted + 1}: give the client its folder back, or "
            "another key, to take part as a new client."
        )

    def propose(
        self,
        algorithm: Algorithm,
        vectors: Mapping[str, Mapping[str, Array]],
        rounds: Mapping[str, int],
        asked_at: float,
    ) -> None:
        """Write down what is kept and what is proposed, each with its round.

        Of two invitations of one round (of a server that was killed, and of its successor) the
        older one counts no more, in whatever order they arrive.
        """
        header, _ = self._read()
        again = header.get(PROPOSED) == rounds[PROPOSED] and header.get(KEPT) == rounds[KEPT]
        if again and asked_at < header["asked_at"]:
            raise BadInput("This client has trained for a later invitation to the same round.")
        told = {"kind": MEMORY, "algorithm": algorithm.spec, "asked_at": asked_at, **rounds}
        arrays = {
            f"{which}.{name}": vector
            for which, named in vectors.items()
            for name, vector in named.items()
        }
        store.save(self.path, told, arrays)

    def _read(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return store.load(self.path, MEMORY) if self.path.is_file() else ({}, {})


def _is_vector(value: Array | None, dimension: int) -> TypeGuard[Array]:
    """Whether a file holds what was written: as many finite numbers as the model has."""
    if value is None or value.shape != (dimension,) or value.dtype.kind != "f":
        return False
    return bool(np.isfinite(value).all())


@dataclass
class LocalTraining:
    """A local algorithm on one client, for the model of one message.

    Parameters
    ----------
    algorithm, layout
        What to train by, and how the arrays of the model lie in a vector.
    server
        (d,) the vectors of the server, by name.
    counted
        The last round in which an answer of this client counted; -1 for none.
    memory
        Where it remembers; None where the algorithm has nothing to remember.
    """

    algorithm: Algorithm
    layout: Layout
    server: Vectors
    counted: int = -1
    memory: Memory | None = None
    statistics: int = 0
    """Of the numbers of the model, those that are no weights."""
    used: LocalWork | None = None
    """The work that the client has trained by; None while it has not asked for the rule."""

    def __post_init__(self) -> None:
        self.algorithm.fits(self.statistics)
        d, names = self.layout.dimension, self.algorithm.vectors
        if set(names) != set(self.server) or any(v.shape != (d,) for v in self.server.values()):
            raise BadInput(
                f"The local algorithm '{self.algorithm.name}' needs vectors {list(names)} of "
                f"{d} numbers from the server; got {sorted(self.server)}."
            )
        self.kept: dict[str, Array] = {}
        if self.memory is not None:
            self.kept = self.memory.kept(self.algorithm, self.counted, d)

    def rule(self, work: LocalWork) -> Rule:
        """What to train with; the drift in arrays as the model's."""
        rule = self.algorithm.rule(work, self.server, self._rows)
        self.used = rule.work
        if rule.drift is None:
            return Rule(rule.work, None)
        floats = {
            name: dtype if dtype.kind == "f" else self.layout.precision
            for name, dtype in self.layout.dtypes.items()
        }
        return Rule(rule.work, Layout(self.layout.shapes, floats).arrays(rule.drift[0]))

    @property
    def _rows(self) -> dict[str, Array]:
        return {name: vector[None] for name, vector in self.kept.items()}

    def models(self, first: Mapping[str, Array]) -> list[Mapping[str, Array]]:
        """All models of the server; the first came as the model itself."""
        return [first, *(self.layout.arrays(self.server[name]) for name in self.algorithm.others)]

    def report(
        self,
        update: Array,
        number: int,
        known: Vectors,
        *,
        round: int,
        asked_at: float,
        per_sample: bool,
    ) -> dict[str, Array]:
        """The payloads of an update of ``number`` samples, once what it proposes is kept.

        ``known`` are the quantities of the client that the algorithm is told.
        """
        used = self.used if number else LocalWork()  # without samples no step was made, by no rule
        if used is None:
            raise BadInput(rule_unused(self.algorithm))
        steps = np.array([used.steps_for(number)], dtype=np.int64)
        payloads, proposals = reported(
            self.algorithm,
            used,
            self.server,
            self._rows | {name: vector[None] for name, vector in known.items()},
            update[None],
            steps,
            self.layout.precision,
        )
        if self.memory is not None:
            proposed = {name: rows[0] for name, rows in proposals.items()}
            vectors = {KEPT: self.kept, PROPOSED: proposed}
            rounds = {KEPT: self.counted, PROPOSED: round}
            self.memory.propose(self.algorithm, vectors, rounds, asked_at)
        samples = np.array([number]) if per_sample else None
        payloads = weighed_by_samples(self.algorithm, payloads, samples)
        return {name: rows[0] for name, rows in payloads.items()}


def rule_unused(algorithm: Algorithm) -> str:
    """What to say where the local algorithm cannot reach how a client trains."""
    return (
        f"The local algorithm '{algorithm.name}' needs a method update(model, work) that trains "
        "by rule = work.rule(LocalWork(...)): rule.work has step size, decay and mu, rule.drift "
        "is added to every gradient. An @app.train() function trains by 'sgd' only."
    )
