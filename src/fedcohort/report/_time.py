"""Simulated time: figures and panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedcohort.report import _curves, _spent
from fedcohort.report._curves import SMOOTH_OR_RAW, every
from fedcohort.report._figure import Drawing, Switch, line, name_of
from fedcohort.report._measures import measured, numbered
from fedcohort.report._panel import Content, Panel, Shown, which_division

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

# The figures about time: how good the model was when, and how long clients take.


def progress_in_time(comparison: Comparison) -> tuple[Drawing, ...]:
    """The level reached against simulated time; nothing without a virtual clock."""
    measure = measured(comparison)[0]
    if not _spent.clocked(comparison) or not measure.among(comparison.traces):
        return ()
    form = ":.2%" if measure.percent else ":.4g"
    hover = f"%{{x:.4s}} s<br>{name_of(measure.words)} %{{y{form}}}"
    traces = []
    for way, _ in SMOOTH_OR_RAW.options:
        table = _curves.curves(comparison, measure, way).dropna(subset=["time"])
        for index, label in enumerate(comparison.labels):
            rows = table[table["scheme"] == label]
            if len(rows):
                x, y = rows["time"].to_numpy(), rows["mean"].to_numpy()
                traces.append(line(index, label, x, y, hover, line=way))
    ticks = ".0%" if measure.percent else "~g"
    return (
        Drawing(
            "time",
            f"{measure.title} in simulated time",
            "By the virtual clock: a round takes as long as the slowest device that counts, with "
            "download, training, upload and the scheme's questions. Means over runs: of every "
            "round how good the model was after it, against when that was.",
            tuple(traces),
            {
                "xaxis": {"title": {"text": "Simulated time in seconds"}, "rangemode": "tozero"},
                "yaxis": {"title": {"text": name_of(measure.title)}, "tickformat": ticks},
            },
            {},
            (SMOOTH_OR_RAW,),
            every(table[["scheme", "round", "time", "mean"]]),
            table,
        ),
    )


def latencies(comparison: Comparison) -> tuple[Drawing, ...]:
    """How long clients take, the fastest first; nothing where it was not measured."""
    table = _spent.latencies(comparison)
    if table.empty:
        return ()
    purposes = list(dict.fromkeys(table["purpose"]))
    traces = []
    for purpose in purposes:
        for index, label in numbered(comparison):
            rows = table[(table["scheme"] == label) & (table["purpose"] == purpose)]
            if len(rows):
                y = np.sort(rows["seconds"].to_numpy(dtype=np.float64))
                x = (np.arange(len(y)) + 1) / len(y)
                hover = "%{x:.0%} of the clients take<br>at most %{y:.3s} s"
                traces.append(line(index, label, x, np.maximum(y, 1e-6), hover, purpose=purpose))
    return (
        Drawing(
            "latencies",
            "How long clients take",
            "From when a client was asked to when its answer was there, as the server measured it "
            "and smoothed it over rounds: of the clients that were ever asked, the fastest first.",
            tuple(traces),
            {
                "xaxis": {"title": {"text": "Share of the clients"}, "tickformat": ".0%"},
                "yaxis": {"title": {"text": "Seconds"}, "type": "log"},
            },
            {},
            (Switch("purpose", "Of", tuple((p, p.replace("_", " ")) for p in purposes)),),
            table.groupby(["scheme", "purpose"], sort=False)["seconds"]
            .agg(["size", "min", "median", "max"])
            .reset_index()
            .rename(columns={"size": "clients", "min": "fastest", "max": "slowest"}),
            table,
        ),
    )


# How long it takes.


@dataclass(frozen=True)
class Time(Panel):
    """Progress by the virtual clock, and how long clients take."""

    name: ClassVar[str] = "time"
    title: ClassVar[str] = "Time"
    place: ClassVar[float] = 15

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        takes = latencies(c)
        return (*progress_in_time(c), *(which_division(c) if takes else ()), *takes)
