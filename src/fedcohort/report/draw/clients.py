"""The figures of the page that show clients: who took part, who was served worst, clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedcohort._internal.types import Array, Floats
from fedcohort.report.draw.drawing import ONE_OF, Drawing, PlotTrace, Switch, line, meta, name_of
from fedcohort.report.facts import clients
from fedcohort.report.facts.combine import parts
from fedcohort.report.facts.downsample import bucket_edges, means
from fedcohort.report.facts.measures import choosing, numbered

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

TABLE_ROWS = 400
IMPORTANCE = "How much each client counts in the average that the server wants."


def heat(comparison: Comparison) -> Drawing:
    """Client x round: who took part when."""
    labels = choosing(comparison)
    traces = []
    for index, label in enumerate(labels):
        trace = comparison.of(label)[0]
        picture = clients.participation_picture(trace)
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
    whole = clients.participation(comparison)
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
    table = clients.participation_histogram(comparison)
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
    table = clients.lorenz(comparison)
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
    table = clients.loss_quantiles(comparison)
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
        table=clients.worst_clients(comparison).head(TABLE_ROWS),
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
    table = pd.DataFrame({"client": clients.names(trace), "size": trace.sizes})
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
    shares = clients.label_shares(trace)
    picture = means(shares, 300, shares.shape[1])
    table["labels"] = clients.held_labels(trace)
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
