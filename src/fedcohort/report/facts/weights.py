"""The weights of the cohorts: what theory says beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedcohort._internal.types import Floats
from fedcohort.report.facts.clients import names
from fedcohort.report.facts.combine import on_one_division
from fedcohort.report.facts.from_trace import law_of
from fedcohort.report.facts.measures import Columns, by_scheme, choosing
from fedcohort.selection._design import Design
from fedcohort.theory._moments import Moments, moments

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace


def weight_matrix_moments(traces: Sequence[Trace]) -> tuple[Floats, Floats]:
    """(n,) mean and (n,) variance of every client's weight, over all rounds and seeds."""
    n = len(traces[0].importance)
    first, second, rounds = np.zeros(n), np.zeros(n), 0
    for trace in traces:
        first += np.bincount(trace.cohort_clients, trace.cohort_weights, minlength=n)
        second += np.bincount(trace.cohort_clients, trace.cohort_weights**2, minlength=n)
        rounds += trace.rounds
    mean = first / rounds
    return mean, np.maximum(0.0, second / rounds - mean**2)


def weight_table(comparison: Comparison) -> pd.DataFrame:
    """One row per scheme: weight sum, its variance, all variances and cohort size.

    Columns ending in ``_theory`` are exact and NaN where the law is not known beforehand.
    ``bias`` is (1/2) sum_i |mean weight_i - p_i|, its noise included: it shrinks with rounds
    for an unbiased scheme and stays for a biased one; ``bias_theory`` is its limit. Where there
    are several divisions, it is the first.
    """
    comparison, rows = on_one_division(comparison), []
    for label in choosing(comparison):
        traces = comparison.of(label)
        sums = np.concatenate([trace.weight_sum for trace in traces])
        mean, variance = weight_matrix_moments(traces)
        importance = traces[0].importance
        measured = {
            "sum": float(sums.mean()),
            "sum_variance": float(sums.var()),
            "variance": float(variance.sum()),
            "distinct": float(np.concatenate([trace.distinct for trace in traces]).mean()),
            "bias": float(0.5 * np.abs(mean - importance).sum()),
        }
        exact = _theory(law_of(traces[0]), importance)
        rows.append(
            {"scheme": label}
            | {
                key: value
                for name in measured
                for key, value in ((name, measured[name]), (f"{name}_theory", exact[name]))
            }
        )
    return pd.DataFrame(rows)


def _theory(law: Design | None, importance: Floats) -> dict[str, float]:
    if law is None:
        return dict.fromkeys(("sum", "sum_variance", "variance", "distinct", "bias"), np.nan)
    exact: Moments = moments(law)
    return {
        "sum": float(exact.mean.sum()),
        "sum_variance": exact.weight_sum_variance,
        "variance": exact.sigma,
        "distinct": exact.expected_distinct,
        "bias": float(0.5 * np.abs(exact.mean - importance).sum()),
    }


def client_weights(comparison: Comparison) -> pd.DataFrame:
    """One row per scheme and client: importance, mean weight and its standard error, variance."""

    def table(traces: Sequence[Trace]) -> Columns:
        mean, variance = weight_matrix_moments(traces)
        law = law_of(traces[0])
        return {
            "client": names(traces[0]),
            "importance": traces[0].importance,
            "mean": mean,
            "mean_error": np.sqrt(variance / sum(trace.rounds for trace in traces)),
            "variance": variance,
            "mean_theory": np.nan if law is None else law.mean(),
            "variance_theory": np.nan if law is None else law.variance(),
        }

    return by_scheme(on_one_division(comparison), table)
