"""Which scheme got how far: one row per scheme, the best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.types import Floats
from fedcohort.report.facts.combine import in_common, parts
from fedcohort.report.facts.measures import (
    ACCURACY,
    MEASURED_HERE,
    Columns,
    Measure,
    best,
    by_scheme,
    choosing,
    final,
    measured,
    stacked,
)
from fedcohort.report.facts.pairs import pairwise
from fedcohort.report.facts.spent import spent_bytes, spent_seconds, spent_time
from fedcohort.server._trace import CROSSINGS, SUSTAINED
from fedcohort.simulation._storage import CROSSING

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace


def target_of(comparison: Comparison, target: float | None = None) -> float | None:
    """The accuracy that counts as "there": as given, as the run was told, or a fair choice.

    The fair choice is the largest multiple of 5 % that at least half of the schemes are at in the
    end (or, where the first time counts, ever were), on average over their runs. None where
    accuracy is not measured.
    """
    if target is not None:
        if not 0 < target <= 1:
            raise BadParameter("target", "report", "an accuracy in (0, 1]", target)
        return float(target)
    if measured(comparison)[0].name != ACCURACY.name:
        return None
    told = comparison.settings.get("target")
    if isinstance(told, int | float) and 0 < told <= 1:
        return float(told)
    curves = [stacked(comparison.of(label), ACCURACY)[1] for label in comparison.labels]
    lasting = crossing_of(comparison) == SUSTAINED
    levels = [(final(each) if lasting else best(each, ACCURACY)).mean() for each in curves]
    return float(max(0.05, np.floor(np.nanmedian(levels) * 20 + 1e-9) / 20))


def crossing_of(comparison: Comparison) -> str:
    """When a target counts as reached: as the comparison was told, see `Trace.rounds_to`."""
    told = comparison.settings.get(CROSSING)
    return str(told) if told in CROSSINGS else SUSTAINED


def summary(comparison: Comparison, target: float | None = None) -> pd.DataFrame:
    """One row per scheme, the best first: level, spread, gap to the reference, costs, fairness.

    Only schemes that a server can use are ``ranked``. An ``oracle``, and last centralised
    training (``chooses`` is False), come after them, as yardsticks.

    ``final`` is the mean over the last tenth of the evaluations, ``best`` the best ever seen;
    both are means over runs, in which every partition counts the same, with their standard
    deviation beside. ``difference``, ``low``, ``high`` and ``p`` compare with the
    reference (`Comparison.reference`; NaN in its own row), paired by partition and seed.
    What ``p`` is about, `significance.paired` says: with several partitions, divisions like
    these; ``p_smallest`` is the least that so few can give, ``p_attainable`` the level that a
    test at 5 % has with them, ``p_these`` speaks of these divisions only. ``p_holm`` and
    ``p_these_holm`` are corrected for the number of ``tests`` against the reference, and NaN
    where they cannot reach 5 %, see `pairs.pairwise`. What it took to reach the target
    (to stay there, see `Trace.rounds_to`; ``settings["crossing"] = "first"`` takes the first
    time) is the median over runs, a run that never got there counting as
    infinite (so NaN where half of them did not); ``reached`` is how many did. ``void`` is how many
    rounds of a run too few answered in, so that the model stayed.

    Runs of partitions and seeds that not every scheme has are left out (`Comparison.missing` names
    what they lack). On several partitions, ``sd_partitions`` is the standard deviation of their
    means, and ``sd_seeds`` that of seeds on the same partition.

    Runs of several problems (see `combine.combined`) are ranked and tested within each; the
    column ``problem`` says which.
    """
    ranked = parts(comparison)
    if len(ranked) > 1:
        tables = [_ranked(part, target).assign(problem=name) for name, part in ranked]
        return pd.concat(tables, ignore_index=True)
    return _ranked(comparison, target)


def _ranked(comparison: Comparison, target: float | None) -> pd.DataFrame:
    measure = measured(comparison)[0]
    goal = target_of(comparison, target)
    comparison, crossing = in_common(comparison), crossing_of(comparison)
    rows = [
        _scheme_row(comparison.of(label), label, measure, goal, crossing)
        for label in comparison.labels
    ]
    table = pd.DataFrame(rows)
    table["chooses"] = table["scheme"].isin(choosing(comparison))
    table["oracle"] = table["scheme"].isin(comparison.oracles)
    usable = table["chooses"] & ~table["oracle"]
    table["ranked"] = usable if usable.any() else table["chooses"]
    table = table.sort_values(
        ["ranked", "chooses", "final"], ascending=[False, False, not measure.higher], kind="stable"
    )
    table = table.reset_index(drop=True)
    tests = pairwise(comparison)
    own = tests[tests["reference"] == comparison.reference].drop(columns="reference")
    return table.merge(own, on="scheme", how="left")


def _scheme_row(
    traces: Sequence[Trace], label: str, measure: Measure, goal: float | None, crossing: str
) -> dict[str, Any]:
    _, curves = stacked(traces, measure)
    level, peak = final(curves), best(curves, measure)
    reached = [None if goal is None else trace.rounds_to(goal, crossing) for trace in traces]
    seconds = [spent_seconds(trace) for trace in traces]
    weight, times = [spent_bytes(trace) for trace in traces], [spent_time(t) for t in traces]
    return {
        "scheme": label,
        "runs": len(traces),
        "partitions": len({trace.partition for trace in traces}),
        "seeds": len({trace.seed for trace in traces}),
        "rounds": min(trace.rounds for trace in traces),
        "final": _mean(traces, level),
        "final_sd": _spread(level),
        **_spreads(traces, level),
        "best": _mean(traces, peak),
        "best_sd": _spread(peak),
        "reached": sum(rounds is not None for rounds in reached),
        "rounds_to_target": _median([np.inf if r is None else float(r) for r in reached]),
        "seconds_to_target": _median_at(seconds, reached),
        "time_to_target": _median_at(times, reached),
        "bytes_to_target": _median_at(weight, reached),
        "seconds": float(np.mean([total[-1] for total in seconds])),
        "time": float(np.mean([total[-1] for total in times])),
        "bytes": float(np.mean([total[-1] for total in weight])),
        "messages": float(np.mean([trace.messages.sum() for trace in traces])),
        "void": float(np.mean([trace.void.sum() for trace in traces])),
        **_fairness(traces),
        "worst_loss": float(np.mean([trace.client_losses.max() for trace in traces])),
        "initial_loss": float(np.mean([trace.initial[0] for trace in traces])),
        **{
            each.name: _mean(traces, final(stacked(traces, each)[1]))
            for each in MEASURED_HERE.values()
            if each.among(traces)
        },
    }


def _fairness(traces: Sequence[Trace]) -> dict[str, float]:
    """Jain and Gini of the participation, and how many never took part; NaN if nobody did."""
    if not any(len(trace.cohort_clients) for trace in traces):
        return dict.fromkeys(("jain", "gini", "never"), np.nan)
    return {
        "jain": float(np.mean([trace.jain for trace in traces])),
        "gini": float(np.mean([trace.gini for trace in traces])),
        "never": float(np.mean([(trace.participation == 0).sum() for trace in traces])),
    }


def _mean(traces: Sequence[Trace], values: Floats) -> float:
    """Over runs; every partition counts the same, as in the tests, whatever its seeds."""
    where = [trace.partition for trace in traces]
    _, block, seeds = np.unique(where, return_inverse=True, return_counts=True)
    even = len(set(seeds.tolist())) == 1
    return float(np.average(values, weights=None if even else 1 / seeds[block]))


def _spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _spreads(traces: Sequence[Trace], level: Floats) -> dict[str, float]:
    """The spread between partitions, and that of seeds within them; nothing with one partition."""
    _, block, seeds = np.unique(
        [t.partition for t in traces], return_inverse=True, return_counts=True
    )
    if len(seeds) == 1:
        return {}
    means = np.bincount(block, level) / seeds
    free = len(level) - len(seeds)
    within = np.sqrt(((level - means[block]) ** 2).sum() / free) if free else np.nan
    return {"sd_partitions": _spread(means), "sd_seeds": float(within)}


def _median(values: Sequence[float]) -> float:
    """The lower middle, NaN if that is infinite: no mean of a number and infinity."""
    middle = float(np.sort(values)[(len(values) - 1) // 2])
    return middle if np.isfinite(middle) else float("nan")


def _median_at(totals: Sequence[Floats], reached: Sequence[int | None]) -> float:
    return _median(
        [
            np.inf if r is None else float(total[r - 1])
            for total, r in zip(totals, reached, strict=True)
        ]
    )


def by_division(comparison: Comparison) -> pd.DataFrame:
    """One row per scheme and division: the level reached, mean and spread over seeds."""
    measure = measured(comparison)[0]
    rows = []
    for label in comparison.labels:
        for partition in comparison.partitions:
            traces = comparison.of(label, partition)
            if traces:
                level = final(stacked(traces, measure)[1])
                spread = {"mean": float(level.mean()), "sd": _spread(level)}
                rows.append(
                    {"scheme": label, "division": partition, "seeds": len(traces), **spread}
                )
    return pd.DataFrame(rows, columns=["scheme", "division", "seeds", "mean", "sd"])


def f1_by_class(comparison: Comparison) -> pd.DataFrame:
    """F1 of every class, of the last models: one row per scheme and class.

    Mean, standard deviation, and the lowest and highest of the seeds.

    Empty where it is not known.
    """

    def table(traces: Sequence[Trace]) -> Columns | None:
        scores = [trace.f1 for trace in traces if len(trace.f1)]
        if not scores:
            return None
        spread = np.std(scores, axis=0, ddof=1) if len(scores) > 1 else np.nan
        return {
            "class": np.arange(len(scores[0])),
            "f1": np.mean(scores, axis=0),
            "sd": spread,
            "lowest": np.min(scores, axis=0),
            "highest": np.max(scores, axis=0),
        }

    columns = ("class", "f1", "sd", "lowest", "highest")
    return by_scheme(comparison, table, columns, comparison.labels)
