"""What decided the runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedcohort.report.facts.combine import ACROSS, APART, RUNS

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


_OF_RUNS = {"seed", "run_seed", "partition", "label"}


def settings(comparison: Comparison) -> pd.DataFrame:
    """Everything that decided the runs, one row per setting; what differs, by scheme."""
    told = comparison.settings
    kept = {
        key: value for key, value in told.items() if key not in {"schemes", RUNS, APART, ACROSS}
    }
    rows = [("comparison", key, value) for key, value in kept.items()]
    for run, own in told.get(RUNS, {}).items():
        rows += [(run, key, value) for key, value in own.items()]
    firsts = {label: dict(comparison.of(label)[0].settings) for label in comparison.labels}
    common = {
        key: value
        for key, value in next(iter(firsts.values())).items()
        if key not in _OF_RUNS and all(f.get(key) == value for f in firsts.values())
    }
    rows += [("every run", key, value) for key, value in common.items() if key not in kept]
    for label, facts in firsts.items():
        own = {k: v for k, v in facts.items() if k not in common and k not in _OF_RUNS}
        rows += [(label, key, value) for key, value in own.items()]
    return pd.DataFrame(
        [(where, key, in_words(value)) for where, key, value in rows],
        columns=["of", "setting", "value"],
    )


def in_words(value: Any) -> str:
    """A setting as text, nested ones in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {in_words(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        shown = ", ".join(in_words(inner) for inner in value[:40])
        return shown + (f", … ({len(value)} in all)" if len(value) > 40 else "")
    return str(value)
