"""Progress bars in terminals and notebooks."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fedcohort._internal import html
from fedcohort._internal.files import replacing
from fedcohort._internal.html import NOTHING, duration

if TYPE_CHECKING:
    from fedcohort.server._trace import Trace
    from fedcohort.simulation._comparison import Plan

# How far every running simulation is: one small file per run, in a folder that others read.


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


# A running comparison in the terminal: progress, accuracy and time left; plain lines if piped.


@dataclass(frozen=True)
class SchemeProgress:
    """How far one scheme is: rounds done over all of its seeds, and its latest accuracy."""

    label: str
    finished: int
    seeds: int
    done: int
    rounds: int
    accuracy: float | None

    @property
    def share(self) -> float:
        """In [0, 1]."""
        return self.done / max(1, self.rounds * self.seeds)


def progress_of(
    label: str, seeds: int, rounds: int, notes: Iterable[RunProgress]
) -> SchemeProgress:
    """Sum up the notes of one scheme; accuracy is the mean over the runs that have begun."""
    own = [note for note in notes if note.label == label]
    known = [note.accuracy for note in own if note.accuracy is not None]
    return SchemeProgress(
        label,
        sum(note.done >= rounds for note in own),
        seeds,
        sum(note.done for note in own),
        rounds,
        sum(known) / len(known) if known else None,
    )


@dataclass
class Watch:
    """Shows a comparison while it runs.

    Use it around `compare`::

        with fedcohort.report.watch(["md", "uniform"], seeds=5, rounds=100) as view:
            compare(..., notes=view.notes, planned=view.planned, finished=view.finished)

    In a notebook `compare` does so by itself.

    In a terminal and in a notebook one line per scheme is kept up to date; elsewhere one plain
    line is printed for every finished run. All goes to standard error, so output can still be
    piped.
    """

    labels: Sequence[str]
    seeds: int
    rounds: int
    console: Console = field(default_factory=lambda: Console(file=sys.stderr))
    clock: Callable[[], float] = time.monotonic
    partitions: int = 1
    notes: Path = field(init=False)
    """The folder to hand to `compare`."""

    @property
    def _runs(self) -> int:
        """Of each scheme."""
        return self.seeds * self.partitions

    def __enter__(self) -> Watch:
        self._folder = tempfile.TemporaryDirectory(prefix="fedcohort-", ignore_cleanup_errors=True)
        self.notes = Path(self._folder.name)
        self._latest: dict[tuple[str, int, int], RunProgress] = {}
        self._started = self.clock()
        self._plan = ""
        self._live: Live | InNotebook | None = None
        if self.console.is_jupyter:
            self._live = InNotebook(self.html)
        elif self.console.is_terminal:
            self._live = Live(console=self.console, get_renderable=self.table, refresh_per_second=2)
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
        self._folder.cleanup()

    def planned(self, plan: Plan) -> None:
        """Show the plan of a comparison."""
        self._plan = str(plan)
        if not isinstance(self._live, InNotebook):
            self.console.print(Text(self._plan), soft_wrap=not self.console.is_terminal)

    def finished(self, done: int, total: int, trace: Trace) -> None:
        """Hear of a finished run."""
        self.read()
        accuracy = float(trace.accuracy[-1])
        known = accuracy if accuracy == accuracy else None
        done_all = trace.rounds, trace.rounds, known
        note = RunProgress(trace.label, trace.seed, *done_all, trace.partition)
        note = replace(note, before=self._latest.get(_run(note), note).before)
        self._latest[_run(note)] = note
        if self._live is None:
            self.console.print(
                Text(
                    f"[{done}/{total}] {trace.label}, {self._which(note)}: {_percent(known)}, "
                    f"{self.time_left()}"
                ),
                soft_wrap=True,
            )

    def read(self) -> list[RunProgress]:
        """The latest note of every run that has begun."""
        for note in read_progress(self.notes):
            if note.done > self._latest.get(_run(note), _NONE).done:
                self._latest[_run(note)] = note
        return list(self._latest.values())

    def _which(self, note: RunProgress) -> str:
        where = f"partition {note.partition}, " if self.partitions > 1 else ""
        return f"{where}seed {note.seed}"

    def time_left(self) -> str:
        """At the pace so far, in words."""
        notes = self.read()
        before = sum(note.before for note in notes)  # cost nothing today
        done = sum(note.done for note in notes) - before
        total = len(self.labels) * self._runs * self.rounds - before
        elapsed = self.clock() - self._started
        if done >= total:
            return "done"
        if not done:
            return "starting"
        return f"about {duration(max(1.0, elapsed * (total - done) / done))} left"

    @property
    def found(self) -> str:
        """What was there before, in words; empty if nothing was."""
        before = [note.before for note in self.read() if note.before]
        if not before:
            return ""
        of = f"{len(before)} of {len(self.labels) * self._runs} runs"
        shorter = sum(rounds < self.rounds for rounds in before)
        if not shorter:
            return of
        which = "" if shorter == len(before) else f"{shorter} of them "
        return f"{of}, {which}with fewer rounds: continued"

    def table(self) -> RenderableType:
        """What the terminal shows."""
        notes = self.read()
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("Scheme", "Progress", "Runs", "Accuracy"):
            table.add_column(
                heading, justify="left" if heading in {"Scheme", "Progress"} else "right"
            )
        for label in self.labels:
            row = progress_of(label, self._runs, self.rounds, notes)
            table.add_row(
                Text(label, overflow="ellipsis", no_wrap=True),  # never read as markup
                ProgressBar(total=1.0, completed=row.share, width=28),
                f"{row.finished}/{row.seeds}",
                _percent(row.accuracy),
            )
        return Group(table, Text(self._pace(), style="dim"))

    def html(self) -> str:
        """What a notebook shows."""
        notes = self.read()
        rows = []
        for label in self.labels:
            row = progress_of(label, self._runs, self.rounds, notes)
            runs = f"{row.finished}/{row.seeds}"
            shown = html.progress(row.share, f"{row.share:.0%} of {label}")
            rows.append((label, shown, runs, _percent(row.accuracy)))
        heads = ("Scheme", "Progress", "Runs", "Accuracy")
        return html.table(self._pace(), heads, rows, self._plan, limit=50)

    def _pace(self) -> str:
        return f"{duration(self.clock() - self._started)} so far, {self.time_left()}"


def in_notebook() -> bool:
    """Whether what is shown goes into the output of a cell."""
    return Console().is_jupyter


class InNotebook:
    """Shows HTML in the output of a cell, and again twice a second; rich would need widgets."""

    def __init__(self, html: Callable[[], str]) -> None:
        self._html, self._over = html, Event()
        self._thread = Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        """Show it for the first time."""
        from IPython.display import HTML, display

        self._shown = display(HTML(self._html()), display_id=True)  # type: ignore[no-untyped-call]
        self._thread.start()

    def stop(self) -> None:
        """Show it for the last time."""
        self._over.set()
        self._thread.join()
        self._update()

    def _keep(self) -> None:
        while not self._over.wait(0.5):
            self._update()

    def _update(self) -> None:
        from IPython.display import HTML

        self._shown.update(HTML(self._html()))  # type: ignore[no-untyped-call]


def _run(note: RunProgress) -> tuple[str, int, int]:
    return note.label, note.partition, note.seed


_NONE = RunProgress("", 0, 0, 0, None)


def _percent(accuracy: float | None) -> str:
    return NOTHING if accuracy is None else f"{100 * accuracy:.1f} %"
