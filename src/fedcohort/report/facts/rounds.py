"""What happened round by round: curves, and who answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort._internal.types import Floats
from fedcohort.report.facts.combine import in_common, parts
from fedcohort.report.facts.measures import Columns, Measure, by_scheme, drawn, stacked
from fedcohort.report.facts.spent import spent_bytes, spent_seconds, spent_time

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace


def curves(comparison: Comparison, measure: Measure, line: str = "raw") -> pd.DataFrame:
    """One row per scheme and evaluated round: mean, spread and extremes over the seeds.

    The runs are those of the table: partitions and seeds that not every scheme has are left out.
    Every seed's curve is smoothed (``line``) before the mean is taken. ``bytes``, ``seconds`` of
    the machine that ran it and ``time`` by the virtual clock are what was spent until then, mean
    over seeds; evaluation is not counted.
    """

    def table(traces: Sequence[Trace]) -> Columns:
        rounds, raw = stacked(traces, measure)
        shown = drawn(raw, line, measure)
        spent = rounds.astype(int) - 1
        return {
            "round": rounds.astype(int),
            "mean": shown.mean(axis=0),
            "sd": shown.std(axis=0, ddof=1) if len(traces) > 1 else 0.0,
            "lowest": shown.min(axis=0),
            "highest": shown.max(axis=0),
            "bytes": np.mean([spent_bytes(trace)[spent] for trace in traces], axis=0),
            "seconds": np.mean([spent_seconds(trace)[spent] for trace in traces], axis=0),
            "time": np.mean([spent_time(trace)[spent] for trace in traces], axis=0),
        }

    counted = tuple(run for _, part in parts(comparison) for run in in_common(part).traces)
    return by_scheme(replace(comparison, traces=counted), table, labels=comparison.labels)


def answers(comparison: Comparison) -> pd.DataFrame:
    """Who was invited, who answered, what was rejected and why: one row per scheme and round.

    Means over seeds; empty where everybody always answered. ``rejected`` counts reports, and
    there is a column of its own for every reason.
    """
    reasons = list(dict.fromkeys(name for trace in comparison.traces for name in trace.faults))

    def table(traces: Sequence[Trace]) -> Columns:
        length = min(trace.rounds for trace in traces)

        def mean(get: Callable[[Trace], Any]) -> Floats:
            return np.asarray(np.mean([get(trace)[:length] for trace in traces], axis=0))

        def rejected(reason: str) -> Floats:
            return mean(lambda trace: trace.faults.get(reason, 0 * trace.filled))

        return {
            "round": np.arange(1, length + 1),
            "invited": mean(lambda trace: trace.invited),
            "counted": mean(lambda trace: trace.distinct),
            "answered": mean(lambda trace: trace.filled),
            "void": mean(lambda trace: trace.void),
            "rejected": mean(lambda trace: sum(trace.faults.values(), 0 * trace.filled)),
            **{reason: rejected(reason) for reason in reasons},
        }

    out = by_scheme(comparison, table)
    usual = (out["answered"] == 1) & (out["void"] == 0) & (out["rejected"] == 0)
    return out[:0] if usual.all() else out
