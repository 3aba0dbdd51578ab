"""The ranking of schemes, and tests of their gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.html import plural
from fedcohort._internal.types import Bools, Floats
from fedcohort.report._format import corrected_p, corrected_p_these, interval, p_value
from fedcohort.report._measures import (
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
from fedcohort.report._runs import ALL_PAIRS, in_common, parts
from fedcohort.report._spent import spent_bytes, spent_seconds, spent_time
from fedcohort.server._trace import CROSSINGS, SUSTAINED
from fedcohort.simulation._comparison import LEVEL, smallest_p
from fedcohort.simulation._storage import CROSSING

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

# Is a difference more than chance? Paired, exact, and honest about what the p value is about.

EXACT_SEEDS = 16
"""Up to this many pairs all 2^s sign patterns are counted; above, a sample of them."""
SAMPLED, AT_ONCE = 100_000, 1_000
"""Patterns of a sample, and of those in memory: a thousand runs have a thousand signs each."""


@dataclass(frozen=True)
class Paired:
    """How two schemes differ over the pairs of runs that they share.

    With one partition, ``p`` is the two-sided sign-flip test of "the two are exchangeable in
    every pair": it speaks of that division of the data. With several, ``p`` flips the mean gap
    of each partition as a whole and speaks of divisions like these, of which they are a sample;
    ``p_these`` flips pair by pair, and speaks of these divisions alone (NaN with one, where
    ``p`` does). ``low`` and ``high`` are the 95 % interval of the mean gap by Student's t, over
    what ``p`` flips, and ``p_t`` the test that belongs to it, which assumes normal gaps; NaN
    with fewer than two.
    """

    pairs: int
    difference: float
    low: float
    high: float
    p: float
    p_t: float
    partitions: int = 1
    p_these: float = np.nan

    @property
    def units(self) -> int:
        """What ``p`` flips, how many: partitions, or pairs on the only one."""
        return self.partitions if self.partitions > 1 else self.pairs

    @property
    def over(self) -> str:
        """The units that ``p`` flips, in words.

        >>> Paired(5, 0.1, 0.0, 0.2, 0.0625, 0.03).over
        '5 seeds'
        """
        unit = "division" if self.partitions > 1 else "seed"
        return f"{self.units} {plural(self.units, unit)}"

    @property
    def p_smallest(self) -> float:
        """The smallest p that so few can give; NaN without a pair."""
        return smallest_p(self.units) if self.pairs else np.nan

    @property
    def p_these_smallest(self) -> float:
        """The same of ``p_these``; NaN with one partition."""
        return smallest_p(self.pairs) if self.partitions > 1 else np.nan

    @property
    def p_attainable(self) -> float:
        """The level that a test at 5 % has with so few, at most."""
        return attainable_level(self.units)


def paired(first: ArrayLike, second: ArrayLike, partitions: Sequence[int] | None = None) -> Paired:
    """Compare two schemes that ran with the same seeds on the same partitions, entry by entry.

    Under the hypothesis that it does not matter which scheme is which, every paired
    difference could as well have had the other sign. The p value is the share of the 2^s
    sign patterns whose mean is at least as far from 0 as the one seen. No distribution is
    assumed; in return, s pairs cannot give a p below 2 / 2^s.

    ``partitions`` says for every pair on which division it ran. One scheme may suit one division
    better and the other another, so pairs of one division are not independent of each other as
    far as other divisions are concerned: their mean is one number, and k partitions cannot give
    a p below 2 / 2^k, however many seeds there are.

    >>> result = paired([3, 4, 5, 6], [1, 2, 3, 5])
    >>> result.difference, result.p
    (1.75, 0.125)
    >>> result = paired([3, 4, 5, 6], [1, 2, 3, 5], partitions=[0, 0, 1, 1])
    >>> result.difference, result.p, result.p_these
    (1.75, 0.5, 0.125)
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise BadInput(f"A paired test needs two equal rows; got {x.shape} and {y.shape}.")
    where = np.zeros(len(x), dtype=np.int64) if partitions is None else np.asarray(partitions)
    if where.shape != x.shape:
        raise BadInput(f"A paired test needs a partition of each pair; got {where.shape}.")
    both = np.isfinite(x) & np.isfinite(y)
    gaps = x[both] - y[both]
    if len(gaps) == 0:
        return Paired(0, np.nan, np.nan, np.nan, np.nan, np.nan)
    _, block, seeds = np.unique(where[both], return_inverse=True, return_counts=True)
    if len(seeds) == 1:
        return Paired(len(gaps), *_tested(gaps))
    scaled = gaps / seeds[block]  # every partition counts the same, whatever its number of seeds
    means: Floats = np.bincount(block, scaled).astype(np.float64)
    return Paired(len(gaps), *_tested(means), len(means), sign_flip_p(scaled))


def _tested(gaps: Floats) -> tuple[float, float, float, float, float]:
    """The mean of independent gaps (s,), its interval, and whether it is 0: p by flips, p by t."""
    s = len(gaps)
    mean, half, p_t = float(gaps.mean()), np.nan, np.nan
    if s > 1:
        error = float(gaps.std(ddof=1) / np.sqrt(s))
        half = float(stats.t.ppf(0.975, s - 1)) * error
        p_t = float(2 * stats.t.sf(abs(mean) / error, s - 1)) if error else float(mean == 0)
    return mean, mean - half, mean + half, sign_flip_p(gaps), p_t


def sign_flip_p(gaps: Floats) -> float:
    """Two-sided p of the sign-flip test of differences ``gaps`` (s,)."""
    s = len(gaps)
    scale = float(np.abs(gaps).max(initial=0.0))
    if scale == 0:
        return 1.0
    slack = 1e-12 * scale * s  # equal sums in another order differ by rounding
    if s <= EXACT_SEEDS:
        flipped = np.abs(_all_signs(s) @ gaps)
        return float(np.mean(flipped >= abs(gaps.sum()) - slack))
    rng = np.random.default_rng(0)  # the same report every time
    hits = 0
    for _ in range(SAMPLED // AT_ONCE):
        flips = np.where(rng.random((AT_ONCE, s)) < 0.5, -1.0, 1.0)
        hits += int(np.count_nonzero(np.abs(flips @ gaps) >= abs(gaps.sum()) - slack))
    return float((hits + 1) / (SAMPLED + 1))  # the seen pattern counts as one of the sample


@lru_cache(maxsize=4)
def _all_signs(s: int) -> Floats:
    """(2^s, s) all patterns of +1 and -1; comparisons of many schemes want the same ones."""
    bits: Bools = (np.arange(2**s)[:, None] >> np.arange(s)) & 1 == 1
    return np.where(bits, -1.0, 1.0)


def attainable_level(pairs: int, level: float = LEVEL) -> float:
    """The largest p of the sign-flip test that is not above ``level``; 0 where all are.

    Patterns come in twos, one the other's mirror, so p is a multiple of 2 / 2^s: told to reject at
    ``level``, the test rejects a true hypothesis this often, or less where sums are equal.

    >>> [attainable_level(s) for s in (5, 6, 7, 8)]
    [0.0, 0.03125, 0.046875, 0.046875]
    """
    step = smallest_p(pairs)
    return float(np.floor(level / step * (1 + 1e-12)) * step)


def holm(p: ArrayLike) -> Floats:
    """Holm's correction of several p values, so that one false alarm in all is unlikely.

    The smallest of k is multiplied by k, the next by k - 1, ..., never decreasing; NaN stay.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    out = values.copy()
    there = np.flatnonzero(np.isfinite(values))
    order = there[np.argsort(values[there], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return out


# Tests of schemes against a reference: gaps paired by partition and seed, tested, corrected.

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


# Which scheme got how far: one row per scheme, the best first.


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
