"""What survives a crash of the server.

Two files in one folder. ``selector.npz`` is written when a cohort has been chosen, *before*
anybody is invited, and again when its round is over; ``model-<round>.npz`` just before that.
The selector decides which model is valid, and it is replaced in one step: whatever the moment
of a crash, a server that comes back has the model of a round and that round's own cohort.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

from fedcohort.core import store
from fedcohort.core.errors import BadCheckpoint, CannotSave, InUse
from fedcohort.core.files import exclusive
from fedcohort.core.scheme import Scheme
from fedcohort.core.types import Array
from fedcohort.selector import Selector

KIND = "flower-model"
PATIENCE = 5.0
"""Seconds to wait for another server to let go of the folder."""


@dataclass(frozen=True)
class Folder:
    """The checkpoints of one run."""

    path: Path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second server away for as long as this one runs."""
        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(exclusive(self.path / "lock", PATIENCE))
            except InUse:
                raise InUse(
                    f"Another server runs on the folder '{self.path}': end it, or use another one."
                ) from None
            except OSError as error:
                raise CannotSave(
                    f"The folder '{self.path}' cannot be used for checkpoints "
                    f"({error.strerror}): choose one that can be written to."
                ) from None
            yield

    @property
    def selector(self) -> Path:
        """Where the selector is."""
        return self.path / "selector.npz"

    def model(self, round: int) -> Path:
        """Where the model before a round is."""
        return self.path / f"model-{round:06d}.npz"

    @property
    def holds_run(self) -> bool:
        """Whether there is something to go on with."""
        return self.selector.exists()

    def chosen(self, selector: Selector) -> None:
        """Write down a cohort before it is invited."""
        selector.save(self.selector)

    def finished(self, selector: Selector, parts: Mapping[str, Any]) -> None:
        """Write down the end of a round; ``parts`` are arrays, dataclasses of them, or None."""
        header: dict[str, Any] = {
            "kind": KIND,
            "round": selector.round,
            "ids": list(selector.federation.ids),  # the selector may be saved again with others
        }
        arrays: dict[str, Array] = {}
        for name, part in parts.items():
            if is_dataclass(part):
                header[name], packed = store.pack(part, f"{name}.")
                arrays |= packed
            elif part is not None:
                arrays[name] = part
        store.save(self.model(selector.round), header, arrays)
        selector.save(self.selector)
        for old in self.path.glob("model-*.npz"):
            if old.name < self.model(selector.round - 1).name:  # keep two
                old.unlink()

    def load(self, kind: type[Scheme[Any]]) -> tuple[Selector, dict[str, Any], dict[str, Array]]:
        """The selector and what belongs to its round."""
        selector = Selector.load(self.selector, kind=kind)
        header, arrays = store.load(self.model(selector.round), KIND)
        if header["round"] != selector.round:
            raise BadCheckpoint(
                f"'{self.model(selector.round)}' holds round {header['round']}; put back the "
                "files of one moment."
            )
        return selector, header, arrays
