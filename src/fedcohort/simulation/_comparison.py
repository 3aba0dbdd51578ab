"""Compare schemes: the plan, the runs and their traces."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedcohort._internal import html
from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    BadParameter,
    UnequalWork,
    UnknownName,
    brief,
)
from fedcohort._internal.files import as_path
from fedcohort._internal.html import duration, plural
from fedcohort._internal.parameters import is_whole
from fedcohort._internal.random import checked_seed
from fedcohort.schemes import SCHEMES
from fedcohort.server import aggregator, optimiser
from fedcohort.server._guards import guards
from fedcohort.server._history import is_history, is_running, read, whole
from fedcohort.server._stragglers import straggler_rule
from fedcohort.server._trace import Trace
from fedcohort.simulation._arms import OWN, Arm, OwnWork, Which, labelled
from fedcohort.simulation._availability import availability
from fedcohort.simulation._centralized import Centralised, upper_lines
from fedcohort.simulation._devices import devices
from fedcohort.simulation._engine import SEEDS_LIMIT, check_rounds, simulate
from fedcohort.simulation._measures import checked_measures
from fedcohort.simulation._problem import Given, divisions
from fedcohort.simulation._progress import Watch, in_notebook
from fedcohort.simulation._ray_cluster import RayCluster
from fedcohort.simulation._storage import (
    CODE,
    ORACLE,
    PARTITIONS,
    REFERENCE,
    SETTINGS,
    agreed,
    base_of,
    claimed,
    code_of,
    noted,
    read_settings,
)
from fedcohort.simulation._workers import JOBS_LIMIT, Executor, Lost, Pool, Processes, Unit
from fedcohort.training import LocalWork, Task
from fedcohort.training._algorithms import algorithm, unequal_work
from fedcohort.training._call_checks import check_work, says_how

# The plan of a comparison: what its seeds can decide, and how long it takes.

LEVEL = 0.05
"""A difference counts as more than chance if its p is not above this level."""
FEW_SCHEMES, SEEDS, SEEDS_OF_MANY = 7, 8, 11
"""Up to 7 schemes 8 seeds can decide, and 11 seeds can decide up to 52 schemes."""
DEFAULT_REFERENCE = "md"


class Candidate(NamedTuple):
    """A scheme of a comparison, as a possible reference."""

    label: str
    scheme: str
    plain: bool
    """Whether it has no local algorithm, optimizer, aggregator or training of its own."""
    usable: bool
    """Whether it selects clients, and is no oracle."""


def default_reference(candidates: Iterable[Candidate]) -> str:
    """Return the label of `md` if it is present, otherwise of the first usable scheme.

    >>> default_reference([Candidate("full", "full", True, True), Candidate("a", "md", True, True)])
    'a'
    """
    every = list(candidates)
    usable = [each for each in every if each.usable] or every
    plain = [each for each in usable if each.scheme == DEFAULT_REFERENCE and each.plain]
    return (plain or usable)[0].label


def check_reference(name: str, labels: Collection[str], oracles: Collection[str]) -> None:
    """Raise unless the reference is a scheme of the comparison and no oracle."""
    if name in oracles:
        usable = ", ".join(label for label in labels if label not in oracles)
        raise BadInput(
            f"The reference must be a scheme that a server can use. Got '{name}' instead, which "
            f"is an oracle. Take one of: {usable or 'none is left, so add a scheme'}."
        )
    if name not in labels:
        raise UnknownName("scheme of this comparison", name, labels)


def smallest_p(pairs: int) -> float:
    """Return the smallest p of the sign-flip test with this number of pairs.

    >>> [smallest_p(s) for s in (1, 5, 6)]
    [1.0, 0.0625, 0.03125]
    """
    return min(1.0, 2.0 / 2.0**pairs)


def seeds_needed(tests: int) -> int:
    """Return the fewest seeds with which p can reach `LEVEL` after Holm's correction.

    >>> [seeds_needed(tests) for tests in (1, 6, 7, 51)]
    [6, 8, 9, 11]
    """
    pairs = 1
    while tests * smallest_p(pairs) > LEVEL:
        pairs += 1
    return pairs


def default_seeds(schemes: int) -> int:
    """Return the default number of seeds for a comparison of this number of schemes.

    >>> [default_seeds(schemes) for schemes in (1, 7, 8, 52, 53)]
    [8, 8, 11, 11, 12]
    """
    if schemes <= FEW_SCHEMES:
        return SEEDS
    return max(SEEDS_OF_MANY, seeds_needed(schemes - 1))


@dataclass(frozen=True)
class Plan:
    """What a comparison is going to run; ``str(plan)`` is what a user reads before it starts."""

    schemes: int
    reference: str
    seeds: int
    partitions: int
    rounds: int
    missing: int
    """Runs that are not in the run folder yet."""
    seconds: float | None
    """Estimated wall-clock time, None if it was not measured."""

    @property
    def tests(self) -> int:
        """The number of schemes that are tested against the reference."""
        return self.schemes - 1

    @property
    def smallest_p(self) -> float:
        """The smallest p after Holm's correction."""
        return min(1.0, self.tests * smallest_p(self._units[0]))

    @property
    def _units(self) -> tuple[int, str]:
        """The units whose signs the test flips: divisions if there are several, else seeds."""
        return (self.partitions, "division") if self.partitions > 1 else (self.seeds, "seed")

    def __str__(self) -> str:
        return "\n".join(filter(None, (self._work(), self._decision())))

    def _work(self) -> str:
        runs = self.schemes * self.seeds * self.partitions
        parts = [_counted(self.schemes, "scheme"), _counted(self.seeds, "seed")]
        if self.partitions > 1:
            parts.append(_counted(self.partitions, "division"))
        there = f", {runs - self.missing} of them finished before" * (runs > self.missing)
        took = "" if self.seconds is None else f"; about {duration(max(1.0, self.seconds))}"
        rounds = _counted(self.rounds, "round")
        return f"{_counted(runs, 'run')} of {rounds} ({' x '.join(parts)}){there}{took}."

    def _decision(self) -> str:
        if not self.tests:
            return ""
        count, unit = self._units
        units, tests = _counted(count, unit), _counted(self.tests, "test")
        floor = f"{self.smallest_p:.2g} after Holm's correction for {tests}"
        if self.smallest_p <= LEVEL:
            said = f"{units} can decide at 5 % (the smallest p is {floor})"
        else:
            needed = seeds_needed(self.tests)
            said = f"{units} cannot decide at 5 % (the smallest p is {floor}); {needed} can"
        return f"Every scheme is tested against {self.reference}: {said}."


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {plural(count, thing)}"


# Many runs: schemes x partitions x seeds, paired, in parallel, in a folder to be resumed.

STATE = "state"
"""The setting that says of a run that was not simulated: finished, running or stopped."""
SHORTER = "shorter"
"""The setting that says how many runs of a folder are left out as they have fewer rounds."""
BY_CHANCE = "The best may be so by chance: fedcohort.report.summary has p values against {}."
Finished = Callable[[int, int, Trace], None]
"""Hears of every finished run: how many are done, of how many, and the run."""
Planned = Callable[[Plan], None]
"""Receives the plan of a comparison before the first run."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The runs of a comparison, in the order of the schemes, then of partitions and seeds."""

    traces: tuple[Trace, ...]
    settings: Mapping[str, Any]
    folder: Path | None = None
    interrupted: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return tuple(dict.fromkeys(trace.label for trace in self.traces))

    @property
    def partitions(self) -> tuple[int, ...]:
        """The divisions of the data that any run is on, in order."""
        return tuple(sorted({trace.partition for trace in self.traces}))

    @property
    def oracles(self) -> tuple[str, ...]:
        """The schemes that use information no server has, see `Scheme.oracle`."""
        return tuple(label for label in self.labels if _is_oracle(self.of(label)[0]))

    @property
    def reference(self) -> str:
        """The scheme that the others are tested against: as given, else `md`, else the first."""
        return self._named_reference(self.settings.get(REFERENCE)) or default_reference(
            Candidate(
                label,
                first.scheme,
                OWN not in first.settings,
                usable=label not in self.oracles and len(first.cohort_clients) > 0,
            )
            for label in self.labels
            for first in self.of(label)[:1]
        )

    def _named_reference(self, name: object) -> str | None:
        """The label of a reference, which may have the name of its folder in brackets behind it."""
        usable = [label for label in self.labels if label not in self.oracles]
        behind = [label for label in usable if label.startswith(f"{name} (")]
        return next((label for label in usable if label == name), next(iter(behind), None))

    def against(self, reference: str | None) -> Comparison:
        """The same runs with another reference; None leaves it as it is."""
        if reference is None:
            return self
        if self._named_reference(reference) is None:
            check_reference(reference, self.labels, self.oracles)
        return replace(self, settings={**self.settings, REFERENCE: reference})

    def of(self, label: str, partition: int | None = None) -> tuple[Trace, ...]:
        """The runs of one scheme, one per seed and partition, or on one partition only."""
        return tuple(
            trace
            for trace in self.traces
            if trace.label == label and partition in (None, trace.partition)
        )

    @property
    def missing(self) -> tuple[Unit, ...]:
        """The runs that are not there, of the schemes, partitions and seeds that are."""
        there = {Unit.of(trace) for trace in self.traces}
        blocks = sorted({(unit.partition, unit.seed) for unit in there})
        every = (Unit(*block, label) for block in blocks for label in self.labels)
        return tuple(unit for unit in every if unit not in there)

    def balanced(self) -> Comparison:
        """The runs with those partitions and seeds that every scheme has; itself if none are."""
        lacking = {(unit.partition, unit.seed) for unit in self.missing}
        kept = tuple(t for t in self.traces if (t.partition, t.seed) not in lacking)
        return replace(self, traces=kept) if lacking and kept else self

    def __repr__(self) -> str:
        seeds, folder = len({trace.seed for trace in self.traces}), ""
        if self.folder is not None:
            folder = f" in '{self.folder}'"
        missing = ", interrupted" if self.interrupted else ""
        schemes = ", ".join(self.labels) or "nothing"
        parts = f" on {len(self.partitions)} partitions" if len(self.partitions) > 1 else ""
        runs = f"{len(self.traces)} {html.plural(len(self.traces), 'run')}"
        done = f"{runs}, {seeds} {html.plural(seeds, 'seed')}{parts}{missing}{folder}"
        return f"<Comparison of {schemes}: {done}>"

    def _repr_html_(self) -> str:
        """What a notebook shows; gaps, costs and p values are in `fedcohort.report.summary`."""
        over = "seeds and partitions" if len(self.partitions) > 1 else "seeds"
        heads = ("Scheme", "Runs", "Rounds", f"Last evaluation, mean ± sd over {over}", "By round")
        best, common, rows = self._best(), self.balanced(), []
        for label in self.labels:
            traces = common.of(label)
            names = dict.fromkeys(trace.last()[0] for trace in traces)
            last = np.array([trace.last()[1] for trace in traces])
            rounds = min(trace.rounds for trace in traces)
            what = "accuracy" if "accuracy" in names else "train_loss"
            mean = sum(getattr(trace, what)[:rounds] for trace in traces) / len(traces)
            spread = f" ± {last.std(ddof=1):.2g}" if len(last) > 1 else ""
            mark = ", the best" if label == best else ""
            measured = f"{' / '.join(names)} {last.mean():.4g}{spread}{mark}"
            shown = html.curve(mean, f"{what.replace('_', ' ')} of {label} by round")
            name = f"{label} (oracle)" if label in self.oracles else label
            rows.append((name, len(traces), rounds, measured, shown))
        title = "Comparison, interrupted" if self.interrupted else "Comparison"
        note = BY_CHANCE.format(self.reference) if best else ""
        if len(common.traces) < len(self.traces):
            note += " Levels are of the seeds that all schemes have."
        return html.table(title, heads, rows, note, limit=50)

    def _best(self) -> str | None:
        """The scheme with the best last mean; None where they cannot be compared by it."""
        tasks = {str(trace.settings.get("task")) for trace in self.traces}
        names = {trace.last()[0] for trace in self.traces}
        common = self.balanced()
        usable = [label for label in self.labels if label not in self.oracles]
        if len(usable) < 2 or len(tasks) > 1 or len(names) > 1:
            return None
        sign = 1 if names == {"accuracy"} else -1
        means = {
            label: sign * float(np.mean([trace.last()[1] for trace in common.of(label)]))
            for label in usable
        }
        known = {label: mean for label, mean in means.items() if np.isfinite(mean)}
        return max(known, key=known.__getitem__) if known else None

    @classmethod
    def load(cls, folder: str | Path) -> Comparison:
        """Read a run folder: of a comparison, or of one run that was carried by Flower."""
        place = as_path(folder)
        if is_history(place):
            return _carried(place)
        if not (place / SETTINGS).is_file():
            inside = sorted(path.parent for path in place.glob(f"runs/**/{SETTINGS}"))
            of = f"; of the recipe in it, '{inside[0]}' is one" if inside else ""
            raise BadCheckpoint(f"'{place}' is not a run folder: it has no {SETTINGS}{of}.")
        settings = read_settings(place)
        order = {label: i for i, label in enumerate(settings["schemes"])}
        paths = sorted(place.glob("*.npz"))
        for path in paths:
            if path.is_symlink():
                raise BadCheckpoint(f"'{path}' is a link; a run folder holds its own files only.")
        traces = [_placed(_kept(path), settings) for path in paths]
        if not traces:
            raise BadCheckpoint(f"'{place}' holds no finished run; start the comparison again.")
        traces.sort(key=lambda t: (order.get(t.label, len(order)), t.partition, t.seed))
        longest = max(trace.rounds for trace in traces)
        whole = [trace for trace in traces if trace.rounds == longest]
        if len(whole) < len(traces):  # being extended
            settings[SHORTER] = len(traces) - len(whole)
        return cls(tuple(whole), settings, place)


def _kept(path: Path) -> Trace:
    """The run of a file in a run folder."""
    try:
        return Trace.load(path)
    except BadCheckpoint as error:
        remedy = "Delete that file and run `compare` again: only its run is repeated."
        raise BadCheckpoint(f"{error} {remedy}") from None


def _placed(trace: Trace, settings: Mapping[str, Any]) -> Trace:
    """A trace that says which division it is on; older versions did not write it with each."""
    if "partition" in trace.settings:
        return trace
    return replace(trace, settings={**trace.settings, "partition": base_of(settings)})


def _carried(place: Path) -> Comparison:
    """The run of a folder whose rounds were not simulated, as far as it is."""
    told, records = read(place)
    if not {"scheme", "seed", "importance"} <= told.keys():
        raise BadCheckpoint(f"'{place}' does not say which run it holds; was it just started?")
    if not records:
        raise BadInput(f"The run in '{place}' has not finished a round yet; come back later.")
    with whole(place):
        trace = Trace.from_records({"carrier": "Flower", **told}, records)
        trace.check()
    done, rounds = trace.rounds, int(told.get("rounds", 0))
    state = "finished" if done >= rounds else "running" if is_running(place) else "stopped"
    trace = replace(trace, settings={**trace.settings, STATE: state})
    built = ", ".join(f"{k}={v}" for k, v in trace.settings.get("parameters", {}).items())
    schemes = {trace.label: f"{trace.scheme}({built})"}
    settings = {"schemes": schemes, "seeds": [trace.seed], "rounds": max(done, rounds)}
    return Comparison((trace,), settings, place)


def _is_oracle(trace: Trace) -> bool:
    """Whether the scheme of a run is an oracle; older versions did not write it with each."""
    known = trace.scheme in SCHEMES
    return bool(trace.settings.get(ORACLE, known and SCHEMES.find(trace.scheme).oracle))


def _reference(named: Mapping[str, Arm | Centralised], given: str | None) -> str:
    """The reference of a comparison that has not run yet."""
    oracles = [label for label, arm in named.items() if isinstance(arm, Arm) and arm.oracle]
    if given is not None:
        check_reference(given, named, oracles)
        return given
    return default_reference(
        Candidate(
            label,
            arm.name,
            isinstance(arm, Arm) and not arm.options,
            usable=isinstance(arm, Arm) and label not in oracles,
        )
        for label, arm in named.items()
    )


@says_how(
    'compare(task, ["md:m=10", "uniform:m=10"], rounds=50)',
    simulate,
    sets=("scheme", "seed", "keep", "before"),
)
def compare(
    task: Given,
    schemes: Which | Sequence[Which] | Mapping[str, Which],
    *,
    rounds: int,
    seeds: int | Sequence[int] | None = None,
    partitions: int | Sequence[int] | None = None,
    reference: str | None = None,
    folder: str | Path | None = None,
    jobs: int = -1,
    ray: str | None = None,
    planned: Planned | None = None,
    finished: Finished | None = None,
    diverged: Lost | None = None,
    centralised: int | Centralised | Mapping[str, Centralised] | None = None,
    notes: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Comparison:
    """Run every scheme with every seed, on one division of the data or on several.

    Randomness is paired: with the same partition and seed all schemes start from the same model
    and a client sees the same mini-batches whoever chose it. Runs go seed by
    seed, all schemes on all partitions before the next, so that an interrupted comparison is a
    smaller one. Before the first run every scheme plays one short round, so that a setting that
    does not fit the federation shows at once.

    Local training is that of ``LocalWork()`` unless ``work`` is given. `fedcohort compare` of the
    command line trains otherwise by default: ``LocalWork(steps=20, batch=10, lr=0.1)``.

    Parameters
    ----------
    task
        A task as for `simulate`; a `Problem`, whose data are read once; or tasks of your own,
        one for every division: a list, or a mapping from numbers.
    rounds
        As for `simulate`; ``options`` are passed on to it.
    schemes
        Names or schemes, or a mapping from label to either. A local algorithm, an optimiser or
        an aggregator of its own is joined by a plus: ``"md+scaffold"``,
        ``"uniform+adam:eta_g=0.01"``, or `Arm`; so are settings of local work:
        ``"md+work:lr=0.5"``.
    seeds
        How many (0, 1, ...), or which. By default 8, or 11 for more than seven schemes: the
        exact test can decide with these at 5 %, see ``reference``.
    partitions
        Of a `Problem`: how many divisions, from its ``partition_seed`` on, or the seeds they
        are drawn from; every scheme runs with every seed on each. One by default.
    reference
        The label of the scheme that reports test all others against; never an oracle. By
        default ``md`` if it is present, otherwise the first.
    folder
        Where each finished run is kept. Runs already there are not repeated, so an
        interrupted comparison goes on where it stopped; with more rounds they are extended,
        bit for bit as if they had been so long from the start.
    jobs
        Processes; -1 for all cores. Each uses one BLAS thread.
    ray
        The address of a Ray cluster whose nodes compute the runs, ``jobs`` at a time: ``auto``,
        ``host:port``, or ``local`` for one that is started here. Results are the same.
    planned
        Called once before the first run with a `Plan`: how many runs, what the seeds can decide,
        and how long it takes. The time is measured in two rounds of every scheme, if a scheme
        has at least 20 to go.
    finished
        Called after every run.
    diverged
        Called with every run that left the finite numbers, as ``(partition, seed, label)``, and
        with the error; the others go on. Without it such a run ends the comparison.
    centralised
        Train on all data in one place as well, on so many samples a round: an upper line. A
        `Centralised` has a step size of its own; several go by label.
    notes
        An existing folder in which every running run notes how far it is, for a live view
        (`fedcohort.report.watch`). In a notebook bars show it, unless ``notes`` or ``finished``
        is given.
    settings
        Anything to keep with the comparison (data, partition, command).
    """
    check_work(options.get("work"), "compare")
    check_rounds("rounds", rounds)
    if not is_whole(jobs) or jobs == 0 or jobs > JOBS_LIMIT:
        must = f"a number of processes, {JOBS_LIMIT} at most, or -1 for all cores"
        raise BadParameter("jobs", "compare", must, jobs)
    executor: Executor = Processes(jobs) if ray is None else RayCluster(ray, jobs)
    options = built_options(options)
    named: dict[str, Arm | Centralised] = {**labelled(schemes)}
    if centralised is not None:
        named |= upper_lines(centralised)
    against = _reference(named, reference)
    chosen = _seeds(default_seeds(len(named)) if seeds is None else seeds)
    over = divisions(task, partitions)
    _check_evaluation(over.first, options)
    facts = {
        **over.settings,
        **(settings or {}),
        "schemes": {label: str(arm) for label, arm in named.items()},
        CODE: {label: arm.code for label, arm in named.items() if arm.code},
        "seeds": chosen,
        PARTITIONS: over.numbers,
        "rounds": rounds,
        "task": over.first.name,
        "options": {name: _word(value) for name, value in sorted(options.items())},
        **({} if reference is None else {REFERENCE: reference}),
    }
    for sentence in unequal_arms(over.first, named, options):
        warnings.warn(sentence, UnequalWork, stacklevel=3)
    units = [  # seed by seed: what is there when it is interrupted is a comparison already
        Unit(number, seed, label) for seed in chosen for number in over.numbers for label in named
    ]
    pool = Pool(over, named, executor, options, diverged)
    place = None if folder is None else as_path(folder)
    found: dict[Unit, Trace] = {}
    if place is not None:
        from fedcohort import __version__  # which imports this module

        facts |= {**noted(over.fingerprints(), over.base), "version": __version__}
        agreed(place, facts)  # another comparison is refused before anything is computed
        paths = {unit: pool.file(place, unit) for unit in units}
        found = {unit: _kept(path) for unit, path in paths.items() if path.is_file()}
    there = {unit: trace for unit, trace in found.items() if trace.rounds >= rounds}
    done = {unit: _placed(trace, facts) for unit, trace in there.items()}  # others go on
    missing = [unit for unit in units if unit not in done]
    interrupted = False
    try:
        with contextlib.ExitStack() as opened:
            if missing and notes is None and finished is None and in_notebook():
                view = Watch(list(named), len(chosen), rounds, partitions=len(over.numbers))
                notes, finished = opened.enter_context(view).notes, view.finished
                planned = planned or view.planned
            watched = None if notes is None else Path(notes)
            for unit, trace in found.items():
                pool.found(unit, trace, rounds, watched)
            if missing:
                opened.enter_context(executor)
            pool.rehearse(missing)
            if planned is not None:
                sizes = len(named), against, len(chosen), len(over.numbers), rounds, len(missing)
                planned(Plan(*sizes, pool.estimate(missing, rounds)))
            with contextlib.nullcontext() if place is None else claimed(place, facts):
                for trace in pool.run(missing, rounds, place, watched):
                    done[Unit.of(trace)] = trace
                    if finished is not None:
                        finished(len(done), len(units), trace)
    except KeyboardInterrupt:
        interrupted = True
    ordered = (Unit(at, seed, label) for label, at, seed in product(named, over.numbers, chosen))
    ran = [unit for unit in ordered if unit in done]
    shorter = sum(unit not in done for unit in found)
    if interrupted and shorter:  # while they were being extended
        facts[SHORTER] = shorter
    return Comparison(tuple(done[unit] for unit in ran), facts, place, interrupted)


def unequal_arms(
    task: Task, arms: Mapping[str, Arm | Centralised], options: Mapping[str, Any]
) -> list[str]:
    """Return the warnings about arms whose clients make unequal numbers of local steps.

    Arms with the same warning share it. Their labels stand before it, unless all arms share it.
    """
    found: dict[str, list[str]] = {}
    for label, arm in arms.items():
        if isinstance(arm, Arm):
            how = algorithm(options.get("algorithm") if arm.algorithm is None else arm.algorithm)
            work = options.get("work") or LocalWork()
            work = arm.work.over(work) if isinstance(arm.work, OwnWork) else work
            sentence = unequal_work(how, work, task.sizes, task.importance, task.ids)
            found.setdefault(sentence, []).append(label)
    if len(found) == 1:
        return [sentence for sentence in found if sentence]
    return [f"{brief(', '.join(found[sentence]))}: {sentence}" for sentence in found if sentence]


def _check_evaluation(task: Task, options: Mapping[str, Any]) -> None:
    """Refuse at once what a run would refuse in its worker, where a folder is already made."""
    for name in ("evaluate_every", "evaluate_on", "defer"):
        if options.get(name) is not None:
            check_rounds(name, options[name])
    checked_measures(task, options.get("measures"))


def built_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of the server that were given by name, built: one folder, whichever way it is said."""
    build: dict[str, Callable[[Any], Any]] = {
        "optimiser": optimiser,
        "aggregator": aggregator,
        "availability": availability,
        "algorithm": algorithm,
        "devices": devices,
        "stragglers": straggler_rule,
    }
    timed = ("devices", "stragglers")  # which None leaves as they were before there was time
    named = {key: given for key, given in options.items() if not (key in timed and given is None)}
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


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if is_whole(seeds):
        if not 1 <= seeds <= SEEDS_LIMIT:  # type: ignore[operator]
            raise BadParameter("seeds", "compare", f"from 1 to {SEEDS_LIMIT} seeds", seeds)
        return list(range(seeds))  # type: ignore[arg-type]
    listed = [checked_seed(seed, "compare") for seed in seeds]  # type: ignore[union-attr]
    if not listed or len(set(listed)) < len(listed):
        raise BadParameter("seeds", "compare", "distinct seeds", seeds)
    return listed
