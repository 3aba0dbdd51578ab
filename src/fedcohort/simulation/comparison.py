"""Many runs: schemes x seeds, paired, in parallel, kept in a folder that can be resumed."""

from __future__ import annotations

import contextlib
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import joblib

from fedcohort.algorithms import algorithm
from fedcohort.core.errors import BadCheckpoint, BadInput, BadParameter, FedcohortWarning
from fedcohort.core.parameters import is_whole
from fedcohort.core.renamed import PARTS, successor
from fedcohort.core.streams import checked_seed
from fedcohort.learning import LearningTask, Task
from fedcohort.learning.work import LocalWork
from fedcohort.learning.wrong_use import check_task
from fedcohort.server import aggregator, optimiser
from fedcohort.server.guards import guards
from fedcohort.server.history import is_history, is_running, read
from fedcohort.simulation.arms import Arm, Which, labelled
from fedcohort.simulation.availability import availability
from fedcohort.simulation.centralised import CENTRALISED, Centralised
from fedcohort.simulation.engine import SEEDS_LIMIT, check_rounds
from fedcohort.simulation.progress import ProgressFile
from fedcohort.simulation.runfolder import (
    CODE,
    FINGERPRINT,
    SETTINGS,
    agreed,
    claimed,
    code_of,
    read_settings,
    run_file,
)
from fedcohort.trace import Trace

STATE = "state"
"""The setting that says of a run that was not simulated: finished, running or stopped."""
Finished = Callable[[int, int, Trace], None]
"""Hears of every finished run: how many are done, of how many, and the run."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The runs of a comparison, in the order of the schemes, then of the seeds."""

    traces: tuple[Trace, ...]
    settings: Mapping[str, Any]
    folder: Path | None = None
    interrupted: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return tuple(dict.fromkeys(trace.label for trace in self.traces))

    def of(self, label: str) -> tuple[Trace, ...]:
        """The runs of one scheme, one per seed."""
        return tuple(trace for trace in self.traces if trace.label == label)

    def __repr__(self) -> str:
        seeds, folder = len({trace.seed for trace in self.traces}), ""
        if self.folder is not None:
            folder = f" in '{self.folder}'"
        missing = ", interrupted" if self.interrupted else ""
        schemes = ", ".join(self.labels) or "nothing"
        return f"<Comparison of {schemes}: {len(self.traces)} runs, {seeds} seeds{missing}{folder}>"

    def _repr_html_(self) -> str:
        """What a notebook shows; gaps, costs and p values are in `fedcohort.report.summary`."""
        rows = ""
        for label in self.labels:
            traces = self.of(label)
            names = dict.fromkeys(trace.last()[0] for trace in traces)
            level = sum(trace.last()[1] for trace in traces) / len(traces)
            rows += (
                f"<tr><td>{escape(label)}</td><td>{len(traces)}</td>"
                f"<td>{min(trace.rounds for trace in traces)}</td>"
                f"<td>{' / '.join(names)} {level:.4g}</td></tr>"
            )
        heads = ("Scheme", "Seeds", "Rounds", "Last evaluation, mean over seeds")
        head = "".join(f"<th>{text}</th>" for text in heads)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    @classmethod
    def load(cls, folder: str | Path) -> Comparison:
        """Read a run folder: of a comparison, or of one run that was carried by Flower."""
        place = Path(folder)
        if is_history(place):
            return _carried(place)
        if not (place / SETTINGS).is_file():
            raise BadCheckpoint(f"'{place}' is not a run folder: it has no {SETTINGS}.")
        settings = read_settings(place)
        order = {label: i for i, label in enumerate(settings["schemes"])}
        paths = sorted(place.glob("*.npz"))
        for path in paths:
            if path.is_symlink():
                raise BadCheckpoint(f"'{path}' is a link; a run folder holds its own files only.")
        traces = [Trace.load(path) for path in paths]
        if not traces:
            raise BadCheckpoint(f"'{place}' holds no finished run; start the comparison again.")
        traces.sort(key=lambda trace: (order.get(trace.label, len(order)), trace.seed))
        return cls(tuple(traces), settings, place)


def _carried(place: Path) -> Comparison:
    """The run of a folder whose rounds were not simulated, as far as it is."""
    told, records = read(place)
    if not {"scheme", "seed", "importance"} <= told.keys():
        raise BadCheckpoint(f"'{place}' does not say which run it holds; was it just started?")
    if not records:
        raise BadInput(f"The run in '{place}' has not finished a round yet; come back later.")
    done, rounds = records[-1].round + 1, int(told.get("rounds", 0))
    state = "finished" if done >= rounds else "running" if is_running(place) else "stopped"
    trace = Trace.from_records({"carrier": "Flower", **told, STATE: state}, records)
    built = ", ".join(f"{k}={v}" for k, v in trace.settings.get("parameters", {}).items())
    schemes = {trace.label: f"{trace.scheme}({built})"}
    settings = {"schemes": schemes, "seeds": [trace.seed], "rounds": max(done, rounds)}
    return Comparison((trace,), settings, place)


def compare(
    task: Task,
    schemes: Which | Sequence[Which] | Mapping[str, Which],
    *,
    rounds: int,
    seeds: int | Sequence[int] = 5,
    folder: str | Path | None = None,
    jobs: int = -1,
    finished: Finished | None = None,
    centralised: int | None = None,
    notes: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Run every scheme with every seed.

    Randomness is paired: with the same seed all schemes start from the same model and a client
    sees the same mini-batches whoever chose it. Before the first run every scheme plays one
    short round, so that a setting that does not fit the federation shows at once.

    Local training is that of ``LocalWork()`` unless ``work`` is given. `fedcohort compare` of the
    command line trains otherwise by default: ``LocalWork(steps=20, batch=10, lr=0.1)``.

    Parameters
    ----------
    task, rounds
        As for `simulate`; ``options`` are passed on to it.
    schemes
        Names or schemes, or a mapping from label to either. A local algorithm, an optimiser or
        an aggregator of its own is joined by a plus: ``"md+scaffold"``,
        ``"uniform+adam:eta_g=0.01"``, or `Arm`.
    seeds
        How many (0, 1, ...), or which.
    folder
        Where each finished run is kept. Runs already there are not repeated, so an
        interrupted comparison goes on where it stopped.
    jobs
        Processes; -1 for all cores. Each uses one BLAS thread.
    finished
        Called after every run.
    centralised
        Train on all data in one place as well, on so many samples a round: an upper line.
    notes
        An existing folder in which every running run notes how far it is, for a live view
        (`fedcohort.report.watch`).
    settings
        Anything to keep with the comparison (data, partition, command).
    """
    check_task(task, "compare")
    check_rounds("rounds", rounds)
    if not is_whole(jobs) or jobs == 0:
        raise BadParameter("jobs", "compare", "a number of processes, or -1 for all cores", jobs)
    options = _built(options)
    named: dict[str, Arm | Centralised] = {**labelled(schemes)}
    if centralised is not None:
        named[CENTRALISED] = Centralised(centralised)
    chosen = _seeds(seeds)
    facts = {
        **(settings or {}),
        "schemes": {label: str(arm) for label, arm in named.items()},
        CODE: {label: arm.code for label, arm in named.items() if arm.code},
        "seeds": chosen,
        "rounds": rounds,
        "task": task.name,
        "options": {name: _word(value) for name, value in sorted(options.items())},
    }
    units = [(label, seed) for label in named for seed in chosen]
    place = None if folder is None else Path(folder)
    done: dict[tuple[str, int], Trace] = {}
    if place is not None:
        from fedcohort import __version__  # which imports this module

        facts |= {FINGERPRINT: task.fingerprint(), "version": __version__}
        agreed(place, facts)  # another comparison is refused before anything is computed
        done = _already_there(place, units)
    missing = [unit for unit in units if unit not in done]
    pool = _Pool(task, named, jobs, options)
    interrupted = False
    try:
        pool.rehearse(missing)
        with contextlib.nullcontext() if place is None else claimed(place, facts):
            for trace in pool.run(missing, rounds, place, None if notes is None else Path(notes)):
                done[trace.label, trace.seed] = trace
                if finished is not None:
                    finished(len(done), len(units), trace)
    except KeyboardInterrupt:
        interrupted = True
    traces = tuple(done[unit] for unit in units if unit in done)
    return Comparison(traces, facts, place, interrupted)


def _built(options: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of the server that were given by name, built: one folder, whichever way it is said."""
    build: dict[str, Callable[[Any], Any]] = {
        "optimiser": optimiser,
        "aggregator": aggregator,
        "availability": availability,
        "algorithm": algorithm,
    }
    named = dict(options)
    for old, new in PARTS.items():
        if old in named:
            given = successor("compare", old, named.pop(old), new, named.get(new), stacklevel=4)
            named[new] = given
    built = {key: build[key](given) if key in build else given for key, given in named.items()}
    behind = guards(built.pop("hardened", None))
    return built if not behind else {**built, "hardened": behind}


def _word(option: object) -> str:
    """The word of a part, with a digest of code that is not ours; another option as it is."""
    if isinstance(option, tuple):
        return "+".join(_word(each) for each in option)
    if not hasattr(option, "spec"):
        return repr(option)
    code = code_of(option)
    return f"{option.spec}" if code is None else f"{option.spec} (code {code[:8]})"


@dataclass
class _Pool:
    """Processes that run the schemes of a comparison."""

    task: Task
    named: Mapping[str, Arm | Centralised]
    jobs: int
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        self.token = secrets.token_hex(8)
        self.told: set[tuple[str, str]] = set()

    def rehearse(self, units: Sequence[tuple[str, int]]) -> None:
        """One round of every scheme with one step of training, with the first seed it lacks.

        A setting that does not fit the federation shows now, not when others have trained.
        """
        work = replace(self.options.get("work") or LocalWork(), steps=1, epochs=None)
        options = {**self.options, "progress": None, "work": work}
        if isinstance(self.task, LearningTask):
            options["evaluate_on"] = 1  # how good the model is does not matter yet
        first = dict(reversed(units))
        calls = (
            self._call(label, seed, 1, None, options) for label, seed in reversed(first.items())
        )
        for _ in self._each(calls):
            pass  # its warnings come again in the run

    def _call(
        self, label: str, seed: int, rounds: int, place: Path | None, options: Mapping[str, Any]
    ) -> Any:
        """One run, for a worker; it may have been started in another directory than this."""
        arm, place = self.named[label], None if place is None else place.absolute()
        return joblib.delayed(_unit)(
            self.token, self.task, label, arm, rounds, seed, place, options
        )

    def run(
        self, units: Sequence[tuple[str, int]], rounds: int, place: Path | None, notes: Path | None
    ) -> Iterator[Trace]:
        """The runs as they are finished; a warning is passed on once for every scheme."""
        calls = (
            self._call(
                label, seed, rounds, place, {**_noted(notes, label, seed, rounds), **self.options}
            )
            for label, seed in units
        )
        for trace, heard in self._each(calls):
            for line, text in heard.items():
                self._pass_on(trace.label, line, text)
            yield trace

    def _each(self, calls: Iterator[Any]) -> Iterator[tuple[Trace, dict[str, str]]]:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            yield from joblib.Parallel(n_jobs=self.jobs, return_as="generator_unordered")(calls)

    def _pass_on(self, label: str, line: str, text: str) -> None:
        if (label, line) not in self.told:
            self.told.add((label, line))
            named = text.startswith(self.named[label].name)
            said = text if named else f"{label}: {text}"
            warnings.warn(said, FedcohortWarning, stacklevel=4)  # where `compare` was called


def _noted(notes: Path | None, label: str, seed: int, rounds: int) -> dict[str, Any]:
    if notes is None:
        return {}
    path = run_file(notes.absolute(), label, seed).with_suffix(".json")
    return {"progress": ProgressFile(path, label, seed, rounds)}


_TASKS: dict[str, Task] = {}
"""In a worker: the task of the running comparison, so that what it caches is built once."""


def _unit(
    token: str,
    task: Task,
    label: str,
    arm: Arm | Centralised,
    rounds: int,
    seed: int,
    place: Path | None,
    options: Mapping[str, Any],
) -> tuple[Trace, dict[str, str]]:
    """One run in a worker, and our warnings in it: one from each line, whatever its numbers."""
    if token not in _TASKS:
        _TASKS.clear()
        _TASKS[token] = task
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
        warnings.showwarning = keep
        facts = {"label": label}
        trace = arm.run(_TASKS[token], rounds=rounds, seed=seed, settings=facts, **options)
    if place is not None:
        trace.save(run_file(place, label, seed))
    return trace, heard


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if is_whole(seeds):
        if not 1 <= seeds <= SEEDS_LIMIT:  # type: ignore[operator]
            raise BadParameter("seeds", "compare", f"from 1 to {SEEDS_LIMIT} seeds", seeds)
        return list(range(seeds))  # type: ignore[arg-type]
    listed = [checked_seed(seed, "compare") for seed in seeds]  # type: ignore[union-attr]
    if not listed or len(set(listed)) < len(listed):
        raise BadParameter("seeds", "compare", "distinct seeds", seeds)
    return listed


def _already_there(place: Path, units: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Trace]:
    paths = {unit: run_file(place, *unit) for unit in units}
    return {unit: Trace.load(path) for unit, path in paths.items() if path.is_file()}
