"""Figures 4.1 to 4.9: the federations, and the clusters that are found in them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fedcohort._internal.errors import FedcohortWarning
from fedcohort._internal.types import Array, Floats
from fedcohort.maths._distances import hellinger, rms
from fedcohort.schemes._data_groups import Grouping
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    CLASSES,
    FITS,
    LEAST,
    MANY,
    SETTINGS,
    Setting,
    readings,
)
from fedcohort_papers.reproduction import Claim, Computed, Drawn, Every, Own, Recipe, Results, Scale

METHODS = {"kmedoids": "K-Medoids", "dbscan": "DBSCAN", "optics": "OPTICS"}
NEAR = 0.03
"""Of the distance that the thesis names."""
ALONE = 0.3
"""The share of clients alone in their cluster, about."""


def compute(scale: Scale, seed: int) -> Computed:
    """Label shares, distances and clusters of one federation of each kind."""
    columns: dict[str, Array] = {}
    samples: dict[str, Any] = {}
    for setting in SETTINGS:
        loaded = setting.problem(least=scale.numbers.get("least", LEAST)).loaded()
        counts = loaded.division(seed).label_histograms(loaded.dataset.y_train, len(CLASSES))
        samples[f"distance, {setting}"] = rms(counts)
        if setting == MANY:
            columns, found = _pictures(counts)
            samples |= found
    return Computed(columns, samples)


def _pictures(counts: Array) -> tuple[dict[str, Array], dict[str, float]]:
    """Clients in the plane, their clusters, and how many each cluster has."""
    from sklearn.manifold import TSNE

    distances = hellinger(counts)
    plane = TSNE(metric="precomputed", init="random", random_state=0, perplexity=15)
    x, y = plane.fit_transform(distances).T
    shares = counts / counts.sum(axis=1, keepdims=True)
    columns: dict[str, Array] = {"x": x, "y": y}
    columns |= {f"class {k}": shares[:, k] for k in range(shares.shape[1])}
    samples: dict[str, float] = {}
    for method, title in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FedcohortWarning)  # K-Medoids may leave many alone
            groups = Grouping("labels", method, None, 16, "figure 4.4").grouped(counts)
        columns[title] = groups.labels
        samples[f"clients alone, {title}"] = 1 - groups.clustered_share
        if len(groups.ordering):
            columns["reachability"] = groups.reachability[groups.ordering]
    return columns, samples


def _points(title: str) -> Drawn:
    def draw(axes: Any, results: Results) -> None:
        found = results.columns
        several = np.bincount(found[title])[found[title]] > 1
        axes.scatter(found["x"][several], found["y"][several], c=found[title][several],
                     cmap="tab20", s=12)  # fmt: skip
        axes.scatter(found["x"][~several], found["y"][~several], c="0.6", s=8, marker="x")
        axes.set(title=f"clusters by {title} (crosses: alone)", xticks=[], yticks=[])

    return Drawn(draw)


def _shares(axes: Any, results: Results) -> None:
    found = results.columns
    bottom = np.zeros(len(found["x"]))
    for k in range(len(CLASSES)):
        row, shade = found[f"class {k}"], str(0.1 + 0.09 * k)
        edges = np.arange(len(bottom) + 1) - 0.5
        axes.stairs(bottom + row, edges, baseline=bottom, fill=True, color=shade)
        bottom = bottom + row
    axes.set(xlabel="client", ylabel="share of each class", ylim=(0, 1), title=str(MANY))


def _reachability(axes: Any, results: Results) -> None:
    heights = results.columns["reachability"]
    axes.bar(np.arange(len(heights)), np.where(np.isfinite(heights), heights, 1.0), 1.0)
    axes.set(xlabel="clients in the order of OPTICS", ylabel="reachability", title="OPTICS")


def _sizes(axes: Any, results: Results) -> None:
    for title in METHODS.values():
        sizes = np.sort(np.bincount(results.columns[title]))[::-1]
        axes.plot(np.arange(1, len(sizes) + 1), sizes, drawstyle="steps-mid", label=title)
    axes.set(xlabel="cluster", ylabel="clients", title="clients in every cluster")
    axes.legend()


def _distance(setting: Setting) -> Own:
    def found(results: Results) -> Floats:
        return results.values("computed", f"distance, {setting}").numbers

    what = f"the RMS Hellinger distance, {setting},"
    return Own(what, found, within=NEAR, printed=setting.distance)


def _alone(title: str) -> Own:
    def found(results: Results) -> Floats:
        return results.values("computed", f"clients alone, {title}").numbers

    return Own(f"the share of clients that {title} leaves alone", found, within=0.1, printed=ALONE)


FIGURE_4_1 = Recipe(
    "thesis-fig-4-1",
    "The federations of the thesis, and the clusters found in them",
    PAPER,
    where="Figures 4.1 to 4.9",
    compute=compute,
    scales={
        "quick": Scale(
            seeds=3,
            changed="3 federations instead of one; clients of 1 sample or more instead of 10.",
            numbers={"least": 1},
        ),
        "standard": Scale(seeds=10, changed="10 federations instead of one."),
        "full": Scale(seeds=10, changed="10 federations instead of one."),
    },
    claims=(
        Claim(
            "the federations have Hellinger distances of 90 %, 90 % and 80 %",
            "Figures 4.1 to 4.3",
            Every(*(_distance(setting) for setting in SETTINGS)),
            erratum="called an average, it is the root of the mean square",
            see="schemes/label-clusters.md#where-we-differ",
            kind="theory",
        ),
        Claim(
            "density-based clusterings leave about 30 % of the clients alone",
            "Section 4.2: approximately 30 %",
            Every(_alone("DBSCAN"), _alone("OPTICS")),
            erratum="what noise counts for is not printed",
            see="schemes/label-clusters.md#silhouettes-table-41",
            exploratory=FITS,
            kind="theory",
        ),
    ),
    panels=(
        Drawn(_shares),
        *(_points(title) for title in METHODS.values()),
        Drawn(_sizes),
        Drawn(_reachability),
    ),
    shows="Label shares of the clients of three federations; for K = 100, HD 0.9 the clients in "
    "the plane (t-SNE of Hellinger distances) coloured by cluster, for K-Medoids, DBSCAN and "
    "OPTICS, and how many clients each cluster has: several clusters of a single client.",
    readings=readings("least", "noise"),
)
