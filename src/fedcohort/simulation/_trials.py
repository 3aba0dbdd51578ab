"""The grid of a search, and its trials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from fedcohort._internal.errors import BadInput, BadParameter, Diverged, UnknownName, shown
from fedcohort._internal.files import FOR_ALL_TO_READ, replacing
from fedcohort._internal.parameters import constraints, is_real, is_whole
from fedcohort._internal.parameters import value as plain_value
from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats
from fedcohort.maths._draws import permutation
from fedcohort.simulation._arms import KINDS, SETTINGS, Arm, OwnWork
from fedcohort.simulation._centralized import Centralised
from fedcohort.simulation._comparison import Comparison

# The settings to try: which of them an arm has, and the arms that they make of it.

Grid: TypeAlias = Mapping[str, Sequence[Any]]
"""Values by setting: ``{"lr": [0.01, 0.1], "pow-d.d": [10, 20]}``."""
WORK, SCHEME = OwnWork.name, "scheme"
LARGEST = 10_000
"""Configurations of one scheme: more are a slip."""


@dataclass(frozen=True)
class Axis:
    """A setting of one arm, and the values of it to try."""

    kind: str  # scheme, algorithm, optimiser, aggregator or work
    setting: str
    values: tuple[Any, ...]


Tried: TypeAlias = Arm | Centralised
Configuration: TypeAlias = tuple[tuple[Axis, Any], ...]
"""A value for every axis."""


def axes_of(
    arms: Mapping[str, Tried], grid: Grid, common: Mapping[str, Any]
) -> dict[str, list[Axis]]:
    """The settings of a grid that each arm has, by label.

    A name stands for the setting of whatever part has it: local work, the scheme, or what is
    the arm's own or in ``common`` of the rest (``optimiser``, ...). ``owner.setting`` says whose:
    the owner is a kind (``work``, ``optimiser``), the name of a part (``adam``), or the label of
    an arm, whose values then replace those for all.
    """
    if not grid:
        raise BadInput("A grid needs at least one setting, as in {'lr': [0.01, 0.1]}; got none.")
    out: dict[str, list[Axis]] = {label: [] for label in arms}
    used: set[str] = set()
    for label, arm in arms.items():
        parts = _parts(arm, common)
        found: dict[tuple[str, str], tuple[bool, Axis]] = {}
        for name, values in grid.items():
            place = _place(name, label, parts)
            if place is None:
                continue
            used.add(name)
            own = name.rpartition(".")[0] == label
            axis = Axis(*place, _values(name, values, parts[place[0]], place[1]))
            if place in found and found[place][0] == own:
                raise BadInput(f"The grid gives the setting '{place[1]}' of {label} twice.")
            if place not in found or own:
                found[place] = own, axis
        out[label] = [axis for _, axis in found.values()]
    for name in grid.keys() - used:
        have = {s for arm in arms.values() for p in _parts(arm, common).values() for s in _names(p)}
        raise UnknownName("setting of these schemes", name, have)
    return out


def _parts(arm: Tried, common: Mapping[str, Any]) -> dict[str, Any]:
    """What has settings, by kind; of local work just the word."""
    if isinstance(arm, Centralised):
        return {WORK: WORK}
    parts = {SCHEME: arm.scheme, WORK: WORK}
    for kind, known in KINDS.items():
        parts[kind] = arm.options.get(kind) or known.build(common.get(kind))
    return parts


def _names(part: Any) -> Sequence[str]:
    return SETTINGS if part == WORK else tuple(part.parameters)


def _place(name: str, label: str, parts: Mapping[str, Any]) -> tuple[str, str] | None:
    """The kind of part and its setting that a name in a grid means for an arm, if any."""
    owner, _, setting = name.rpartition(".")
    have = [kind for kind, part in parts.items() if setting in _names(part)]
    if owner and owner != label:
        named = [kind for kind in have if owner in {kind, getattr(parts[kind], "name", kind)}]
        have = named
    if len(have) > 1:
        ways = " or ".join(f"'{kind}.{setting}'" for kind in have)
        raise BadInput(f"'{name}' of {label} could be of several parts; write {ways}.")
    return (have[0], setting) if have else None


def _values(name: str, given: Any, part: Any, setting: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not hasattr(given, "__len__") or not len(given):
        raise BadInput(f"The grid must have a list of values for '{name}'; got {shown(given)}.")
    values = tuple(_read(each, part, setting) for each in given)
    if len({repr(each) for each in values}) < len(values):
        raise BadInput(f"The grid must have distinct values for '{name}'; got {shown(given)}.")
    return values


def _read(given: Any, part: Any, setting: str) -> Any:
    """A value; of a text, what the part's declared range reads in it."""
    given = given.item() if isinstance(given, np.generic) else given
    if not isinstance(given, str):
        return given
    declared = None if part == WORK else constraints(type(part)).get(setting)
    if declared is None:
        return plain_value(given)
    try:
        return declared.parse(given)
    except ValueError:
        raise BadParameter(setting, part.name, str(declared), given) from None


def configurations(axes: Sequence[Axis], label: str) -> list[Configuration]:
    """Every choice of a value for every axis; one, that changes nothing, without any."""
    count = int(np.prod([len(axis.values) for axis in axes], dtype=object)) if axes else 1
    if count > LARGEST:
        raise BadInput(
            f"The grid of {label} has {count} configurations, and {LARGEST} are allowed; give "
            "fewer values."
        )
    return [tuple(zip(axes, chosen, strict=True)) for chosen in product(*(a.values for a in axes))]


def smallest_choice(sizes: Iterable[int]) -> int:
    """The fewest configurations among schemes that have several; 1 where none has.

    A scheme that has none of the settings has nothing to choose, and must not keep the others
    from choosing.

    >>> smallest_choice([6, 3, 1])
    3
    """
    return min((size for size in sizes if size > 1), default=1)


def some_of(tried: list[Configuration], count: int, seed: int) -> list[Configuration]:
    """So many configurations, such that every value of every setting comes up about as often.

    One after another is drawn among those whose values have come up least; in the old order.
    """
    if count >= len(tried):
        return tried
    left = [tried[i] for i in permutation(stream(seed, "configurations"), len(tried)).tolist()]
    often: dict[tuple[Axis, str], int] = {}
    taken: list[Configuration] = []
    while len(taken) < count:
        seen = [sum(often.get((axis, repr(v)), 0) for axis, v in each) for each in left]
        taken.append(left.pop(int(np.argmin(seen))))
        for axis, value in taken[-1]:
            often[axis, repr(value)] = often.get((axis, repr(value)), 0) + 1
    return [each for each in tried if any(each is one for one in taken)]


A = TypeVar("A", bound=Tried)


def configured(arm: A, configuration: Configuration, common: Mapping[str, Any]) -> A:
    """The arm with these settings; one that is out of range is refused by its part."""
    parts, changes = _parts(arm, common), dict[str, dict[str, Any]]()
    for axis, value in configuration:
        changes.setdefault(axis.kind, {})[axis.setting] = value
    new: dict[str, Any] = {}
    for kind, settings in changes.items():
        if kind == WORK:
            own = arm.work.parameters if isinstance(arm.work, OwnWork) else {}
            new[kind] = {**own, **settings}
        else:
            new[kind] = replace(parts[kind], **settings)
    return replace(arm, **new)


def named(configuration: Configuration) -> dict[str, Any]:
    """The values by the names of the settings, with their kind where two are called the same."""
    settings = [axis.setting for axis, _ in configuration]
    return {
        s if settings.count(s) == 1 else f"{axis.kind}.{s}": value
        for s, (axis, value) in zip(settings, configuration, strict=True)
    }


def at_edge(
    arm: Tried, configuration: Configuration, common: Mapping[str, Any]
) -> Iterator[tuple[str, Any, str]]:
    """Settings with the least or largest value of their grid, where another could be taken."""
    for name, (axis, value) in zip(named(configuration), configuration, strict=True):
        if len(axis.values) < 2 or not all(map(is_real, axis.values)):
            continue
        for extreme, word, sign in ((min, "smallest", -1), (max, "largest", 1)):
            if value == extreme(axis.values) and _takes(arm, axis, _next(value, sign), common):
                yield name, value, word


def _next(value: Any, sign: int) -> Any:
    return value + sign if is_whole(value) else value + sign * 1e-6 * (abs(value) or 1.0)


def _takes(arm: Tried, axis: Axis, value: Any, common: Mapping[str, Any]) -> bool:
    try:
        configured(arm, ((axis, value),), common)
    except (BadParameter, BadInput):
        return False
    return True


# What a search for settings found: trials, the best of each scheme, and how sure that is.

BY = {
    "accuracy": "validation accuracy, mean of the last {last} evaluations",
    "area": "validation accuracy, mean of all evaluations (the area under the curve)",
    "loss": "validation loss, mean of the last {last} evaluations",
}
"""What a run can be scored by; of a loss, less is better."""
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Trial:
    """One configuration of a scheme, and how its runs did on validation data."""

    label: str
    """Of the scheme."""
    configuration: Configuration
    arm: Tried
    scores: Floats  # (R,) one per partition and seed, the larger the better; nan where it diverged
    blocks: tuple[int, ...]  # (R,) on which partition

    @property
    def settings(self) -> dict[str, Any]:
        """The values that were tried, by name."""
        return named(self.configuration)

    @property
    def diverged(self) -> int:
        """How many of its runs left the finite numbers."""
        return int(np.isnan(self.scores).sum())

    @property
    def mean(self) -> float:
        """Over its runs; nan if one diverged."""
        return float(self.scores.mean())

    @property
    def spread(self) -> float:
        """The standard deviation over its runs; nan of one."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else np.nan

    def ahead_of(self, other: Trial) -> tuple[float, float]:
        """By how much it is better, run by run, and the half-width of a 95 % interval (t).

        Runs on one partition are one observation where there are several partitions. The
        half-width is nan where there is one, and where a run diverged.
        """
        gaps = self.scores - other.scores
        if len(set(self.blocks)) > 1:
            of = np.array(self.blocks)
            gaps = np.array([gaps[of == block].mean() for block in dict.fromkeys(self.blocks)])
        if len(gaps) < 2 or np.isnan(gaps).any():
            return float(gaps.mean()), np.nan
        error = gaps.std(ddof=1) / np.sqrt(len(gaps))
        from scipy import stats  # which takes its time: a listing needs no interval

        return float(gaps.mean()), float(stats.t.ppf((1 + LEVEL) / 2, len(gaps) - 1) * error)


@dataclass(frozen=True, eq=False)
class Tuning:
    """What `tune` found: every configuration that was tried, and the best of each scheme."""

    trials: tuple[Trial, ...]
    grids: Mapping[str, int]
    """How many configurations the grid of each scheme has."""
    by: str
    last: int
    rounds: int
    validation: float
    common: Mapping[str, Any]
    comparison: Comparison

    @property
    def measure(self) -> str:
        """What was compared, in words."""
        return BY[self.by].format(last=self.last)

    @property
    def labels(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return tuple(self.grids)

    def of(self, label: str) -> list[Trial]:
        """The configurations of a scheme, the best first; those that diverged last."""
        own = [trial for trial in self.trials if trial.label == label]
        return sorted(own, key=lambda trial: -np.nan_to_num(trial.mean, nan=-np.inf))

    @cached_property
    def best(self) -> dict[str, Trial]:
        """The best configuration of each scheme."""
        found = {label: self.of(label)[0] for label in self.labels}
        for label, trial in found.items():
            if trial.diverged:
                raise Diverged(
                    f"Every configuration of {label} diverged in at least one run: lower the step "
                    "sizes of the grid."
                )
        return found

    @property
    def chosen(self) -> dict[str, Arm]:
        """The arms to compare on the test set, by the labels of the schemes."""
        best = {label: trial.arm for label, trial in self.best.items()}
        return {label: arm for label, arm in best.items() if isinstance(arm, Arm)}

    @property
    def centralised(self) -> Centralised | None:
        """Centralised training as it is best, if that was tuned, too."""
        best = [trial.arm for trial in self.best.values()]
        return next((arm for arm in best if isinstance(arm, Centralised)), None)

    def level(self, trial: Trial) -> float:
        """The mean score as it was measured: a loss is not turned round."""
        return -trial.mean if self.by == "loss" else trial.mean

    def as_good(self, label: str) -> list[Trial]:
        """Other configurations that are not told from the best of a scheme, the next best first."""
        best = self.best[label]
        return [trial for trial in self.of(label)[1:] if not told_apart(best, trial)]

    def rows(self) -> list[dict[str, Any]]:
        """One per configuration: settings, score, spread, and how far behind the best."""
        rows = []
        for label in self.labels:
            best = self.best[label]
            for trial in self.of(label):
                behind, half = best.ahead_of(trial)
                rows.append(
                    {
                        "scheme": label,
                        **trial.settings,
                        "score": self.level(trial),
                        "sd": trial.spread,
                        "runs": len(trial.scores),
                        "diverged": trial.diverged,
                        "behind": behind,
                        "behind_half_width": half,
                        "told_apart": trial is not best and told_apart(best, trial),
                        "chosen": trial is best,
                        "arm": _word(trial.arm),
                    }
                )
        return rows

    @property
    def settings(self) -> list[str]:
        """What was tried, of any scheme."""
        return list(dict.fromkeys(name for trial in self.trials for name in trial.settings))

    def table(self) -> pd.DataFrame:
        """The rows, with an empty cell for a setting that a scheme does not have."""
        rows = self.rows()
        known = [key for key in rows[0] if key not in self.trials[0].settings]
        columns = [known[0], *self.settings, *known[1:]]
        frame = pd.DataFrame(rows, columns=columns, dtype=object)
        return frame.astype(dict.fromkeys(("score", "sd", "behind", "behind_half_width"), float))

    def notes(self) -> list[str]:
        """What to know before the choice is used: budgets, edges of the grid, doubtful leads."""
        return [*self._budget(), *self._edges(), *self._doubts()]

    def _budget(self) -> Iterator[str]:
        tried = {label: len(self.of(label)) for label in self.labels}
        runs = len(self.trials[0].scores)
        each = f"configurations x {runs} runs x {self.rounds} rounds"
        several = {label: count for label, count in tried.items() if self.grids[label] > 1}
        fixed = [label for label in self.labels if label not in several]
        if len(set(tried.values())) == 1:
            yield f"The same budget for every scheme: {tried[self.labels[0]]} {each}."
        elif len(set(several.values())) == 1:
            yield (
                f"The same budget for every scheme with a choice: {min(several.values())} {each}; "
                f"the grid leaves none to {', '.join(fixed)}."
            )
        else:
            listed = ", ".join(f"{label} {count}" for label, count in tried.items())
            least = min(several, key=lambda label: several[label])
            yield (
                f"Not the same budget for every scheme, as some have fewer of the settings: "
                f"{listed} {each}. A budget of {several[least]} makes it the same; a grid of "
                f"its own ('{least}.lr') gives a scheme more."
            )
        for label, size in self.grids.items():
            if size > tried[label]:
                yield (
                    f"{label}: {tried[label]} of the {size} configurations of its grid, drawn; a "
                    "budget of 'whole' tries all."
                )

    def _edges(self) -> Iterator[str]:
        for label, trial in self.best.items():
            for name, value, word in at_edge(trial.arm, trial.configuration, self.common):
                yield (
                    f"{label}: {name}={value} is the {word} value of the grid; a better one may "
                    "lie beyond."
                )

    def _doubts(self) -> Iterator[str]:
        for label, trial in self.best.items():
            others, good = self.of(label)[1:], self.as_good(label)
            if not others:
                yield f"{label}: one configuration, so nothing was chosen."
            elif not good:
                gap, half = trial.ahead_of(others[0])
                lead = "the others diverged" if np.isnan(gap) else f"by {gap:.4f} ± {half:.4f}"
                yield f"{label}: the best is told from the next ({lead})."
            else:
                gap, half = trial.ahead_of(good[0])
                width = "" if np.isnan(half) else f" ± {half:.4f}"
                why = "one run each has no spread" if np.isnan(half) else "95 %, paired"
                yield (
                    f"{label}: the best is not told from {len(good)} other{'s' * (len(good) > 1)}; "
                    f"it leads the next by {gap:.4f}{width} ({why})."
                )

    def as_dict(self) -> dict[str, Any]:
        """In plain values, for JSON; what is not known is left out."""
        return {
            "measure": self.measure,
            "validation": self.validation,
            "rounds": self.rounds,
            "chosen": {label: _word(trial.arm) for label, trial in self.best.items()},
            "notes": self.notes(),
            "trials": [{k: v for k, v in row.items() if v == v} for row in self.rows()],
        }

    def write(self, folder: Path) -> list[Path]:
        """``tuning.json`` and ``tuning.csv``."""
        texts = {
            "tuning.json": json.dumps(self.as_dict(), indent=2),
            "tuning.csv": self.table().to_csv(index=False, lineterminator="\n"),
        }
        for name, text in texts.items():
            with replacing(folder / name, FOR_ALL_TO_READ) as file:
                file.write(text.encode())
        return [folder / name for name in texts]

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(self.table().drop(columns="arm").to_html(index=False))


def _word(arm: Tried) -> str:
    return arm.word if isinstance(arm, Arm) else str(arm)


def told_apart(best: Trial, other: Trial) -> bool:
    """Whether a lead is more than the spread over runs; what diverged is always told apart."""
    if other.diverged:
        return True
    gap, half = best.ahead_of(other)
    return bool(gap > half)
