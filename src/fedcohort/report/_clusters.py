"""Clusters of clients: tables, figures and panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from fedcohort._internal.types import Array, Floats
from fedcohort.report._clients import scheme_switch
from fedcohort.report._figure import LIGHT, MARKERS, Drawing, PlotTrace, meta
from fedcohort.report._panel import Content, Panel, Shown

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

# Clusters that a scheme formed, as tables to be drawn: embedding, tree, sizes, strata.

EMBEDDED = 500
"""Above this many clients no distances are kept and nothing is embedded."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """What there is to draw of one scheme's clusters, from its first seed."""

    scheme: str
    seed: int
    sizes: pd.DataFrame
    """cluster, clients, samples."""
    embedding: pd.DataFrame | None = None
    """client, x, y, cluster: neighbours are near, distances across the picture mean little."""
    tree: Floats | None = None
    """(n - 1, 2, 4) the four corners of every joint of the dendrogram: x row, height row."""
    reachability: pd.DataFrame | None = None
    """place, client, reachability, cluster, in the order of OPTICS."""
    strata: pd.DataFrame = field(default_factory=pd.DataFrame)
    """stratum, clients, draws."""


def clusters(comparison: Comparison) -> tuple[Clusters, ...]:
    """The clusters of every scheme that has any."""
    firsts = [comparison.of(label)[0] for label in comparison.labels]
    return tuple(_clusters(trace) for trace in firsts if trace.pictures)


def _clusters(trace: Trace) -> Clusters:
    shown = dict(trace.pictures)
    labels = shown.get("labels")
    if labels is not None and labels.shape != (len(trace.sizes),):
        labels = None
    return Clusters(
        trace.label,
        trace.seed,
        _sizes(trace, labels),
        _embedding(shown.get("distances"), labels),
        _tree(shown.get("linkage")),
        _reachability(shown.get("reachability"), shown.get("ordering"), labels),
        _strata(shown.get("strata_sizes"), shown.get("allocation")),
    )


def _sizes(trace: Trace, labels: Array | None) -> pd.DataFrame:
    if labels is None:
        return pd.DataFrame(columns=["cluster", "clients", "samples"])
    table = pd.DataFrame({"cluster": labels.astype(int), "samples": trace.sizes.astype(float)})
    grouped = table[table["cluster"] >= 0].groupby("cluster")["samples"]  # -1: in none
    return pd.DataFrame({"clients": grouped.size(), "samples": grouped.sum()}).reset_index()


def _embedding(distances: Array | None, labels: Array | None) -> pd.DataFrame | None:
    """t-SNE of the distances; with fewer than 5 clients there is nothing to arrange."""
    if distances is None or distances.ndim != 2 or not 5 <= len(distances) <= EMBEDDED:
        return None
    n = len(distances)
    if distances.shape != (n, n) or not np.isfinite(distances).all():
        return None
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    symmetric = np.maximum(0.0, (distances + distances.T) / 2)
    np.fill_diagonal(symmetric, 0.0)
    embed = TSNE(
        metric="precomputed",
        init="random",
        perplexity=min(30.0, (n - 1) / 3),
        max_iter=500,
        method="exact" if n <= 150 else "barnes_hut",
        random_state=0,  # the same picture every time
    )
    with threadpool_limits(1):  # threads that wait for each other take longer than one
        places = embed.fit_transform(symmetric)
    cluster = np.zeros(n, dtype=int) if labels is None else labels.astype(int)
    return pd.DataFrame(
        {"client": np.arange(n), "x": places[:, 0], "y": places[:, 1], "cluster": cluster}
    )


def _tree(linkage: Array | None) -> Floats | None:
    if linkage is None or linkage.ndim != 2 or linkage.shape[1] != 4 or len(linkage) < 1:
        return None
    from scipy.cluster.hierarchy import dendrogram, is_valid_linkage

    if not is_valid_linkage(np.asarray(linkage, dtype=np.float64)):
        return None
    drawn = dendrogram(linkage, no_plot=True)
    corners = np.stack([np.array(drawn["icoord"]), np.array(drawn["dcoord"])], axis=1)
    corners[:, 0] = (corners[:, 0] - 5) / 10  # scipy puts leaf k at 10 k + 5
    return corners


def _reachability(
    reach: Array | None, order: Array | None, labels: Array | None
) -> pd.DataFrame | None:
    if reach is None or order is None or reach.shape != order.shape:
        return None
    order = order.astype(int)
    cluster = np.zeros(len(order), dtype=int) if labels is None else labels.astype(int)
    return pd.DataFrame(
        {
            "place": np.arange(len(order)),
            "client": order,
            "reachability": reach[order],
            "cluster": cluster[order],
        }
    )


def _strata(sizes: Array | None, draws: Array | None) -> pd.DataFrame:
    if sizes is None:
        return pd.DataFrame(columns=["stratum", "clients", "draws"])
    given = np.full(len(sizes), np.nan) if draws is None else draws
    return pd.DataFrame({"stratum": np.arange(len(sizes)), "clients": sizes, "draws": given})


# The figures of the page that show clusters, for the schemes that form any.


def cluster_figures(comparison: Comparison) -> tuple[Drawing, ...]:
    """Embedding, tree, sizes and strata of the schemes that form clusters."""
    found = clusters(comparison)
    drawings = (
        _draw_embedding(found),
        _draw_tree(found),
        _draw_reachability(found),
        _draw_sizes(found),
        _draw_strata(found),
    )
    return tuple(drawing for drawing in drawings if drawing.traces)


def _draw_embedding(found: Sequence[Clusters]) -> Drawing:
    traces: list[PlotTrace] = []
    have = [item for item in found if item.embedding is not None]
    for index, item in enumerate(have):
        for cluster, rows in item.embedding.groupby("cluster"):  # type: ignore[union-attr]
            traces.append(
                {
                    "type": "scatter", "mode": "markers", "name": f"Cluster {cluster}",
                    "x": rows["x"].to_numpy(), "y": rows["y"].to_numpy(),
                    "customdata": rows["client"].to_numpy(),
                    "marker": {"size": 9, "symbol": MARKERS[int(cluster) % len(MARKERS)]},
                    "hovertemplate": "Client %{customdata}<extra>%{fullData.name}</extra>",
                    "meta": meta("cluster", None, max(0, int(cluster)) % len(LIGHT), of=str(index)),
                }
            )  # fmt: skip
    blank = {"showticklabels": False, "zeroline": False}
    return Drawing(
        "embedding",
        "Clients by similarity (t-SNE)",
        "Clients that the scheme sees as alike lie near each other; symbol and colour are its "
        "clusters. Only neighbourhoods mean something here, not distances across the picture.",
        tuple(traces),
        {"xaxis": blank, "yaxis": blank, "showlegend": True},
        {},
        (scheme_switch([item.scheme for item in have]),),
        have[0].embedding if have else None,
        _of_all((item.scheme, item.embedding) for item in have),
    )


def _draw_tree(found: Sequence[Clusters]) -> Drawing:
    traces: list[PlotTrace] = []
    have = [item for item in found if item.tree is not None]
    for index, item in enumerate(have):
        corners: Any = item.tree
        gap = np.full((len(corners), 2, 1), np.nan)  # lifts the pen between joints
        path = np.concatenate([corners, gap], axis=2)
        traces.append(
            {
                "type": "scatter", "mode": "lines", "hoverinfo": "skip",
                "x": path[:, 0].ravel(), "y": path[:, 1].ravel(), "line": {"width": 1.2},
                "meta": meta("plain", None, of=str(index)),
            }
        )  # fmt: skip
    return Drawing(
        "tree",
        "The tree of clusters",
        "How clients were joined, the most alike first; the height of a joint is the distance "
        "at which two groups became one.",
        tuple(traces),
        {
            "xaxis": {"title": {"text": "Clients, in the order of the tree"},
                      "showticklabels": False},
            "yaxis": {"title": {"text": "Distance"}, "rangemode": "tozero"},
        },
        {},
        (scheme_switch([item.scheme for item in have]),),
        whole=_of_all((item.scheme, _joints(item.tree)) for item in have),
    )  # fmt: skip


def _draw_reachability(found: Sequence[Clusters]) -> Drawing:
    have = [item for item in found if item.reachability is not None]
    traces: list[PlotTrace] = []
    for index, item in enumerate(have):
        for cluster, rows in item.reachability.groupby("cluster"):  # type: ignore[union-attr]
            finite = rows[np.isfinite(rows["reachability"])]
            traces.append(
                {
                    "type": "bar", "name": "Noise" if cluster < 0 else f"Cluster {cluster}",
                    "x": finite["place"].to_numpy(), "y": finite["reachability"].to_numpy(),
                    "customdata": finite["client"].to_numpy(),
                    "hovertemplate": "Client %{customdata}: %{y:.3g}"
                                     "<extra>%{fullData.name}</extra>",
                    "meta": meta("cluster", None, max(0, int(cluster)) % len(LIGHT), of=str(index)),
                }
            )  # fmt: skip
    return Drawing(
        "reachability",
        "Reachability (OPTICS)",
        "Clients in the order in which they were visited; valleys are clusters, peaks separate "
        "them.",
        tuple(traces),
        {"xaxis": {"title": {"text": "Place in the order"}},
         "yaxis": {"title": {"text": "Reachability"}}, "showlegend": True, "bargap": 0},
        {},
        (scheme_switch([item.scheme for item in have]),),
        have[0].reachability if have else None,
        _of_all((item.scheme, item.reachability) for item in have),
    )  # fmt: skip


def _draw_sizes(found: Sequence[Clusters]) -> Drawing:
    have = [item for item in found if len(item.sizes)]
    traces = [
        _bars("Clients", item.sizes["cluster"], item.sizes["clients"], "cluster", index)
        for index, item in enumerate(have)
    ]
    return Drawing(
        "sizes",
        "Sizes of the clusters",
        "How many clients each cluster has.",
        tuple(traces),
        {"xaxis": {"title": {"text": "Cluster"}, "type": "category"},
         "yaxis": {"title": {"text": "Clients"}}},
        {},
        (scheme_switch([item.scheme for item in have]),),
        have[0].sizes if have else None,
        _of_all((item.scheme, item.sizes) for item in have),
    )  # fmt: skip


def _draw_strata(found: Sequence[Clusters]) -> Drawing:
    have = [item for item in found if len(item.strata)]
    traces = []
    for index, item in enumerate(have):
        table = item.strata
        traces.append(_bars("Clients", table["stratum"], table["clients"], "stratum", index))
        if np.isfinite(table["draws"].to_numpy(dtype=np.float64)).all():
            draws = _bars("Draws", table["stratum"], table["draws"], "stratum", index)
            draws["marker"] = {"pattern": {"shape": "/"}}
            draws["meta"] = meta("bar2", None, of=str(index))
            traces.append(draws)
    return Drawing(
        "strata",
        "Strata and how many are drawn from each",
        "Plain bars are the clients of a stratum, hatched bars what is drawn from it per round.",
        tuple(traces),
        {"xaxis": {"title": {"text": "Stratum"}, "type": "category"}, "showlegend": True,
         "barmode": "group"},
        {},
        (scheme_switch([item.scheme for item in have]),),
        have[0].strata if have else None,
        _of_all((item.scheme, item.strata) for item in have),
    )  # fmt: skip


def _of_all(tables: Iterable[tuple[str, Any]]) -> pd.DataFrame | None:
    """The tables of all schemes as one, that says whose a row is."""
    named = [table.assign(scheme=scheme) for scheme, table in tables]
    if not named:
        return None
    whole = pd.concat(named, ignore_index=True)
    return whole[["scheme", *whole.columns.drop("scheme")]]


def _joints(corners: Any) -> pd.DataFrame:
    """A row per joint of a tree: between which places, from which heights up to which."""
    places, heights = corners[:, 0], corners[:, 1]  # (n - 1, 4) each
    return pd.DataFrame(
        {
            "left": places[:, 0],
            "right": places[:, 3],
            "height": heights[:, 1],
            "left_from": heights[:, 0],
            "right_from": heights[:, 3],
        }
    )


def _bars(name: str, x: Array, y: Array, kind: str, index: int) -> PlotTrace:
    return {
        "type": "bar",
        "name": name,
        "x": np.asarray(x),
        "y": np.asarray(y),
        "hovertemplate": f"{kind} %{{x}}: %{{y}}<extra>%{{fullData.name}}</extra>",
        "meta": meta("bar", None, of=str(index)),
    }


# What a scheme knows of its clients.


@dataclass(frozen=True)
class ClusterPanel(Panel):
    """Clusters and strata that schemes draw from."""

    name: ClassVar[str] = "clusters"
    title: ClassVar[str] = "Clusters"
    place: ClassVar[float] = 90

    def content(self, shown: Shown) -> Content:
        return (cluster_figures(shown.comparison),)
