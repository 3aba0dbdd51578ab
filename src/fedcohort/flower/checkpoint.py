"""What survives a crash of the server.

``state-<round>.npz`` is written when a round is over, ``selection.npz`` when a cohort has been
chosen, *before* anybody is invited. The newest state is the valid one, and each file is replaced
in one step: whatever the moment of a crash, a server that comes back has the state of a round and,
if one was chosen, that round's own cohort. ``history.jsonl`` holds a record of every round, for
reports; see `fedcohort.server._history`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fedcohort._internal import store
from fedcohort._internal.errors import CannotSave, InUse
from fedcohort._internal.files import exclusive
from fedcohort._internal.random import checked_seed
from fedcohort.server._checkpoint import pack_selection, pack_state, unpack_selection, unpack_state
from fedcohort.server._history import LOCK
from fedcohort.server._ledger import Entry
from fedcohort.server._membership import replay_selection
from fedcohort.server._state import Selection, Setup, State

STATE, SELECTION = "flower-state", "flower-selection"
PATIENCE = 5.0
"""Seconds to wait for another server to let go of the folder."""


class Told(NamedTuple):
    """Which run a folder holds."""

    scheme: str
    parameters: dict[str, Any]
    seed: int
    facts: dict[str, Any]


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
                stack.enter_context(exclusive(self.path / LOCK, PATIENCE))
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

    def _states(self) -> list[Path]:
        found = self.path.glob("state-*.npz")
        return sorted(found, key=lambda path: (len(path.name), path.name))  # by number

    @property
    def holds_run(self) -> bool:
        """Whether there is something to go on with."""
        return bool(self._states())

    def chosen(self, selection: Selection, entries: Sequence[Entry]) -> None:
        """Write down a cohort before it is invited, and what choosing it has cost."""
        header, arrays = pack_selection(selection)
        header |= {"kind": SELECTION, "entries": [list(entry) for entry in entries]}
        store.save(self.path / "selection.npz", header, arrays)

    def finished(
        self, setup: Setup, state: State, facts: Mapping[str, Any], entries: Sequence[Entry] = ()
    ) -> None:
        """Write down a state; two are kept.

        ``facts`` must be the same when the run goes on, ``entries`` are what the coming round has
        cost so far.
        """
        header, arrays = pack_state(setup, state)
        header |= {"kind": STATE, "facts": dict(facts), "entries": [list(each) for each in entries]}
        store.save(self.path / f"state-{state.round:06d}.npz", header, arrays)
        for old in self._states()[:-2]:
            old.unlink()

    def told(self) -> Told:
        """Which run this is, as the newest state has it."""
        path = self._states()[-1]
        header, _ = store.load(path, STATE)
        with store.whole(path, "run"):
            for name, kind in (
                ("scheme", str),
                ("parameters", dict),
                ("seed", str),
                ("facts", dict),
            ):
                store.check(name, header[name], kind, {})
            seed = checked_seed(int(header["seed"]), "the run")
            return Told(header["scheme"], header["parameters"], seed, header["facts"])

    def load(self, setup: Setup) -> tuple[State, Selection | None, list[Entry]]:
        """The newest state, and the cohort that was chosen on it, if one was."""
        path = self._states()[-1]
        header, arrays = store.load(path, STATE)
        with store.whole(path, "run"):
            state = unpack_state(setup, header, arrays)
            spent = [Entry.checked(entry) for entry in header["entries"]]
        path = self.path / "selection.npz"
        if not path.is_file():
            return state, None, spent
        header, arrays = store.load(path, SELECTION)
        with store.whole(path, "cohort"):
            if header["round"] != state.round:
                return state, None, spent
            selection = unpack_selection(setup, len(state.federation), header, arrays)
            entries = [Entry.checked(entry) for entry in header["entries"]]
            return state, replay_selection(setup, state, selection), entries
