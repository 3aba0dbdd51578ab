"""Several run folders as one comparison; what is not comparable stays apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedcohort._internal.errors import BadInput
from fedcohort.report.facts.conditions import PARTITION_SEED, comparable, differences
from fedcohort.report.facts.pool import (
    Folders,
    counts,
    obstacles,
    relabelled,
    together,
    without_copies,
)
from fedcohort.simulation._storage import REFERENCE
from fedcohort.simulation._workers import Unit

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

APART = "ranked apart"
"""The setting of a combined comparison that holds the settings of every problem by name."""
ACROSS = "in all folders"
"""The setting that holds which labels are of schemes that all have, by the name of the scheme."""
DIFFER = "runs differ in"
RUNS = "run by run"
ALL_PAIRS = "all pairs"
"""The setting by which a report corrects p values for all pairs of schemes."""
ASKED = (REFERENCE, ALL_PAIRS)
"""Settings of a whole report that hold for each of its problems."""


def combined(comparisons: Sequence[Comparison]) -> Comparison:
    """All runs of several comparisons; a scheme that comes twice is named with its folder.

    Runs of another problem, another number of rounds or other options cannot be paired by
    seed, and their levels mean something else: `parts` gives them back as comparisons of their
    own, and nothing is ranked or tested across. Folders that differ in the division of the data
    or in seeds alone become one comparison; where not all have the same schemes, `across` has
    those that all have.
    """
    if not comparisons:
        raise BadInput("A report needs at least one run folder; got none.")
    _refuse_the_same_twice(comparisons)
    named = [Folders((n,), c) for n, c in zip(_names(comparisons), comparisons, strict=True)]
    folders = without_copies(together(named))
    if len(folders) == 1:
        return folders[0].comparison
    names, conditions = [each.name for each in folders], comparable([x.comparison for x in folders])
    differ = _reasons(folders, conditions)
    often = Counter(label for each in folders for label in each.labels)
    renamed = []
    for each in folders:
        labels = {x: f"{x} ({each.name})" if differ or often[x] > 1 else x for x in each.labels}
        renamed.append(relabelled(each.comparison, labels))
    whole = _joined(names, renamed)
    if not differ:
        return whole
    apart: dict[str, Mapping[str, Any]] = {}
    for first in conditions:
        alike = [i for i, other in enumerate(conditions) if other == first]
        name = " and ".join(names[i] for i in alike)
        apart[name] = _joined([names[i] for i in alike], [renamed[i] for i in alike]).settings
    told = {DIFFER: differ, APART: apart, **_had_by_all(folders)}
    return replace(whole, settings={**whole.settings, **told})


def _reasons(folders: Sequence[Folders], conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words, why not all are ranked together; nothing where they are.

    Another division alone is none: what keeps folders on several from being one comparison is.
    """
    differ = differences(conditions)
    told = [key for key in differ if key != PARTITION_SEED]
    if len(told) < len(differ):
        told += obstacles(folders)
    return [key.replace("_", " ") for key in told or differ]


def _had_by_all(folders: Sequence[Folders]) -> dict[str, Any]:
    """The setting that says which schemes are in all, if these could be one comparison."""
    first, *others = (each.labels for each in folders)
    common = [label for label in first if all(label in labels for labels in others)]
    if len(common) < 2 or len(together(each.only(common) for each in folders)) > 1:
        return {}
    return {ACROSS: {f"{label} ({each.name})": label for label in common for each in folders}}


def across(comparison: Comparison) -> Comparison | None:
    """The schemes that folders on several divisions all have, on all of these; where not all do."""
    names: Mapping[str, str] = comparison.settings.get(ACROSS, {})
    if not names:
        return None
    both = relabelled(comparison, names)
    runs = {Unit.of(trace): trace for trace in both.traces}
    order = {label: i for i, label in enumerate(names.values())}
    traces = sorted(runs.values(), key=lambda t: (order[t.label], t.partition, t.seed))
    settings = {key: told for key, told in both.settings.items() if key not in {APART, DIFFER}}
    return replace(both, traces=tuple(traces), settings=settings)


def parts(comparison: Comparison) -> list[tuple[str, Comparison]]:
    """The comparisons that may be ranked, by name; just itself, without one, if all may be."""
    apart: Mapping[str, Mapping[str, Any]] | None = comparison.settings.get(APART)
    if apart is None:
        return [("", comparison)]
    asked = {key: comparison.settings[key] for key in ASKED if key in comparison.settings}
    out = []
    for name, settings in apart.items():
        own = tuple(trace for trace in comparison.traces if trace.label in settings["schemes"])
        out.append((name, replace(comparison, traces=own, settings={**settings, **asked})))
    return out


def marked(comparison: Comparison, mark: str) -> Comparison:
    """The comparison as it is shown: the names of oracles end in a mark."""
    names = {x: x + mark if x in comparison.oracles else x for x in comparison.labels}
    shown, told = relabelled(comparison, names), dict(comparison.settings)
    if APART in told:
        told[APART] = {
            name: {
                **own,
                "schemes": {names[x]: built for x, built in own["schemes"].items() if x in names},
            }
            for name, own in told[APART].items()
        }
    if ACROSS in told:
        told[ACROSS] = {
            names[x]: name + mark * (names[x] != x)
            for x, name in told[ACROSS].items()
            if x in names
        }
    return replace(shown, settings={**told, "schemes": shown.settings["schemes"]})


def in_common(comparison: Comparison) -> Comparison:
    """Return the runs that tables and tests count: those with common seeds and divisions.

    A seed or a division may be hard for all schemes, so one without runs there would seem better.
    """
    return comparison.balanced()


def on_one_division(comparison: Comparison) -> Comparison:
    """The runs on the first division: clients of one are others than those of another."""
    kept: list[Trace] = []
    for _, part in parts(comparison):
        first = part.balanced().partitions[0]
        kept += [trace for trace in part.traces if trace.partition == first]
    several = len(kept) < len(comparison.traces)
    return replace(comparison, traces=tuple(kept)) if several else comparison


def _refuse_the_same_twice(comparisons: Sequence[Comparison]) -> None:
    folders = Counter(c.folder.resolve() for c in comparisons if c.folder is not None)
    for folder, count in folders.items():
        if count > 1:
            raise BadInput(
                f"The run folder '{folder}' is given {count} times; name every folder once."
            )


def _joined(names: Sequence[str], comparisons: Sequence[Comparison]) -> Comparison:
    """One after the other; settings that are not the same everywhere are listed run by run."""
    if len(comparisons) == 1:
        return comparisons[0]
    keys = dict.fromkeys(key for c in comparisons for key in c.settings if key != "schemes")
    values = {key: [c.settings.get(key) for c in comparisons] for key in keys}
    same = {key for key in keys if all(value == values[key][0] for value in values[key])}
    own = {
        name: {key: value for key, value in c.settings.items() if key not in {*same, "schemes"}}
        for name, c in zip(names, comparisons, strict=True)
    }
    schemes = {k: v for c in comparisons for k, v in c.settings["schemes"].items()}
    shared = {key: values[key][0] for key in keys if key in same}
    settings = {RUNS: own, "schemes": schemes, **shared, **counts(comparisons)}
    return replace(
        comparisons[0],
        traces=tuple(trace for c in comparisons for trace in c.traces),
        settings=settings,
        interrupted=any(c.interrupted for c in comparisons),
    )


def _names(comparisons: Sequence[Comparison]) -> list[str]:
    names = [c.folder.name if c.folder else f"run {i + 1}" for i, c in enumerate(comparisons)]
    counts = Counter(names)
    return [f"{name} #{i + 1}" if counts[name] > 1 else name for i, name in enumerate(names)]
