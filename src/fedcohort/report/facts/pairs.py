"""Tests of schemes against a reference: gaps paired by partition and seed, tested, corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedcohort._internal.errors import UnknownName
from fedcohort.report.facts.combine import ALL_PAIRS, in_common, parts
from fedcohort.report.facts.measures import Measure, final, measured, stacked
from fedcohort.report.facts.significance import Paired, holm, paired
from fedcohort.report.show.format import (
    corrected_p,
    corrected_p_these,
    interval,
    p_value,
)
from fedcohort.simulation._comparison import LEVEL

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

ALL = "all"
"""The word that requests all pairs."""
TESTED = (
    "pairs", "units", "over", "difference", "low", "high", "p", "p_smallest", "p_attainable",
    "p_t", "p_these",
)  # fmt: skip
Levels = dict[tuple[int, int], float]
"""What one scheme reached, by (partition, seed)."""


def pairwise(comparison: Comparison, references: Sequence[str] | str | None = None) -> pd.DataFrame:
    """Every scheme against the reference of the comparison, paired by partition and seed.

    ``references`` may name other ones, each with a correction of its own, or be ``"all"`` for
    every scheme against every other. ``p_holm`` and ``p_these_holm`` are corrected by Holm's
    method for the number of ``tests``: of the schemes against one reference, or of all pairs.
    They are NaN where they cannot reach 5 %, however large the gap is: ``p_holm_smallest`` is the
    smallest value that the seeds (or divisions, see ``over``) allow. There is no row for two runs
    of different problems.
    """
    for reference in () if references in (None, ALL) else references or ():
        if reference not in comparison.labels:
            raise UnknownName("scheme of this comparison", reference, comparison.labels)
    tables = [_pairwise(in_common(part), references) for _, part in parts(comparison)]
    return pd.concat([each for each in tables if len(each)] or tables[:1], ignore_index=True)


def _pairwise(comparison: Comparison, references: Sequence[str] | str | None) -> pd.DataFrame:
    levels = final_levels(comparison, measured(comparison)[0])
    if references == ALL or (references is None and comparison.settings.get(ALL_PAIRS)):
        return _corrected(levels, list(combinations(levels, 2)), both_ways=True)
    wanted = [comparison.reference] if references is None else references
    tables = [
        _corrected(levels, [(label, reference) for label in levels if label != reference])
        for reference in levels
        if reference in wanted
    ]
    return pd.concat(tables, ignore_index=True) if tables else _corrected(levels, [])


def _corrected(
    levels: Mapping[str, Levels], pairs: Sequence[tuple[str, str]], both_ways: bool = False
) -> pd.DataFrame:
    """The tests of a family of pairs, corrected for their number; each also the other way round."""
    tests = [_against(levels, *pair) for pair in pairs]
    p, floor = holm([test.p for test in tests]), holm([test.p_smallest for test in tests])
    these = holm([test.p_these for test in tests])
    these_floor = holm([test.p_these_smallest for test in tests])
    rows = [
        (*pair, *(getattr(test, name) for name in TESTED))
        for pair, test in zip(pairs, tests, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["scheme", "reference", *TESTED])
    table["tests"] = np.count_nonzero(np.isfinite(p))
    table["p_holm"] = np.where(floor <= LEVEL, p, np.nan)
    table["p_holm_smallest"] = floor
    table["p_these_holm"] = np.where(these_floor <= LEVEL, these, np.nan)
    if both_ways:
        other = table.assign(
            scheme=table["reference"], reference=table["scheme"], difference=-table["difference"],
            low=-table["high"], high=-table["low"],
        )  # fmt: skip
        table = pd.concat([table, other], ignore_index=True)
    order = list(levels)
    return table.sort_values(
        ["reference", "scheme"], key=lambda names: names.map(order.index), ignore_index=True
    )


def final_levels(comparison: Comparison, measure: Measure) -> dict[str, Levels]:
    """The level each scheme reached, by partition and seed."""
    out: dict[str, Levels] = {}
    for label in comparison.labels:
        traces = comparison.of(label)
        levels = final(stacked(traces, measure)[1])
        reached = zip(traces, levels.tolist(), strict=True)
        out[label] = {(trace.partition, trace.seed): level for trace, level in reached}
    return out


def _against(levels: Mapping[str, Levels], label: str, other: str) -> Paired:
    """The paired comparison of two schemes over the partitions and seeds they share."""
    shared = sorted(levels[label].keys() & levels[other].keys())
    one, two = ([levels[name][key] for key in shared] for name in (label, other))
    return paired(one, two, [partition for partition, _ in shared])


Tested = list[list[dict[str, tuple[str, float | None]] | None]]
"""[reference][scheme]: what the tests say, in words and as the number to sort by."""


def pairs(comparison: Comparison) -> Tested:
    """[reference][scheme]: gap, p and t as text and as the number to sort by.

    None for a scheme and itself, and for two runs of different problems. Against the reference
    p values are corrected for the tests against it, against other schemes for all pairs.
    """
    order = {label: i for i, label in enumerate(comparison.labels)}
    out: Tested = [[None] * len(order) for _ in order]
    for _, part in parts(comparison):
        _fill(out, part, order)
    return out


def _fill(out: Tested, comparison: Comparison, order: Mapping[str, int]) -> None:
    measure = measured(comparison)[0]
    tables = pairwise(comparison, ALL), pairwise(comparison)
    for row in (row for table in tables for row in table.itertuples()):
        between = interval(measure, row.low, row.high)
        gap = measure.gap(row.difference) + f" ({between})" * bool(np.isfinite(row.low))
        out[order[row.reference]][order[row.scheme]] = {
            "gap": (gap, _number(row.difference)),
            "p": (corrected_p(row), _number(row.p_holm)),
            "these": (corrected_p_these(row), _number(row.p_these_holm)),
            "t": (p_value(row.p_t), _number(row.p_t)),
        }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
