"""Clients: participation, losses and labels, with figures and panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from fedcohort._internal.types import Array, Floats
from fedcohort.data.heterogeneity import gini, rms_hellinger
from fedcohort.report._figure import ONE_OF, Drawing, PlotTrace, Switch, line, meta, name_of
from fedcohort.report._measures import Columns, bucket_edges, by_scheme, choosing, means, numbered
from fedcohort.report._panel import Content, Panel, Shown, box, which_division
from fedcohort.report._runs import on_one_division, parts

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

# Whom a scheme chose and whom it left out: tables of participation, labels and losses.


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


# The figures of the page that show clients: who took part, who was served worst, clusters.

TABLE_ROWS = 400
IMPORTANCE = "How much each client counts in the average that the server wants."


def heat(comparison: Comparison) -> Drawing:
    """Client x round: who took part when."""
    labels = choosing(comparison)
    traces = []
    for index, label in enumerate(labels):
        trace = comparison.of(label)[0]
        picture = participation_picture(trace)
        lefts = bucket_edges(trace.rounds, picture.shape[1])[:-1] + 1
        tops: Sequence[str | int] = bucket_edges(len(trace.importance), len(picture))[:-1].tolist()
        if trace.ids and len(tops) == len(trace.ids):
            tops = [name_of(str(name)) for name in trace.ids]
        whole = picture.shape == (len(trace.importance), trace.rounds)
        traces.append(
            {
                "type": "heatmap",
                "x": lefts,
                "y": np.array(tops),
                "z": _percent(picture),
                "zmin": 0,
                "zmax": 100 if whole else max(1, int(_percent(picture).max())),
                "showscale": not whole,
                "colorbar": {"title": {"text": "% took part"}, "thickness": 12},
                "hovertemplate": "Client %{y}, round %{x}: %{z} %<extra></extra>",
                "meta": meta("heat", None, of=str(index)),
            }
        )
    whole = participation(comparison)
    counts = whole[["scheme", "client", "rounds", "fewest", "most"]]
    return Drawing(
        "participation",
        "Who took part, round by round",
        "One row per client, one column per round, of the first seed; a filled cell took part. "
        "In long runs a cell covers several rounds or clients and shows their share. Stripes are "
        "habits; an empty row is a client that was left out.",
        tuple(traces),
        {
            "xaxis": {"title": {"text": "Round"}},
            "yaxis": {"title": {"text": "Client"}, "ticklabelstandoff": 4},
            "height": 420,
        },
        {},
        (scheme_switch(labels),),
        counts.head(TABLE_ROWS),
        whole,
    )


def histogram(comparison: Comparison) -> Drawing:
    """How many clients took part how often."""
    table = participation_histogram(comparison)
    traces = []
    for index, label in numbered(comparison):
        rows = _around_what_is_there(table[table["scheme"] == label])
        middle = (rows["from"] + rows["to"]).to_numpy() / 2
        span = rows["from"].astype(str) + " to " + rows["to"].astype(str)
        drawn = line(index, label, middle, rows["clients"].to_numpy(),
                     "%{customdata} rounds<br>%{y:.1f} clients")  # fmt: skip
        drawn["customdata"] = span.tolist()
        drawn["line"]["shape"] = "hvh"
        traces.append(drawn)
    return Drawing(
        "histogram",
        "How often clients took part",
        "How many clients (mean over seeds) took part in how many rounds. A narrow hill treats "
        "clients alike; a long tail has favourites.",
        tuple(traces),
        {
            "xaxis": {"title": {"text": "Rounds taken part in"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "Clients"}, "rangemode": "tozero"},
        },
        table=table[table["clients"] > 0].head(TABLE_ROWS),
        whole=table,
    )


def _around_what_is_there(rows: pd.DataFrame) -> pd.DataFrame:
    """The bins of a scheme from one before the first that is not empty to one after the last."""
    there = np.flatnonzero(rows["clients"].to_numpy() > 0)
    return rows.iloc[max(0, there[0] - 1) : there[-1] + 2]


def draw_lorenz(comparison: Comparison) -> Drawing:
    """Lorenz curves of the participation."""
    table = lorenz(comparison)
    traces: list[PlotTrace] = [
        {
            "type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip",
            "line": {"color": "#777777", "width": 1.5, "dash": "dot"},
            "meta": meta("guide"),
        }
    ]  # fmt: skip
    for index, label in numbered(comparison):
        rows = table[table["scheme"] == label]
        hover = "The least chosen %{x:.0%} of clients<br>have %{y:.1%} of all participations"
        x, y = rows["clients"].to_numpy(), rows["participations"].to_numpy()
        traces.append(line(index, label, x, y, hover))
    fairness = [
        (label, float(np.mean([t.jain for t in runs])), float(np.mean([t.gini for t in runs])))
        for label in choosing(comparison)
        for runs in (comparison.of(label),)
    ]
    return Drawing(
        "lorenz",
        "How evenly the work is spread (Lorenz curve)",
        "The share of all participations that the least chosen clients have. The dotted diagonal "
        "is perfect equality (Gini 0, Jain 1); the deeper the curve, the more a few clients do.",
        tuple(traces),
        {
            "xaxis": {
                "title": {"text": "Share of clients"},
                "tickformat": ".0%",
                "range": [0, 1.01],
            },
            "yaxis": {
                "title": {"text": "Share of participations"},
                "tickformat": ".0%",
                "range": [0, 1.02],
            },
        },
        table=pd.DataFrame(fairness, columns=["scheme", "Jain", "Gini"]),
        whole=table,
    )


def losses(comparison: Comparison) -> Drawing:
    """The loss of every client under the last model, from best to worst served."""
    table = loss_quantiles(comparison)
    traces = []
    for index, label in numbered(comparison):
        rows = table[table["scheme"] == label]
        if rows.empty:
            continue
        hover = "%{x:.0%} of clients have a loss<br>of at most %{y:.4g}"
        traces.append(
            line(index, label, rows["clients"].to_numpy(), rows["loss"].to_numpy(), hover)
        )
    return Drawing(
        "losses",
        "The last model, client by client",
        "The training loss of the clients from the best to the worst served (mean over seeds). "
        "The right edge is the worst client: a scheme may win on average and lose there.",
        tuple(traces),
        {
            "xaxis": {"title": {"text": "Share of clients"}, "tickformat": ".0%"},
            "yaxis": {"title": {"text": "Client's loss"}, "rangemode": "tozero"},
        },
        table=worst_clients(comparison).head(TABLE_ROWS),
        whole=table,
    )


def federations(comparison: Comparison) -> tuple[Drawing, ...]:
    """The federation of every problem: one, unless runs of several are shown together."""
    if len(parts(comparison)) == 1:
        return (federation(comparison),)
    return tuple(
        replace(drawing, key=f"federation-{i}", title=f"{name}: {drawing.title}")
        for i, (name, drawing) in enumerate(
            (name, federation(part)) for name, part in parts(comparison)
        )
    )


def federation(comparison: Comparison) -> Drawing:
    """Which client holds which labels, or how much data where there are no labels."""
    trace = comparison.traces[0]
    table = pd.DataFrame({"client": names(trace), "size": trace.sizes})
    if trace.label_histograms.shape[1] == 0:
        y: Array = trace.sizes
        what, says = "samples", "How many samples each client holds."
        if not y.any():  # nobody was asked
            y, what, says = trace.importance, "importance", IMPORTANCE
        named = np.array([name_of(str(name)) for name in trace.ids], dtype=object)
        x = named if trace.ids else table["client"].to_numpy()
        bars = {"type": "bar", "x": x, "y": y, "meta": meta("bar"),
                "hovertemplate": "Client %{x}: %{y} " + what + "<extra></extra>"}  # fmt: skip
        layout = {
            "xaxis": {"title": {"text": "Client"}, "type": "category" if trace.ids else "linear"},
            "yaxis": {"title": {"text": what.capitalize()}},
        }
        table["importance"] = trace.importance
        return Drawing("federation", "The federation", says, (bars,), layout,
                       table=table.head(TABLE_ROWS), whole=table)  # fmt: skip
    shares = label_shares(trace)
    picture = means(shares, 300, shares.shape[1])
    table["labels"] = held_labels(trace)
    return Drawing(
        "federation",
        "The federation: who holds which labels",
        "One column per client, one row per class; the stronger the colour, the larger the share "
        "of the client's samples. In a uniform picture clients are alike; isolated cells are "
        "clients that know one class only.",
        (
            {
                "type": "heatmap",
                "x": bucket_edges(len(shares), 300)[:-1],
                "y": np.arange(shares.shape[1]),
                "z": _percent(picture.T),
                "zmin": 0,
                "zmax": 100,
                "colorbar": {"title": {"text": "% of client"}, "thickness": 12},
                "hovertemplate": "Client %{x}, class %{y}: %{z} %<extra></extra>",
                "meta": meta("heat"),
            },
        ),
        {
            "xaxis": {"title": {"text": "Client"}},
            "yaxis": {"title": {"text": "Class"}, "dtick": 1 if shares.shape[1] <= 20 else None},
            "height": 380,
        },
        table=table.head(TABLE_ROWS),
        whole=table,
    )


def scheme_switch(labels: Sequence[str]) -> Switch:
    """A choice of one scheme."""
    return Switch(ONE_OF, "Scheme", tuple((str(i), label) for i, label in enumerate(labels)))


def _percent(shares: Floats) -> Array:
    return np.round(100 * shares).astype(np.uint8)


# Who took part, and how often.


@dataclass(frozen=True)
class Participation(Panel):
    """Rounds of every client, and how evenly they are spread."""

    name: ClassVar[str] = "clients"
    title: ClassVar[str] = "Who took part"
    place: ClassVar[float] = 30

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        pair = histogram(c), draw_lorenz(c)
        return (*which_division(c), heat(c), pair)


# Whom the last model serves worst.


@dataclass(frozen=True)
class WorstClients(Panel):
    """Losses of the last model client by client."""

    name: ClassVar[str] = "worst"
    title: ClassVar[str] = "Worst clients"
    place: ClassVar[float] = 70

    def content(self, shown: Shown) -> Content:
        comparison = shown.comparison
        table = worst_clients(comparison, 5)
        if table.empty:  # nobody evaluated the last model client by client
            return ()
        last = box(
            "The five clients served worst, scheme by scheme",
            "Losses of the last model on the clients' own data, mean over seeds.",
            table.rename(columns={"rounds": "rounds taken part in"}),
        )
        return (*which_division(comparison), losses(comparison), last)

    def further(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        return {"worst_clients": worst_clients(shown.comparison)}
