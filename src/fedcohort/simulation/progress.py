"""How far every running simulation is: one small file per run, in a folder that others read."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from fedcohort._internal.files import replacing


@dataclass(frozen=True)
class RunProgress:
    """How far one run is."""

    label: str
    seed: int
    done: int
    rounds: int
    accuracy: float | None
    """The latest; None where the task has none."""
    partition: int = 0
    before: int = 0
    """Rounds that were there before, out of an earlier call."""


@dataclass(frozen=True)
class ProgressFile:
    """Where one run tells its progress; called as the ``progress`` of `simulate`."""

    path: Path
    label: str
    seed: int
    rounds: int
    partition: int = 0
    before: int = 0

    def __call__(self, done: int, accuracy: float) -> None:
        """Replace the file: a reader sees the old one or the new one, never half of one."""
        known = accuracy if accuracy == accuracy else None
        note = RunProgress(
            self.label, self.seed, done, self.rounds, known, self.partition, self.before
        )
        # Nobody reads any more, or the disk is full: no reason to stop a run.
        with contextlib.suppress(OSError), replacing(self.path, durable=False) as file:
            file.write(json.dumps(asdict(note)).encode())


def read_progress(folder: Path) -> Iterator[RunProgress]:
    """Of all runs that told it in a folder."""
    for path in sorted(folder.glob("*.json")):
        try:
            yield RunProgress(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError):  # just replaced, or no note
            continue
