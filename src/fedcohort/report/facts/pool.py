"""Folders of one experiment on other divisions or with other seeds, put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.report.facts.conditions import COPIES, conditions_of, is_carried, of_one_problem
from fedcohort.simulation._comparison import SHORTER
from fedcohort.simulation._storage import CODE, CROSSING, PARTITIONS, REFERENCE
from fedcohort.simulation._workers import Unit

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

LISTED = 3
"""Names in a sentence; of more the rest is counted."""


@dataclass(frozen=True, eq=False)
class Folders:
    """A comparison, and the names of the folders that it was read from."""

    names: tuple[str, ...]
    comparison: Comparison

    @property
    def name(self) -> str:
        """All of them, as one name; of many, the first and how many more."""
        if len(self.names) > LISTED:
            return f"{self.names[0]} and {len(self.names) - 1} others"
        return listed(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return self.comparison.labels

    def only(self, labels: Iterable[str]) -> Folders:
        """Some of the schemes."""
        kept = {label: label for label in labels}
        return replace(self, comparison=relabelled(self.comparison, kept))


def listed(words: Sequence[str]) -> str:
    """Words in a row.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def relabelled(comparison: Comparison, names: Mapping[str, str]) -> Comparison:
    """The runs of the schemes that have a new name, under it."""
    traces = tuple(
        replace(trace, settings={**trace.settings, "label": names[trace.label]})
        for trace in comparison.traces
        if trace.label in names
    )
    told = comparison.settings.get("schemes", {})
    schemes = {new: str(told.get(old, "")) for old, new in names.items()}
    return replace(comparison, traces=traces, settings={**comparison.settings, "schemes": schemes})


def together(folders: Iterable[Folders]) -> list[Folders]:
    """Those that differ in the division or in seeds alone, as one; a run that is twice counts once.

    Runs on Flower are put together by seed, simulated ones by division and seed.
    """
    out: list[Folders] = []
    for new in folders:
        for i, old in enumerate(out):
            if _another_seed(old.comparison, new.comparison) or _one_experiment(old, new):
                pooled = _pooled(old.comparison, new.comparison)
                out[i] = Folders((*old.names, *new.names), pooled)
                break
        else:
            out.append(new)
    return out


def without_copies(folders: Iterable[Folders]) -> list[Folders]:
    """The same without schemes all of whose runs are in an earlier one, under equal conditions."""
    out: list[Folders] = []
    for new in folders:
        left = new
        for i, old in enumerate(out):
            copied = _copied(old.comparison, left.comparison)
            if copied:
                count = sum(len(left.comparison.of(label)) for label in copied)
                told = {**old.comparison.settings, **counts([old.comparison], copies=count)}
                out[i] = replace(old, comparison=replace(old.comparison, settings=told))
                left = left.only(label for label in left.labels if label not in copied)
            if not left.comparison.traces:
                break
        else:
            out.append(left)
    return out


def counts(comparisons: Iterable[Comparison], copies: int = 0) -> dict[str, int]:
    """Runs that are left out, by why, as settings of what several comparisons make."""
    told = [each.settings for each in comparisons]
    shorter = sum(each.get(SHORTER, 0) for each in told)
    copies += sum(each.get(COPIES, 0) for each in told)
    return {key: count for key, count in ((SHORTER, shorter), (COPIES, copies)) if count}


def obstacles(folders: Sequence[Folders]) -> list[str]:
    """Why those that differ in the division alone are not one comparison."""
    pairs = combinations(folders, 2)
    found = [_obstacle(*pair) for pair in pairs if of_one_problem(*(x.comparison for x in pair))]
    return list(dict.fromkeys(filter(None, found)))


def _another_seed(old: Comparison, new: Comparison) -> bool:
    """Whether they are runs on Flower that differ in their seed alone."""
    if not (is_carried(old) and is_carried(new)) or old.labels != new.labels:
        return False
    first, second = old.traces[0].settings, new.traces[0].settings
    same = all(first.get(key) == second.get(key) for key in ("scheme", "parameters"))
    known = {trace.seed for trace in old.traces}
    return same and new.traces[0].seed not in known and conditions_of(old) == conditions_of(new)


def _one_experiment(old: Folders, new: Folders) -> bool:
    return of_one_problem(old.comparison, new.comparison) and not _obstacle(old, new)


def _obstacle(one: Folders, other: Folders) -> str:
    """What but the division and the seeds differs in comparisons of one problem, if anything."""
    first, second = one.comparison, other.comparison
    lacking = (
        (one.name, [label for label in second.labels if label not in first.labels]),
        (other.name, [label for label in first.labels if label not in second.labels]),
    )
    told = "; ".join(f"{name} has no {_some(labels)}" for name, labels in lacking if labels)
    if told:
        return f"the schemes on each division ({told})"
    for label in first.labels:
        (was, code), (now, edited) = _built(first, label), _built(second, label)
        if was != now:
            return f"the settings of {label} ({was} in {one.name}, {now} in {other.name})"
        if code != edited:
            return f"the code of {label}"
    for trace, again in _in_both(first, second):
        if not _same_run(trace, again):
            which = f"{trace.label} with seed {trace.seed} on division {trace.partition}"
            return f"what came of the same run ({which})"
    return ""


def _some(labels: Sequence[str]) -> str:
    return ", ".join(labels[:LISTED]) + ", ..." * (len(labels) > LISTED)


def _built(comparison: Comparison, label: str) -> tuple[object, object]:
    """A scheme with its settings, and a digest of its code where that is not ours."""
    told = comparison.settings
    return told.get("schemes", {}).get(label), told.get(CODE, {}).get(label)


def _copied(old: Comparison, new: Comparison) -> list[str]:
    """The schemes of the second comparison that the first has with all their runs."""
    if is_carried(old) or is_carried(new) or conditions_of(old) != conditions_of(new):
        return []
    same = {Unit.of(trace) for trace, again in _in_both(old, new) if _same_run(trace, again)}
    return [
        label
        for label in new.labels
        if _built(old, label) == _built(new, label)
        and all(Unit.of(trace) in same for trace in new.of(label))
    ]


def _in_both(one: Comparison, other: Comparison) -> list[tuple[Trace, Trace]]:
    """Runs of the same scheme on the same division with the same seed."""
    there = {Unit.of(trace): trace for trace in other.traces}
    return [(t, there[Unit.of(t)]) for t in one.traces if Unit.of(t) in there]


def _same_run(one: Trace, other: Trace) -> bool:
    """Whether two runs came to the same, by the same cohorts."""
    names = ("sizes", "importance", "cohort_clients", "cohort_weights", "train_loss", "model")
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def _pooled(old: Comparison, new: Comparison) -> Comparison:
    """The runs of both; what one folder was told of a target does not hold for the other."""
    runs = {Unit.of(trace): trace for trace in (*new.traces, *old.traces)}
    order = {label: i for i, label in enumerate(old.labels)}
    traces = sorted(runs.values(), key=lambda t: (order[t.label], t.partition, t.seed))
    told: dict[str, Any] = {"seeds": sorted({trace.seed for trace in traces})}
    if not is_carried(old):
        told[PARTITIONS] = sorted({trace.partition for trace in traces})
    told |= counts((old, new), copies=len(old.traces) + len(new.traces) - len(traces))
    commands = [each.settings.get("command") for each in (old, new)]
    if all(commands):
        told["command"] = "\n".join(map(str, commands))
    settings = {**old.settings, **told}
    for key in ("target", CROSSING, REFERENCE):
        if old.settings.get(key) != new.settings.get(key):
            settings.pop(key, None)
    broken = old.interrupted or new.interrupted
    return replace(old, traces=tuple(traces), settings=settings, interrupted=broken)
