"""What a run knows after its last round, kept in a file so that the run can be extended."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint, CannotSave, FedcohortWarning, quoted
from fedcohort._internal.files import as_path
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.server._checkpoint import pack_state, unpack_state
from fedcohort.server._state import Setup, State
from fedcohort.training._algorithms import Vectors

KIND = "end of a run"
LIMIT_BYTES = 2**28
"""More is not written: a thousand clients' memories of a large model would fill the disk."""


@dataclass(frozen=True, eq=False)
class End:
    """Where a run stands.

    Parameters
    ----------
    state
        Model, optimiser, aggregator, scheme, attendance, guards.
    clients
        What clients remember for the local algorithm, by position.
    waiting
        Models whose evaluation was brought forward by the end of the run: in a longer one they are
        evaluated together with others, which may round otherwise.
    """

    state: State
    clients: dict[int, Vectors]
    waiting: list[tuple[int, Floats]]

    def save(self, path: str | os.PathLike[str], setup: Setup) -> None:
        """Write it; what cannot be written costs a warning, not the run."""
        name = setup.scheme.name
        try:
            header, arrays = self._packed(setup)
            size = sum(array.nbytes for array in arrays.values())
            if size > LIMIT_BYTES:
                raise CannotSave(f"{size / 1e6:,.0f} MB are more than {LIMIT_BYTES / 1e6:,.0f} MB.")
            store.save(path, header, arrays)
        except Exception as error:  # a scheme of somebody's may remember anything
            if as_path(path).is_file():  # that of a shorter run would not fit
                as_path(path).unlink()
            warnings.warn(
                f"{name}: this run cannot be extended, as what it knows is not kept: {error}",
                FedcohortWarning,
                stacklevel=2,
            )

    def _packed(self, setup: Setup) -> tuple[dict[str, Any], dict[str, Array]]:
        header, arrays = pack_state(setup, self.state)
        who = sorted(self.clients)
        arrays["clients"] = np.array(who, dtype=np.int64)
        for name in setup.algorithm.keeps_client if who else ():
            arrays[f"client.{name}"] = np.stack([self.clients[i][name] for i in who])
        arrays["waiting"] = np.array([round for round, _ in self.waiting], dtype=np.int64)
        if self.waiting:
            arrays["waiting.models"] = np.stack([models for _, models in self.waiting])
        return {**header, "kind": KIND}, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str], setup: Setup, rounds: int) -> End:
        """Read it; refused where it is not that of this run after so many rounds."""
        header, arrays = store.load(path, KIND)
        told = header.get("scheme"), header.get("parameters"), header.get("seed")
        if told != (setup.scheme.name, dict(setup.scheme.parameters), str(setup.seed)):
            raise BadCheckpoint(f"{quoted(path)} is the end of another run.")
        if header.get("round") != rounds:
            raise BadCheckpoint(f"{quoted(path)} is not the end of round {rounds}.")
        with store.whole(path, KIND):
            state = unpack_state(setup, header, arrays)
            lengths = {"n": len(state.federation), "d": len(state.theta)}
            places = Annotated[Ints, Shaped("k", low=0, below="n")]
            store.check("clients", arrays["clients"], places, dict(lengths))
            who = arrays["clients"].tolist()
            names = setup.algorithm.keeps_client if who else ()
            kept = {name: arrays[f"client.{name}"] for name in names}
            clients: dict[int, Vectors] = {
                i: {name: kept[name][k] for name in names} for k, i in enumerate(who)
            }
            models = arrays.get("waiting.models", np.zeros((0, 1, lengths["d"])))
            waiting = list(zip(arrays["waiting"].tolist(), models, strict=True))
        return cls(state, clients, waiting)
