"""Under which conditions runs were made: what must be equal for schemes to be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fedcohort.report.facts.measures import choosing
from fedcohort.simulation._arms import OWN
from fedcohort.simulation._comparison import SHORTER, STATE
from fedcohort.simulation._storage import FINGERPRINT, MAY_DIFFER, ORACLE

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

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
