"""Every scheme against every other: gaps paired by partition and seed, tested and corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import pandas as pd

from fedcohort.core.errors import UnknownName
from fedcohort.report.facts.combine import in_common, parts
from fedcohort.report.facts.measures import Measure, final, measured, stacked
from fedcohort.report.facts.significance import Paired, holm, paired

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

TESTED = ("pairs", "difference", "low", "high", "p", "p_smallest", "p_attainable", "p_t", "p_these")
Levels = dict[tuple[int, int], float]
"""What one scheme reached, by (partition, seed)."""


def pairwise(comparison: Comparison, references: Sequence[str] | None = None) -> pd.DataFrame:
    """Every scheme against every other, or against ``references``, paired by partition and seed.

    ``p_holm`` and ``p_these_holm`` correct for the number of pairs: of all schemes, or, where a
    reference was named beforehand, of those with it. There is no row for two runs of different
    problems.
    """
    for reference in references or ():
        if reference not in comparison.labels:
            raise UnknownName("scheme of this comparison", reference, comparison.labels)
    tables = [_pairwise(in_common(part), references) for _, part in parts(comparison)]
    return pd.concat([each for each in tables if len(each)] or tables[:1], ignore_index=True)


def _pairwise(comparison: Comparison, references: Sequence[str] | None) -> pd.DataFrame:
    levels = final_levels(comparison, measured(comparison)[0])
    if references is None:
        return _corrected(levels, list(combinations(levels, 2)), both_ways=True)
    tables = [
        _corrected(levels, [(label, reference) for label in levels if label != reference])
        for reference in levels
        if reference in references
    ]
    return pd.concat(tables, ignore_index=True) if tables else _corrected(levels, [])


def _corrected(
    levels: Mapping[str, Levels], pairs: Sequence[tuple[str, str]], both_ways: bool = False
) -> pd.DataFrame:
    """The tests of a family of pairs, corrected for their number; each also the other way round."""
    tests = [_against(levels, *pair) for pair in pairs]
    adjusted = holm([test.p for test in tests]), holm([test.p_these for test in tests])
    rows = []
    for (one, other), test, p, p_these in zip(pairs, tests, *adjusted, strict=True):
        ways = (
            [(one, other, test), (other, one, test.turned)] if both_ways else [(one, other, test)]
        )
        rows += [
            {
                "scheme": scheme,
                "reference": reference,
                **{name: getattr(found, name) for name in TESTED},
                "p_holm": p,
                "p_these_holm": p_these,
            }
            for scheme, reference, found in ways
        ]
    columns = ["scheme", "reference", *TESTED, "p_holm", "p_these_holm"]
    table = pd.DataFrame(rows, columns=columns)
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
