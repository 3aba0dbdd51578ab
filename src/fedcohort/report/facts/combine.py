"""Several run folders as one comparison; what is not comparable stays apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedcohort.core.errors import BadInput
from fedcohort.report.facts.measures import choosing
from fedcohort.simulation.arms import OWN
from fedcohort.simulation.comparison import SHORTER, STATE
from fedcohort.simulation.runfolder import CROSSING, FINGERPRINT, MAY_DIFFER, PARTITIONS

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

APART = "ranked apart"
"""The setting of a combined comparison that holds the settings of every problem by name."""
DIFFER = "runs differ in"
RUNS = "run by run"
_NO_CONDITION = {*MAY_DIFFER, "options", "problem", SHORTER}
_OF_ONE_RUN = {
    "scheme", "parameters", "label", "seed", "run_seed", "partition", "versions", "withdrawn",
    STATE, OWN,
}  # fmt: skip
_OF_ONE_DIVISION = {"partition_seed", FINGERPRINT, "clients", "importance"}
"""What may differ between divisions of the same problem."""
_GOES_WITHOUT_SAYING = {"clients", "importance", "dimension", FINGERPRINT}
_KNOWN_EVERYWHERE = (
    "rounds", "clients", "importance", "dimension", "optimiser", "aggregator", "algorithm",
)  # fmt: skip
"""What can be said of a run on Flower and of a simulated one: data and training cannot."""


def combined(comparisons: Sequence[Comparison]) -> Comparison:
    """All runs of several comparisons; a scheme that comes twice is named with its folder.

    Runs of another problem, another number of rounds or other options cannot be paired by
    seed, and their levels mean something else: `parts` gives them back as comparisons of their
    own, and nothing is ranked or tested across. Folders that differ in the division of the data
    alone become one comparison on several.
    """
    if not comparisons:
        raise BadInput("A report needs at least one run folder; got none.")
    _refuse_the_same_twice(comparisons)
    comparisons = _divisions_together(_seeds_together(comparisons))
    if len(comparisons) == 1:
        return comparisons[0]
    names, conditions = _names(comparisons), _comparable(comparisons)
    # An older version did not note its data; where every scheme brings a part, none is common.
    unknown = {FINGERPRINT for each in conditions if FINGERPRINT not in each}
    unknown |= {key for each in conditions for key, value in each.items() if value == OWN}
    conditions = [{k: v for k, v in each.items() if k not in unknown} for each in conditions]
    differ = _differences(conditions)
    counts = Counter(label for comparison in comparisons for label in comparison.labels)
    renamed = [
        _renamed(comparison, name, {x for x in comparison.labels if differ or counts[x] > 1})
        for name, comparison in zip(names, comparisons, strict=True)
    ]
    whole = _joined(names, renamed)
    if not differ:
        return whole
    apart: dict[str, Mapping[str, Any]] = {}
    for first in conditions:
        alike = [i for i, other in enumerate(conditions) if other == first]
        name = " and ".join(names[i] for i in alike)
        apart[name] = _joined([names[i] for i in alike], [renamed[i] for i in alike]).settings
    return replace(whole, settings={**whole.settings, DIFFER: differ, APART: apart})


def parts(comparison: Comparison) -> list[tuple[str, Comparison]]:
    """The comparisons that may be ranked, by name; just itself, without one, if all may be."""
    apart: Mapping[str, Mapping[str, Any]] | None = comparison.settings.get(APART)
    if apart is None:
        return [("", comparison)]
    out = []
    for name, settings in apart.items():
        own = tuple(trace for trace in comparison.traces if trace.label in settings["schemes"])
        out.append((name, replace(comparison, traces=own, settings=settings)))
    return out


def in_common(comparison: Comparison) -> Comparison:
    """The runs that tables and tests count: on several divisions, those that every scheme has.

    A division may be hard for everybody, so who has no runs there would seem to be better.
    """
    return comparison.balanced() if len(comparison.partitions) > 1 else comparison


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


def is_carried(comparison: Comparison) -> bool:
    """Whether the runs were not simulated."""
    return all("carrier" in trace.settings for trace in comparison.traces)


def _seeds_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Runs on Flower that differ in their seed alone, as one comparison of a scheme."""
    out: list[Comparison] = []
    for new in comparisons:
        for i, old in enumerate(out):
            if _another_seed(old, new):
                seeds = [trace.seed for trace in (*old.traces, *new.traces)]
                settings = {**old.settings, "seeds": seeds}
                out[i] = replace(old, traces=(*old.traces, *new.traces), settings=settings)
                break
        else:
            out.append(new)
    return out


def _another_seed(old: Comparison, new: Comparison) -> bool:
    if not (is_carried(old) and is_carried(new)) or old.labels != new.labels:
        return False
    first, second = old.traces[0].settings, new.traces[0].settings
    same = all(first.get(key) == second.get(key) for key in ("scheme", "parameters"))
    known = {trace.seed for trace in old.traces}
    return same and new.traces[0].seed not in known and _conditions(old) == _conditions(new)


def _divisions_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Folders of the same schemes that differ in the division of the data alone, as one."""
    out: list[Comparison] = []
    for new in comparisons:
        for i, old in enumerate(out):
            if _another_division(old, new):
                out[i] = _pooled(old, new)
                break
        else:
            out.append(new)
    return out


def _another_division(old: Comparison, new: Comparison) -> bool:
    if is_carried(old) or is_carried(new) or set(old.labels) != set(new.labels):
        return False
    if set(old.partitions) & set(new.partitions):
        return False
    built, again = (each.settings.get("schemes", {}) for each in (old, new))
    if any(built.get(label) != again.get(label) for label in old.labels):
        return False
    same = [
        {key: value for key, value in _conditions(each).items() if key not in _OF_ONE_DIVISION}
        for each in (old, new)
    ]
    return "data" in same[0] and same[0] == same[1]


def _pooled(old: Comparison, new: Comparison) -> Comparison:
    traces = [t for label in old.labels for each in (old, new) for t in each.of(label)]
    order = {label: i for i, label in enumerate(old.labels)}
    traces.sort(key=lambda t: (order[t.label], t.partition, t.seed))
    seeds = sorted({trace.seed for trace in traces})
    told: dict[str, Any] = {
        "seeds": seeds,
        PARTITIONS: sorted({trace.partition for trace in traces}),
    }
    shorter = sum(each.settings.get(SHORTER, 0) for each in (old, new))
    if shorter:
        told[SHORTER] = shorter
    commands = [each.settings.get("command") for each in (old, new)]
    if all(commands):
        told["command"] = "\n".join(map(str, commands))
    settings = {**old.settings, **told}
    for key in ("target", CROSSING):  # what one folder was told does not hold for the other
        if old.settings.get(key) != new.settings.get(key):
            settings.pop(key, None)
    broken = old.interrupted or new.interrupted
    return replace(old, traces=tuple(traces), settings=settings, interrupted=broken)


def _comparable(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The conditions of each; a run on Flower takes those of simulated ones that it is like."""
    own = [_conditions(comparison) for comparison in comparisons]
    carried = [is_carried(comparison) for comparison in comparisons]
    simulated = [each for each, elsewhere in zip(own, carried, strict=True) if not elsewhere]
    for i, conditions in enumerate(own):
        like = [each for each in simulated if carried[i] and _agree(conditions, each)]
        if like and all(each == like[0] for each in like):
            own[i] = like[0]
    return own


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[k] == other[k] for k in _KNOWN_EVERYWHERE if k in one and k in other)


def _conditions(comparison: Comparison) -> dict[str, Any]:
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


def _differences(conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words; that the data differ goes without saying where anything else does."""
    keys = dict.fromkeys(key for each in conditions for key in each)
    differ = [k for k in keys if any(each.get(k) != conditions[0].get(k) for each in conditions)]
    told = [key.replace("_", " ") for key in differ if key not in _GOES_WITHOUT_SAYING]
    return told or (["data"] if differ else [])


def _renamed(comparison: Comparison, name: str, labels: set[str]) -> Comparison:
    def new(label: str) -> str:
        return f"{label} ({name})" if label in labels else label

    traces = tuple(
        replace(trace, settings={**trace.settings, "label": new(trace.label)})
        for trace in comparison.traces
    )
    told = comparison.settings.get("schemes", {})
    schemes = {new(label): str(told.get(label, "")) for label in comparison.labels}
    return replace(comparison, traces=traces, settings={**comparison.settings, "schemes": schemes})


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
    settings = {RUNS: own, "schemes": schemes, **{k: values[k][0] for k in keys if k in same}}
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
