"""Worker processes, and what a killed one leaves."""

from __future__ import annotations

import secrets
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import joblib

from fedcohort._internal.errors import BadCheckpoint, Diverged, FedcohortWarning, UnequalWork
from fedcohort._internal.files import FOR_ALL_TO_READ, replacing
from fedcohort._internal.random import stream
from fedcohort.server._trace import Trace
from fedcohort.simulation._arms import Arm
from fedcohort.simulation._centralized import Centralised
from fedcohort.simulation._problem import Divisions, Source, task_of
from fedcohort.simulation._progress import ProgressFile
from fedcohort.simulation._storage import run_file, state_file
from fedcohort.training import LearningTask, Task
from fedcohort.training._local import LocalWork

# Who computes the runs of a comparison: processes of this machine, or the nodes of a cluster.

T = TypeVar("T")


class Executor(Protocol):
    """Calls a function many times, elsewhere; within a ``with``."""

    local: ClassVar[bool]
    """Whether it sees the files of this machine."""

    @property
    def width(self) -> int | None:
        """The number of calls that it computes at a time; None if it is not known."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None: ...

    def each(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """The results for each tuple of arguments, as they are ready.

        The first argument is what many calls share (data), and is sent as seldom as possible.
        """
        ...


JOBS_LIMIT = 1024
"""Processes at a time."""


@dataclass(frozen=True)
class Processes:
    """Processes of this machine, with one thread each for linear algebra."""

    jobs: int = -1

    local: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """See `Executor.width`."""
        return int(joblib.effective_n_jobs(self.jobs))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Processes are kept for the next time."""

    def each(self, function: Callable[..., T], calls: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """See `Executor.each`; large arrays are mapped into memory, not copied."""
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(n_jobs=self.jobs, return_as="generator_unordered")
            yield from parallel(joblib.delayed(function)(*call) for call in calls)


# The runs of a comparison, given to whoever computes them, one at a time each.


class Unit(NamedTuple):
    """One run: a division of the data, a seed, a scheme."""

    partition: int
    seed: int
    label: str

    @classmethod
    def of(cls, trace: Trace) -> Unit:
        """That a trace is of."""
        return cls(trace.partition, trace.seed, trace.label)


class Files(NamedTuple):
    """What is kept of a run, for who does not see this machine's disk; empty where nothing is."""

    run: bytes = b""
    state: bytes = b""  # by which it can be extended

    @classmethod
    def read(cls, path: Path) -> Files:
        """Those of the run at a path."""
        return cls(*(each.read_bytes() if each.is_file() else b"" for each in _places(path)))

    def write(self, path: Path) -> None:
        """As those of the run at a path; the state first, as a run on this machine does."""
        for place, content in zip(reversed(_places(path)), reversed(self), strict=True):
            if content:
                place.parent.mkdir(exist_ok=True)
                with replacing(place, FOR_ALL_TO_READ) as draft:
                    draft.write(content)


def _places(path: Path) -> tuple[Path, Path]:
    return path, state_file(path)


TIMED = 2
"""Rounds of every scheme that are timed; the second counts, since the first prepares data."""
TIMED_SHARE = 10
"""A scheme is timed only if its runs have at least so many times as many rounds."""
Lost = Callable[[Unit, Diverged], None]
"""Hears of every run that diverged."""


@dataclass
class Pool:
    """The runs of a comparison, and who computes them."""

    divisions: Divisions
    named: Mapping[str, Arm | Centralised]
    executor: Executor
    options: Mapping[str, Any]
    lost: Lost | None = None
    """None if a run that diverges ends the comparison."""

    def __post_init__(self) -> None:
        self.token = secrets.token_hex(8)
        self.told: set[tuple[str, str]] = set()
        self.before: dict[Unit, int] = {}

    def rehearse(self, units: Sequence[Unit]) -> None:
        """One round of every scheme with one step of training, the first that it lacks.

        A setting that does not fit the federation shows now, not when others have trained.
        """
        work = replace(self.options.get("work") or LocalWork(), steps=1, epochs=None)
        options = {**self.options, "progress": None, "work": work}
        if isinstance(self.divisions.first, LearningTask):
            options["evaluate_on"] = 1  # how good the model is does not matter yet
        first = {unit.label: unit for unit in reversed(units)}
        calls = (self._call(unit, 1, None, options) for unit in reversed(first.values()))
        for found, *_ in self.executor.each(_run, calls):  # its warnings come again in the run
            if isinstance(found, Diverged) and self.lost is None:
                raise found

    def estimate(self, units: Sequence[Unit], rounds: int) -> float | None:
        """Estimate the seconds that these runs take, by two rounds of every scheme.

        Return None if these rounds would take long beside the runs, or on other machines.
        """
        width = self.executor.width
        per_scheme = Counter(unit.label for unit in units)
        if width is None or not units or rounds * max(per_scheme.values()) < TIMED_SHARE * TIMED:
            return None
        options = {**self.options, "progress": None}
        first = {unit.label: unit for unit in reversed(units)}
        calls = (self._call(unit, TIMED, None, options) for unit in reversed(first.values()))
        evaluations, each = -(-rounds // self.options.get("evaluate_every", 1)), {}
        for found, unit, *_ in self.executor.each(_run, calls):
            if not isinstance(found, Diverged):  # such a run ends early
                selection, training, evaluation = found.seconds[-1]
                each[unit.label] = rounds * (selection + training) + evaluations * evaluation
        left = [
            each.get(unit.label, 0.0) * (1 - self.before.get(unit, 0) / rounds) for unit in units
        ]
        return float(max(sum(left) / min(width, len(units)), max(left)))

    def found(self, unit: Unit, trace: Trace, rounds: int, notes: Path | None) -> None:
        """Hear of a run that is there already, though perhaps with too few rounds."""
        self.before[unit] = min(trace.rounds, rounds)
        if notes is not None:
            self._note(notes, unit, rounds)(self.before[unit], float(trace.accuracy[-1]))

    def run(
        self, units: Sequence[Unit], rounds: int, place: Path | None, notes: Path | None
    ) -> Iterator[Trace]:
        """The runs as they are finished; a warning is passed on once for every scheme."""
        calls = (
            self._call(unit, rounds, place, {**self._noted(notes, unit, rounds), **self.options})
            for unit in units
        )
        for found, unit, heard, files in self.executor.each(_run, calls):
            for line, text in heard.items():
                self._pass_on(unit.label, line, text)
            if not isinstance(found, Diverged):
                if place is not None and files is not None:
                    files.write(self.file(place, unit))
                yield found
            elif self.lost is None:
                raise found
            else:
                self.lost(unit, found)

    def file(self, place: Path, unit: Unit) -> Path:
        """Where a run is kept."""
        return run_file(place, unit.label, unit.seed, self.divisions.filed(unit.partition))

    def _call(
        self, unit: Unit, rounds: int, place: Path | None, options: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """One run, for a worker; it may have been started in another directory than this."""
        kept: Path | Files | None = None
        if place is not None:
            path = self.file(place.absolute(), unit)
            kept = path if self.executor.local else Files.read(path)
        source = self.divisions.sources[unit.partition]
        return source, self.token, unit, self.named[unit.label], rounds, kept, options

    def _noted(self, notes: Path | None, unit: Unit, rounds: int) -> dict[str, Any]:
        if notes is None or not self.executor.local:
            return {}
        return {"progress": self._note(notes, unit, rounds)}

    def _note(self, notes: Path, unit: Unit, rounds: int) -> ProgressFile:
        path, before = self.file(notes.absolute(), unit), self.before.get(unit, 0)
        return ProgressFile(
            path.with_suffix(".json"), unit.label, unit.seed, rounds, unit.partition, before
        )

    def _pass_on(self, label: str, line: str, text: str) -> None:
        if (label, line) not in self.told:
            self.told.add((label, line))
            named = text.startswith(self.named[label].name)
            said = text if named else f"{label}: {text}"
            warnings.warn(said, FedcohortWarning, stacklevel=5)  # where `compare` was called


def run_seed(seed: int, partition: int) -> int:
    """What a run with a seed on a partition draws from: other coins on every partition.

    With the same coins, the clients of the same numbers would be chosen in the same rounds on
    each; where a partition gives the same labels to the same numbers, what is chance in one
    would be repeated in all, and pass for what they have in common. Partition 0 draws from the
    seed itself, as a task of its own does.
    """
    return (
        int(stream(seed, "runs on a partition", partition).integers(2**63)) if partition else seed
    )


_TASKS: dict[tuple[str, int], Task] = {}
"""In a worker: the task that it works on, so that what it caches is built once."""


def _task(token: str, partition: int, source: Source) -> Task:
    """The task of a division; that of the last one is let go first."""
    if (token, partition) not in _TASKS:
        _TASKS.clear()
        _TASKS[token, partition] = task_of(source, partition)
    return _TASKS[token, partition]


def _run(
    source: Source,
    token: str,
    unit: Unit,
    arm: Arm | Centralised,
    rounds: int,
    kept: Path | Files | None,
    options: Mapping[str, Any],
) -> tuple[Trace | Diverged, Unit, dict[str, str], Files | None]:
    """One run in a worker, and our warnings in it: one from each line, whatever its numbers.

    What is kept of it is written at a path, or comes back where this worker has another disk.
    """
    heard: dict[str, str] = {}
    with warnings.catch_warnings():
        show = warnings.showwarning

        def keep(
            message: Any,
            category: type[Warning],
            filename: str,
            lineno: int,
            *rest: Any,
            **how: Any,
        ) -> None:
            if issubclass(category, FedcohortWarning):
                heard.setdefault(f"{filename}:{lineno}", str(message))
            else:
                show(message, category, filename, lineno, *rest, **how)

        warnings.simplefilter("always", FedcohortWarning)
        warnings.simplefilter("ignore", UnequalWork)  # `compare` says it once
        warnings.showwarning = keep
        task = _task(token, unit.partition, source)
        seed = run_seed(unit.seed, unit.partition)
        facts = {"label": unit.label, "partition": unit.partition, "seed": unit.seed}
        if seed != unit.seed:
            facts["run_seed"] = seed
        own = {**options, "rounds": rounds, "seed": seed, "settings": facts}
        files: Files | None = None
        try:
            if isinstance(kept, Files):
                trace, files = _away(arm, task, kept, own)
            else:
                trace = arm.run(task, **own) if kept is None else _kept(arm, task, kept, own)
        except Diverged as error:
            return error, unit, heard, None
    return trace, unit, heard, files


def _away(
    arm: Arm | Centralised, task: Task, files: Files, own: Mapping[str, Any]
) -> tuple[Trace, Files]:
    """A run as on the machine that keeps it, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="fedcohort-") as folder:
        path = Path(folder, "run.npz")
        files.write(path)
        return _kept(arm, task, path, own), Files.read(path)


def _kept(arm: Arm | Centralised, task: Task, path: Path, own: Mapping[str, Any]) -> Trace:
    """A run that is written down; one that is there with fewer rounds is extended."""
    keep = state_file(path)
    trace: Trace | None = None
    if path.is_file():
        try:
            trace = arm.run(task, keep=keep, before=Trace.load(path), **own)
        except BadCheckpoint as error:
            said = f"Its runs are not extended but begin again: {error}"
            warnings.warn(said, FedcohortWarning, stacklevel=2)
    trace = arm.run(task, keep=keep, **own) if trace is None else trace
    trace.save(path)
    return trace
