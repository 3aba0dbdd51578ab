"""Combine traces and comparisons, pool partitions, and see what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort._internal.errors import BadInput, FedcohortError
from fedcohort.report._measures import choosing
from fedcohort.schemes import installed
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._scheme import Scheme
from fedcohort.server._selector import Selector
from fedcohort.simulation._arms import OWN
from fedcohort.simulation._comparison import SHORTER, STATE
from fedcohort.simulation._storage import (
    CODE,
    CROSSING,
    FINGERPRINT,
    MAY_DIFFER,
    ORACLE,
    PARTITIONS,
    REFERENCE,
)
from fedcohort.simulation._workers import Unit

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

# Under which conditions runs were made: what must be equal for schemes to be compared.

COPIES = "in several folders"
"""The setting that says how many runs were in more than one folder, and count once."""
PARTITION_SEED = "partition_seed"
_NO_CONDITION = {*MAY_DIFFER, "options", "problem", SHORTER, COPIES}
_OF_ONE_RUN = {
    "scheme", "parameters", "label", "seed", "run_seed", "partition", "versions", "withdrawn",
    ORACLE, STATE, OWN,
}  # fmt: skip
_OF_ONE_DIVISION = {PARTITION_SEED, FINGERPRINT, "clients", "importance"}
"""What may differ between divisions of the same problem."""
_GOES_WITHOUT_SAYING = {"clients", "importance", "dimension", FINGERPRINT}
_KNOWN_EVERYWHERE = (
    "rounds", "clients", "importance", "dimension", "optimiser", "aggregator", "algorithm",
)  # fmt: skip
"""What can be said of a run on Flower and of a simulated one: data and training cannot."""


def is_carried(comparison: Comparison) -> bool:
    """Whether the runs were not simulated."""
    return all("carrier" in trace.settings for trace in comparison.traces)


def conditions_of(comparison: Comparison) -> dict[str, Any]:
    """What must be equal for schemes to be compared: the problem, the rounds, the options."""
    settings = comparison.settings
    problem = settings.get("problem", {})
    out = dict(problem) if isinstance(problem, Mapping) else {"problem": problem}
    out |= {key: value for key, value in settings.items() if key not in _NO_CONDITION}
    runs = [comparison.of(label)[0] for label in choosing(comparison)]
    run = runs[0]  # centralised training, which has no local work, is not among them
    out |= {key: value for key, value in run.settings.items() if key not in _OF_ONE_RUN}
    for part in {part for each in runs for part in each.settings.get(OWN, ())}:
        others = [each for each in runs if part not in each.settings.get(OWN, ())]
        out[part] = others[0].settings.get(part) if others else OWN
    # Left out is the default, so a run that does not say it is not another.
    out["evaluate_every"] = settings.get("options", {}).get("evaluate_every", "1")
    out["clients"] = run.sizes.tolist()
    out["importance"] = run.importance.round(12).tolist()
    out["dimension"] = run.settings.get("dimension", len(run.model))
    return out


def of_one_problem(one: Comparison, other: Comparison) -> bool:
    """Whether nothing but the division of the same data differs; of tasks by hand nobody knows."""
    if is_carried(one) or is_carried(other):
        return False
    same = [
        {key: value for key, value in conditions_of(each).items() if key not in _OF_ONE_DIVISION}
        for each in (one, other)
    ]
    return "data" in same[0] and same[0] == same[1]


def comparable(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The conditions of each; a run on Flower takes those of simulated ones that it is like."""
    own = [conditions_of(comparison) for comparison in comparisons]
    carried = [is_carried(comparison) for comparison in comparisons]
    simulated = [each for each, elsewhere in zip(own, carried, strict=True) if not elsewhere]
    for i, conditions in enumerate(own):
        like = [each for each in simulated if carried[i] and _agree(conditions, each)]
        if like and all(each == like[0] for each in like):
            own[i] = like[0]
    # An older version did not note its data; where every scheme brings a part, none is common.
    unknown = {FINGERPRINT for each in own if FINGERPRINT not in each}
    unknown |= {key for each in own for key, value in each.items() if value == OWN}
    return [{k: v for k, v in each.items() if k not in unknown} for each in own]


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[k] == other[k] for k in _KNOWN_EVERYWHERE if k in one and k in other)


def differences(conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys that differ; that the data do goes without saying where anything else does."""
    keys = dict.fromkeys(key for each in conditions for key in each)
    differ = [k for k in keys if any(each.get(k) != conditions[0].get(k) for each in conditions)]
    told = [key for key in differ if key not in _GOES_WITHOUT_SAYING]
    return told or (["data"] if differ else [])


# Folders of one experiment on other divisions or with other seeds, put together.

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


# Several run folders as one comparison; what is not comparable stays apart.

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


# A scheme, its federation and its law, rebuilt from what a run has noted.


def scheme_of(trace: Trace) -> Scheme[Any] | None:
    """The scheme of a run; None if it is somebody else's, or of another version."""
    try:
        return installed(trace.scheme, **dict(trace.settings.get("parameters", {})))
    except (FedcohortError, TypeError):
        return None


def federation_of(trace: Trace) -> Federation:
    """The clients of a run, as its scheme saw them."""
    total = int(trace.sizes.sum())
    if total and np.allclose(trace.importance, trace.sizes / total, rtol=0, atol=1e-12):
        return Federation(sizes=trace.sizes)  # exact integers where there are any
    return Federation(importance=trace.importance, sizes=trace.sizes)


def law_of(trace: Trace) -> Design | None:
    """The law of every cohort of a run, rebuilt from its settings; None where there is none.

    There is one where the scheme neither asks nor listens (so that all rounds are alike) and
    everyone is always available.
    """
    if trace.settings.get("availability", {}).get("name", "always") != "always":
        return None
    if trace.settings.get("hardened"):  # who may be chosen depends on the rounds before
        return None
    if (trace.available < len(trace.importance)).any():
        return None
    scheme = scheme_of(trace)
    if scheme is None or scheme.asks or scheme.listens:
        return None
    try:
        return Selector(scheme, federation_of(trace), trace.run_seed).design()
    except FedcohortError:
        return None
