"""Many runs: schemes x seeds, paired, in parallel, kept in a folder that can be resumed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import joblib

from fedcohort.core.errors import BadCheckpoint, BadInput, BadParameter, InUse
from fedcohort.core.parameters import is_whole
from fedcohort.core.scheme import Scheme
from fedcohort.core.streams import checked_seed
from fedcohort.schemes import scheme as scheme_by_name
from fedcohort.simulation.centralised import CENTRALISED, Centralised
from fedcohort.simulation.engine import check_rounds, simulate
from fedcohort.simulation.notes import Notebook
from fedcohort.simulation.tasks import Task
from fedcohort.simulation.trace import Trace

SETTINGS = "settings.json"
LOCK = ".lock"

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

    @classmethod
    def load(cls, folder: str | Path) -> Comparison:
        """Read a run folder."""
        place = Path(folder)
        if not (place / SETTINGS).is_file():
            raise BadCheckpoint(f"'{place}' is not a run folder: it has no {SETTINGS}.")
        settings = json.loads((place / SETTINGS).read_text(encoding="utf-8"))
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


def compare(
    task: Task,
    schemes: Sequence[str | Scheme[Any]] | Mapping[str, str | Scheme[Any]],
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
    sees the same mini-batches whoever chose it.

    Parameters
    ----------
    task, rounds
        As for `simulate`; ``options`` are passed on to it.
    schemes
        Names or schemes, or a mapping from label to either.
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
    check_rounds("rounds", rounds)
    named: dict[str, Scheme[Any] | Centralised] = {**labelled(schemes)}
    if centralised is not None:
        named[CENTRALISED] = Centralised(centralised)
    chosen = _seeds(seeds)
    facts = {
        **(settings or {}),
        "schemes": {label: str(scheme) for label, scheme in named.items()},
        "seeds": chosen,
        "rounds": rounds,
        "task": task.name,
        "options": {name: repr(value) for name, value in sorted(options.items())},
    }
    units = [(label, seed) for label in named for seed in chosen]
    place = None if folder is None else Path(folder)
    with contextlib.nullcontext() if place is None else _claimed(place, facts):
        done = {} if place is None else _already_there(place, units)
        missing = [unit for unit in units if unit not in done]
        interrupted = False
        try:
            watched = None if notes is None else Path(notes)
            for trace in _run_all(task, named, missing, rounds, place, jobs, watched, options):
                done[trace.label, trace.seed] = trace
                if finished is not None:
                    finished(len(done), len(units), trace)
        except KeyboardInterrupt:
            interrupted = True
    traces = tuple(done[unit] for unit in units if unit in done)
    return Comparison(traces, facts, place, interrupted)


def _run_all(
    task: Task,
    named: Mapping[str, Scheme[Any] | Centralised],
    units: Sequence[tuple[str, int]],
    rounds: int,
    place: Path | None,
    jobs: int,
    notes: Path | None,
    options: Mapping[str, Any],
) -> Iterator[Trace]:
    token = secrets.token_hex(8)
    calls = (
        joblib.delayed(_unit)(
            token,
            task,
            label,
            named[label],
            rounds,
            seed,
            place,
            {**_noted(notes, label, seed, rounds), **options},
        )
        for label, seed in units
    )
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        yield from joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(calls)


def _noted(notes: Path | None, label: str, seed: int, rounds: int) -> dict[str, Any]:
    if notes is None:
        return {}
    path = _file(notes, label, seed).with_suffix(".json")
    return {"progress": Notebook(path, label, seed, rounds)}


_TASKS: dict[str, Task] = {}
"""In a worker: the task of the running comparison, so that what it caches is built once."""


def _unit(
    token: str,
    task: Task,
    label: str,
    scheme: Scheme[Any] | Centralised,
    rounds: int,
    seed: int,
    place: Path | None,
    options: Mapping[str, Any],
) -> Trace:
    if token not in _TASKS:
        _TASKS.clear()
        _TASKS[token] = task
    run = scheme.run if isinstance(scheme, Centralised) else partial(simulate, scheme=scheme)
    trace = run(_TASKS[token], rounds=rounds, seed=seed, settings={"label": label}, **options)
    if place is not None:
        trace.save(_file(place, label, seed))
    return trace


def labelled(
    schemes: Sequence[str | Scheme[Any]] | Mapping[str, str | Scheme[Any]],
) -> dict[str, Scheme[Any]]:
    """Schemes by label: the name, with the parameters that differ where a name comes twice."""
    if isinstance(schemes, Mapping):
        return {label: _as_scheme(scheme) for label, scheme in schemes.items()}
    built = [_as_scheme(scheme) for scheme in schemes]
    if not built:
        raise BadInput("A comparison needs at least one scheme; got none.")
    names = Counter(scheme.name for scheme in built)
    out: dict[str, Scheme[Any]] = {}
    for scheme in built:
        label = scheme.name
        if names[scheme.name] > 1:
            like = [other for other in built if other.name == scheme.name]
            differ = [
                field.name
                for field in fields(scheme)  # type: ignore[arg-type]
                if len({getattr(other, field.name) for other in like}) > 1
            ]
            label += "".join(f" {name}={getattr(scheme, name)}" for name in differ)
        if label in out:
            raise BadInput(f"The scheme '{label}' is named twice with the same parameters.")
        out[label] = scheme
    return out


def _as_scheme(scheme: str | Scheme[Any]) -> Scheme[Any]:
    return scheme_by_name(scheme) if isinstance(scheme, str) else scheme


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if is_whole(seeds):
        if seeds < 1:  # type: ignore[operator]
            raise BadParameter("seeds", "compare", "at least one seed", seeds)
        return list(range(seeds))  # type: ignore[arg-type]
    listed = [checked_seed(seed, "compare") for seed in seeds]  # type: ignore[union-attr]
    if not listed or len(set(listed)) < len(listed):
        raise BadParameter("seeds", "compare", "distinct seeds", seeds)
    return listed


def _file(place: Path, label: str, seed: int) -> Path:
    slug = re.sub(r"[^A-Za-z0-9._=-]+", "_", label)[:80]
    if slug != label:  # two labels must not share a file
        slug += f"-{hashlib.blake2b(label.encode(), digest_size=4).hexdigest()}"
    return place / f"{slug}--seed-{seed}.npz"


def _already_there(place: Path, units: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Trace]:
    paths = {unit: _file(place, *unit) for unit in units}
    return {unit: Trace.load(path) for unit, path in paths.items() if path.is_file()}


@contextlib.contextmanager
def _claimed(place: Path, facts: Mapping[str, Any]) -> Iterator[None]:
    """The run folder, for this process alone; refused if it holds another comparison."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / LOCK).open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse(f"Another process is writing to the run folder '{place}'.") from None
        known, kept = place / SETTINGS, dict(facts)
        if known.is_file():
            old = json.loads(known.read_text(encoding="utf-8"))
            _same_or_refuse(place, old, json.loads(json.dumps(kept)))
            kept["schemes"] = {**old["schemes"], **kept["schemes"]}
            kept["seeds"] = sorted({*old["seeds"], *kept["seeds"]})
        elif any(path.name != LOCK for path in place.iterdir()):
            raise BadInput(f"The folder '{place}' is not empty and is no run folder; take another.")
        known.write_text(json.dumps(kept, indent=2, allow_nan=False), encoding="utf-8")
        yield


def _same_or_refuse(place: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """More schemes or seeds may be added to a run folder; all else must be as it was."""
    for key in sorted({*old, *new} - {"schemes", "seeds", "command"}):
        if old.get(key) != new.get(key):
            raise BadInput(
                f"The run folder '{place}' was made with {key} = {old.get(key)!r}, now it is "
                f"{new.get(key)!r}; take another folder, or delete it."
            )
    for label, scheme in new["schemes"].items():
        if old["schemes"].get(label, scheme) != scheme:
            raise BadInput(
                f"The run folder '{place}' holds {label} as {old['schemes'][label]}, now it is "
                f"{scheme}; take another folder, or delete it."
            )
