"""Whom a scheme chose and whom it left out: tables of participation, labels and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from fedcohort._internal.types import Floats
from fedcohort.data.heterogeneity import gini, rms_hellinger
from fedcohort.report.facts.combine import on_one_division
from fedcohort.report.facts.downsample import bucket_edges
from fedcohort.report.facts.measures import Columns, by_scheme

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace


def participation(comparison: Comparison) -> pd.DataFrame:
    """One row per scheme and client: in how many rounds it took part, mean over seeds.

    The clients are those of the first division where there are several.
    """

    def table(traces: Sequence[Trace]) -> Columns:
        counts = np.stack([trace.participation for trace in traces])  # (s, n)
        return {
            "client": names(traces[0]),
            "size": traces[0].sizes,
            "importance": traces[0].importance,
            "rounds": counts.mean(axis=0),
            "fewest": counts.min(axis=0),
            "most": counts.max(axis=0),
            "loss": np.mean([trace.client_losses for trace in traces], axis=0),
            **_accuracy(traces),
        }

    return by_scheme(on_one_division(comparison), table)


def _accuracy(traces: Sequence[Trace]) -> Columns:
    """On each client's own test samples, mean over seeds; nothing where it is not known."""
    known = [trace.client_accuracy for trace in traces if len(trace.client_accuracy)]
    return {"accuracy": np.mean(known, axis=0)} if known else {}


def names(trace: Trace) -> Sequence[str | int]:
    """(n,) what the clients of a run are called."""
    return trace.ids or range(len(trace.importance))


def participation_histogram(comparison: Comparison, bins: int = 24) -> pd.DataFrame:
    """How many clients took part in how many rounds: one row per scheme and bin.

    All schemes share their bins; ``clients`` is the mean over seeds.
    """
    top = max(int(trace.participation.max(initial=0)) for trace in comparison.traces)
    width = max(1, -(-(top + 1) // bins))  # whole rounds
    edges = np.arange(0, top + width + 1, width)

    def table(traces: Sequence[Trace]) -> Columns:
        counts = [np.histogram(trace.participation, edges)[0] for trace in traces]
        return {"from": edges[:-1], "to": edges[1:] - 1, "clients": np.mean(counts, axis=0)}

    return by_scheme(comparison, table)


def lorenz(comparison: Comparison, points: int = 101) -> pd.DataFrame:
    """Lorenz curves: the share of all participations that the least chosen clients have.

    The diagonal is equality. Curves are means over seeds: averaging the counts first would
    make every scheme look fairer than any of its runs.
    """
    grid = np.linspace(0, 1, points)

    def table(traces: Sequence[Trace]) -> Columns:
        curves = [_lorenz(trace.participation.astype(np.float64), grid) for trace in traces]
        return {"clients": grid, "participations": np.mean(curves, axis=0)}

    return by_scheme(comparison, table)


def _lorenz(counts: Floats, grid: Floats) -> Floats:
    total = counts.sum()
    if total == 0:
        return grid.copy()
    shares = np.concatenate([[0.0], np.cumsum(np.sort(counts)) / total])
    out: Floats = np.interp(grid, np.linspace(0, 1, len(shares)), shares)
    return out


def participation_picture(trace: Trace, rows: int = 120, columns: int = 250) -> Floats:
    """(<= rows, <= columns) the share of client-rounds in each cell that took part."""
    tops, lefts = bucket_edges(len(trace.importance), rows), bucket_edges(trace.rounds, columns)
    rounds = np.repeat(np.arange(trace.rounds), trace.distinct)
    row = np.searchsorted(tops, trace.cohort_clients, side="right") - 1
    column = np.searchsorted(lefts, rounds, side="right") - 1
    shape = len(tops) - 1, len(lefts) - 1
    counts = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1]).reshape(shape)
    out: Floats = counts / np.outer(np.diff(tops), np.diff(lefts))
    return out


def label_shares(trace: Trace) -> Floats:
    """(n, classes) the label distribution of each client; zeros for a client with no data."""
    counts = trace.label_histograms.astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    out: Floats = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return out


def label_distance(trace: Trace) -> Floats:
    """(T,) how far the labels of each cohort are from the federation's.

    The total variation distance (1/2) sum_c |q_c - p_c| between the labels of the cohort,
    each client counting by its weight, and of the federation, each counting by its
    importance: the share of labels that would have to change. NaN for an empty cohort.
    """
    shares = label_shares(trace)
    wanted = trace.importance @ shares
    weighted = trace.cohort_weights[:, None] * shares[trace.cohort_clients]
    sums = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(weighted, axis=0)])
    starts = np.concatenate([[0], trace.cohort_ends[:-1]])
    mix = sums[trace.cohort_ends] - sums[starts]  # (T, classes)
    total = mix.sum(axis=1, keepdims=True)
    mix = np.divide(mix, total, out=np.full_like(mix, np.nan), where=total > 1e-12)
    out: Floats = 0.5 * np.abs(mix - wanted).sum(axis=1)
    return out


def labels_over_rounds(comparison: Comparison) -> pd.DataFrame:
    """Label coverage and label distance, one row per scheme and round, means over seeds.

    ``coverage`` is the share of all classes that the cohort's clients hold. Empty where the
    task has no labels.
    """

    def table(traces: Sequence[Trace]) -> Columns | None:
        held = [trace for trace in traces if trace.label_histograms.shape[1]]
        if not held:
            return None
        length = min(trace.rounds for trace in held)
        coverage = [trace.classes[:length] / trace.label_histograms.shape[1] for trace in held]
        return {
            "round": np.arange(1, length + 1),
            "coverage": np.mean(coverage, axis=0),
            "distance": _mean_of_finite([label_distance(trace)[:length] for trace in held]),
        }

    return by_scheme(comparison, table, ("round", "coverage", "distance"))


def _mean_of_finite(rows: Sequence[Floats]) -> Floats:
    matrix = np.stack(rows)
    there = np.isfinite(matrix)
    counts = there.sum(axis=0)
    sums = np.where(there, matrix, 0).sum(axis=0)
    out: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return out


def worst_clients(comparison: Comparison, count: int = 10) -> pd.DataFrame:
    """The clients that each scheme's last model serves worst, means over seeds."""
    table = participation(comparison)
    table["rank"] = table.groupby("scheme")["loss"].rank(method="first", ascending=False)
    table = table[table["rank"] <= count].sort_values(["scheme", "rank"], kind="stable")
    one = on_one_division(comparison)
    firsts = {label: one.of(label)[0] for label in one.labels}
    held = {
        label: dict(zip(names(trace), held_labels(trace), strict=True))
        for label, trace in firsts.items()
    }
    table["labels"] = [
        held[scheme][client]
        for scheme, client in zip(table["scheme"], table["client"], strict=True)
    ]
    columns = ["scheme", "rank", "client", "loss", "size", "labels", "rounds"]
    return table[columns].astype({"rank": int}).reset_index(drop=True)


def held_labels(trace: Trace, most: int = 3) -> list[str]:
    """The commonest labels of each client in words, e.g. ``"7 (80 %), 1 (20 %)"``."""
    out = []
    for row in label_shares(trace):
        common = [c for c in np.argsort(-row, kind="stable")[:most] if row[c] > 0]
        more = ", …" if np.count_nonzero(row) > most else ""
        out.append(", ".join(f"{c} ({row[c]:.0%})" for c in common) + more)
    return out


def loss_quantiles(comparison: Comparison, points: int = 101) -> pd.DataFrame:
    """The losses of the clients under the last model, from best to worst, means over seeds."""
    grid = np.linspace(0, 1, points)

    def table(traces: Sequence[Trace]) -> Columns | None:
        loss = np.mean([np.quantile(trace.client_losses, grid) for trace in traces], axis=0)
        return {"clients": grid, "loss": loss} if np.isfinite(loss).all() else None

    return by_scheme(comparison, table, ("clients", "loss"))


class Unlike(NamedTuple):
    """How much clients differ: in labels (None: not known) and in size."""

    labels: float | None
    sizes: float


def heterogeneity(comparison: Comparison) -> Unlike:
    """The RMS Hellinger distance of labels and the Gini of sizes, on the first division."""
    trace = on_one_division(comparison).traces[0]
    counts = trace.label_histograms
    labels = rms_hellinger(counts) if counts.shape[1] and counts.sum() else None
    return Unlike(labels, gini(trace.sizes if trace.sizes.sum() else trace.importance))
