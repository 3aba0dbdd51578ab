"""Clusters that a scheme formed, as tables to be drawn: embedding, tree, sizes, strata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedcohort._internal.types import Array, Floats

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

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
