"""Measures of a trace, and curves with fewer points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort._internal.errors import UnknownName
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._statistics import rolling, window
from fedcohort.server._trace import curve_names
from fedcohort.simulation._storage import VALIDATION

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

# What is measured, and how a curve over rounds is smoothed.


@dataclass(frozen=True)
class Measure:
    """A curve of a trace: its field or metric, its name in words, and which way is better."""

    name: str
    words: str
    higher: bool
    percent: bool
    metric: bool = False
    """Whether it is a metric that clients or the server sent, under a name of their own."""

    @property
    def title(self) -> str:
        """The words at the beginning of a line; the names of others are left as they are."""
        foreign = self.metric and self.name not in MEASURED_HERE
        return self.words if foreign else self.words[0].upper() + self.words[1:]

    @property
    def validated(self) -> Measure:
        """The same where validation data stood in place of the test set.

        >>> ACCURACY.validated.words
        'validation accuracy'
        """
        return replace(self, words=self.words.replace("test", "validation"))

    def of(self, trace: Trace) -> Floats:
        """(T,) the values in a run."""
        if not self.metric:
            return getattr(trace, self.name)  # type: ignore[no-any-return]
        return trace.metrics.get(self.name, np.full(trace.rounds, np.nan))

    def among(self, traces: Sequence[Trace]) -> bool:
        """Whether any of these runs has it."""
        return any(np.isfinite(self.of(trace)).any() for trace in traces)

    def text(self, value: float) -> str:
        """A value as people read it.

        >>> ACCURACY.text(0.9132), TRAIN_LOSS.text(0.123456)
        ('91.3 %', '0.1235')
        """
        if not np.isfinite(value):
            return "–"
        return f"{100 * value:.1f} %" if self.percent else f"{value:.4g}"

    def gap(self, value: float) -> str:
        """A difference of two values, with its sign: on which side of 0 it is can be seen.

        >>> ACCURACY.gap(-0.0123), ACCURACY.gap(-0.0003), ACCURACY.gap(-1e-9)
        ('-1.2', '-0.03', '+0.0')
        """
        if not np.isfinite(value):
            return "–"
        if not self.percent:
            return f"{value + 0.0:+.3g}"  # no zero has a minus
        points = 100 * value
        digits = next((digits for digits in (1, 2) if round(points, digits)), None)
        return "+0.0" if digits is None else f"{points:+.{digits}f}"


ACCURACY = Measure("accuracy", "test accuracy", higher=True, percent=True)
TEST_LOSS = Measure("test_loss", "test loss", higher=False, percent=False)
TRAIN_LOSS = Measure("train_loss", "training loss", higher=False, percent=False)
MEASURES = (ACCURACY, TEST_LOSS, TRAIN_LOSS)

_OWN = (
    Measure("client_accuracy", "accuracy on clients' own test sets", True, True, metric=True),
    Measure("client_worst_tenth", "accuracy of the worst tenth of clients", True, True, True),
    Measure("client_spread", "spread of accuracy over clients", False, True, metric=True),
    Measure("f1", "macro F1", True, True, metric=True),
    Measure("perplexity", "perplexity", False, False, metric=True),
)
MEASURED_HERE = {measure.name: measure for measure in _OWN}
"""Metrics that the simulator takes itself, see `fedcohort.simulation._measures`."""

LINES = {"rolling": "Rolling mean", "raw": "Raw", "best": "Running best"}
"""The three ways to draw a curve."""


HIGHER = ("acc", "auc", "f1", "precision", "recall", "score", "bleu")
LOWER = ("loss", "error", "err", "mse", "mae", "nll", "perplexity", "wer")
"""What the names of metrics contain of which more, or less, is better."""
METRICS = 24
"""A report shows at most so many metrics of other names: names come from clients."""
SENT_BY = {"train": "clients in training", "evaluate": "clients", "server": "the server"}


def measured(comparison: Comparison) -> tuple[Measure, ...]:
    """The measures that any run of a comparison has, the one that decides first.

    A metric of unknown meaning never decides: then the training loss does, be there one or not.
    Where settings were being chosen, none of them is of the test set, and they say so.
    """
    found = [measure for measure in MEASURES if measure.among(comparison.traces)]
    known, others = _metrics(comparison.traces)
    every = tuple([*found, *known] or [TRAIN_LOSS]) + tuple(others)
    if VALIDATION not in comparison.settings:
        return every
    return tuple(measure.validated for measure in every)


def _metrics(traces: Sequence[Trace]) -> tuple[list[Measure], list[Measure]]:
    """Metrics under names of their own: those of which we know which way is better, and others."""
    taken = {name for trace in traces for name in curve_names(trace.metrics)}
    names = sorted({name for trace in traces for name in trace.metrics if name not in taken})
    known: list[Measure] = []
    others: list[Measure] = []
    for name in names:
        if name in MEASURED_HERE:
            continue
        source, _, own = name.rpartition("/")
        words = f"{own} ({SENT_BY[source]})" if source in SENT_BY else name
        lower, higher = (any(w in own.lower() for w in part) for part in (LOWER, HIGHER))
        measure = Measure(name, words, higher=not lower, percent=False, metric=True)
        if measure.among(traces):
            (known if lower or higher else others).append(measure)
    ours = [measure for measure in MEASURED_HERE.values() if measure.among(traces)]
    known = [*ours, *known][:METRICS]
    return known, others[: METRICS - len(known)]


def choosing(comparison: Comparison) -> tuple[str, ...]:
    """The schemes in whose runs anybody took part: all but centralised training.

    Where nobody ever took part in anything, all of them.
    """
    labels = tuple(
        label
        for label in comparison.labels
        if any(len(trace.cohort_clients) for trace in comparison.of(label))
    )
    return labels or comparison.labels


Columns = Mapping[str, Any]
"""A table by the names of its columns."""


def by_scheme(
    comparison: Comparison,
    table: Callable[[Sequence[Trace]], Columns | None],
    columns: Sequence[str] = (),
    labels: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The table of every scheme that has one, below one another, its name in the first column.

    ``labels`` are those in whose runs anybody took part, by default; ``columns`` are those of a
    table without a row.
    """
    found = []
    for label in choosing(comparison) if labels is None else labels:
        own = table(comparison.of(label))
        if own is not None:
            found.append(pd.DataFrame({"scheme": label, **own}))
    return (
        pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["scheme", *columns])
    )


def numbered(comparison: Comparison) -> list[tuple[int, str]]:
    """The same with the position of each among all, which decides its colour."""
    wanted = set(choosing(comparison))
    return [(i, label) for i, label in enumerate(comparison.labels) if label in wanted]


def stacked(traces: Sequence[Trace], measure: Measure) -> tuple[Floats, Floats]:
    """The evaluated rounds (E,), counted from 1, and the curves of the seeds (s, E)."""
    length = min(trace.rounds for trace in traces)
    curves = np.stack([measure.of(trace)[:length] for trace in traces])
    there = np.flatnonzero(np.isfinite(curves).all(axis=0))
    return (there + 1).astype(np.float64), curves[:, there]


def drawn(curves: Floats, line: str, measure: Measure) -> Floats:
    """Curves (s, E) as they are drawn: raw, as a rolling mean, or the best so far.

    >>> drawn(np.array([[0.1, 0.3, 0.2]]), "best", ACCURACY).tolist()
    [[0.1, 0.3, 0.3]]
    """
    if line == "raw":
        return curves
    if line == "rolling":
        return rolling(curves, window(curves.shape[-1]))
    if line == "best":
        best = np.maximum if measure.higher else np.minimum
        out: Floats = best.accumulate(curves, axis=-1)
        return out
    raise UnknownName("way to draw a curve", line, LINES)


def final(curves: Floats) -> Floats:
    """(s,) the level reached: the mean over the last tenth of the evaluations, at least one.

    One evaluation of a run that chooses few clients is noisy; a tenth of them is not.
    """
    if curves.shape[-1] == 0:
        return np.full(curves.shape[0], np.nan)
    tail = max(1, curves.shape[-1] // 10)
    out: Floats = curves[..., -tail:].mean(axis=-1)
    return out


def best(curves: Floats, measure: Measure) -> Floats:
    """(s,) the best value ever seen."""
    if curves.shape[-1] == 0:
        return np.full(curves.shape[0], np.nan)
    out: Floats = curves.max(axis=-1) if measure.higher else curves.min(axis=-1)
    return out


# Fewer points that look the same: what stands out is kept, always.


def keep_extremes(values: Floats, limit: int) -> Ints:
    """Which of E points to draw: at most about ``limit``, with every bucket's extremes.

    The points are cut into buckets of equal length; of each the lowest and the highest stay,
    as do the first and the last point of all. A spike of one round is never lost.

    >>> spike = np.zeros(1_000)
    >>> spike[517] = 1.0
    >>> kept = keep_extremes(spike, 50)
    >>> 517 in kept, len(kept) <= 50
    (True, True)
    """
    count = len(values)
    if count <= limit:
        return np.arange(count)
    buckets = max(1, (limit - 2) // 2)
    width = -(-count // buckets)
    padded = np.full(buckets * width, np.nan)
    padded[:count] = values
    rows = padded.reshape(buckets, width)
    starts = width * np.arange(buckets)
    lowest = starts + np.where(np.isnan(rows), np.inf, rows).argmin(axis=1)
    highest = starts + np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1)
    kept = np.unique(np.concatenate([[0, count - 1], lowest, highest]))
    kept = kept[kept < count]
    out: Ints = kept[np.isfinite(values[kept]) | (kept == 0) | (kept == count - 1)]
    return out


def envelope(x: Floats, low: Floats, high: Floats, limit: int) -> tuple[Floats, Floats, Floats]:
    """A band with fewer points that still covers all of it: lowest low, highest high."""
    count = len(x)
    if count <= limit:
        return x, low, high
    starts = bucket_edges(count, limit)[:-1]
    middle = np.add.reduceat(x, starts) / np.diff(bucket_edges(count, limit))
    middle[0], middle[-1] = x[0], x[-1]
    return middle, np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)


def bucket_edges(count: int, buckets: int) -> Ints:
    """(buckets + 1,) where each of nearly equal buckets begins, and the end.

    >>> bucket_edges(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    buckets = min(buckets, count)
    return np.arange(buckets + 1) * count // buckets


def means(matrix: Floats, rows: int, columns: int) -> Floats:
    """A picture of at most rows x columns cells: the mean of what each cell covers."""
    tops, lefts = (
        bucket_edges(length, limit)
        for length, limit in zip(matrix.shape, (rows, columns), strict=True)
    )
    sums = np.add.reduceat(np.add.reduceat(matrix, tops[:-1], axis=0), lefts[:-1], axis=1)
    out: Floats = sums / np.outer(np.diff(tops), np.diff(lefts))
    return out
