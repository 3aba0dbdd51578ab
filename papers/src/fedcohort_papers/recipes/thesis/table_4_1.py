"""Table 4.1: how well clients cluster by P(y) and P(X|y), silhouettes of three clusterings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort._internal.errors import FedcohortWarning
from fedcohort._internal.random import stream
from fedcohort.maths._distances import rms
from fedcohort.schemes._data_groups import Grouping, distances
from fedcohort_papers.recipes.thesis import PAPER
from fedcohort_papers.recipes.thesis._federations import (
    DATA,
    FITS,
    LEAST,
    SETTINGS,
    Setting,
    readings,
)
from fedcohort_papers.recipes.thesis._medoids import searched
from fedcohort_papers.reproduction import (
    COMPUTED,
    Bars,
    Claim,
    Close,
    Computed,
    Every,
    Recipe,
    Scale,
    difference,
)

METHODS = ("kmedoids", "dbscan", "optics")
BINS = 16
PRINTED: Mapping[str, tuple[tuple[float | None, ...], ...]] = {
    "labels": ((0.452, 0.438, 0.231), (0.673, 0.584, 0.306), (0.663, 0.584, 0.334)),
    "features": ((0.294, None, 0.139), (0.208, None, None), (0.267, None, None)),
}
"""Silhouettes by summary: rows K-Medoids, DBSCAN, OPTICS; columns the three federations."""
NOTHING = -1.0
"""What a clustering counts for that does not exist: the least that a silhouette can be."""


def key(summary: str, method: str, setting: Setting) -> str:
    """The name of a sample."""
    return f"{summary}, {method}, {setting}"


def gain(setting: Setting) -> str:
    """The name of a sample: what the thesis' metrics and starts add to K-Medoids by P(y)."""
    return f"K-Medoids, grid less BUILD, {setting}"


def compute(scale: Scale, seed: int) -> Computed:
    """One federation of each kind."""
    data, least = scale.numbers.get("data", DATA), scale.numbers.get("least", LEAST)
    samples: dict[str, float] = {}
    for setting in SETTINGS:
        task = setting.task(seed, data, least)
        samples[f"distance, {setting}"] = rms(task.label_histograms)
        summaries = {
            "labels": task.label_histograms,
            "features": task.feature_histograms(np.arange(setting.clients), BINS),
        }
        for summary, counts in summaries.items():
            tried = searched(distances(counts), stream(seed, f"medoids by {summary}"))
            if summary == "labels":
                samples[gain(setting)] = max(tried.values()) - tried["precomputed", "build"]
            for method in METHODS:
                grid = method == "kmedoids"
                found = max(tried.values()) if grid else _silhouette(summary, method, counts)
                samples[key(summary, method, setting)] = found
                there = found if np.isfinite(found) else NOTHING
                samples[f"{key(summary, method, setting)}, or none"] = there
    shown = [name for name in samples if "none" not in name]
    columns = {"what": np.array(shown), "found": np.array([samples[name] for name in shown])}
    return Computed(columns, samples)


def _silhouette(summary: str, method: str, counts: Any) -> float:
    """NaN where fewer than 70 % of the clients can be clustered, the thesis' NA."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedcohortWarning)  # told by the NaN
        groups = Grouping(summary, method, None, BINS, "table 4.1").grouped(counts)
    return float("nan") if groups.caveat or groups.silhouette is None else groups.silhouette


def _every_setting(make: Any) -> Every:
    return Every(*(make(setting) for setting in SETTINGS))


def _lower(one: str, other: str) -> Any:
    return difference(COMPUTED, other, one)


LABELS = {
    key("labels", method, setting): PRINTED["labels"][row][column]
    for row, method in enumerate(METHODS)
    for column, setting in enumerate(SETTINGS)
}
FEATURES = {
    key("features", method, setting): PRINTED["features"][row][column]
    for row, method in enumerate(METHODS)
    for column, setting in enumerate(SETTINGS)
}


def _known(table: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in table.items() if value is not None}


TABLE_4_1 = Recipe(
    "thesis-table-4-1",
    "How well clients cluster by P(y) and P(X|y): silhouettes of three clusterings",
    PAPER,
    where="Table 4.1",
    compute=compute,
    scales={
        "quick": Scale(
            seeds=2,
            changed="2 federations of each kind (the thesis has 1), clients of 1 sample or more.",
            numbers={"least": 1},
        ),
        "standard": Scale(seeds=10, changed="10 federations of each kind instead of 1."),
        "full": Scale(seeds=5, changed="5 federations of each kind instead of 1."),
    },
    claims=(
        Claim(
            "RMS Hellinger distances of the federations",
            "0.9, 0.9, 0.8",
            _every_setting(lambda s: Close(COMPUTED, f"distance, {s}", s.distance, within=0.03)),
            kind="theory",
        ),
        Claim(
            "silhouettes of P(y) as printed",
            "Table 4.1, nine numbers",
            Every(*(Close(COMPUTED, of, at, within=0.1) for of, at in _known(LABELS).items())),
            exploratory=FITS,
            kind="theory",
        ),
        Claim(
            "DBSCAN and OPTICS beat K-Medoids in all three federations",
            "higher",
            Every(*(
                _lower(key("labels", "kmedoids", s), key("labels", method, s))
                for s in SETTINGS for method in METHODS[1:]
            )),
            kind="theory",
        ),
        Claim(
            "less distance between clients, worse clusters",
            "lower",
            Every(*(
                _lower(key("labels", method, SETTINGS[2]), key("labels", method, SETTINGS[0]))
                for method in METHODS
            )),
            kind="theory",
        ),
        Claim(
            "P(X|y) clusters worse than P(y)",
            "lower in all nine cells, or not clustered",
            Every(*(
                _lower(f"{key('features', method, s)}, or none",
                       f"{key('labels', method, s)}, or none")
                for s in SETTINGS for method in METHODS
            )),
            kind="theory",
        ),
        Claim(
            "metrics and starts of K-Medoids hardly matter",
            "not printed: Section 3.2 searches two metrics and four starts",
            _every_setting(lambda s: Close(COMPUTED, gain(s), 0.0, within=0.02)),
            ours=True,
            kind="theory",
        ),
    ),
    panels=(
        Bars(COMPUTED, list(LABELS), printed=_known(LABELS), title="P(y)", xlabel="silhouette"),
        Bars(COMPUTED, list(FEATURES), printed=_known(FEATURES), title="P(X|y)",
             xlabel="silhouette (none: fewer than 70 % clustered)"),
    ),
    shows="A table: silhouettes of K-Medoids, DBSCAN and OPTICS on three federations, by P(y) and "
    "by P(X|y); marked in the panels. Where fewer than 70 % of the clients can be clustered it has "
    "NA.",
    notes=(
        "The thesis clusters one federation of each kind, and the values of its grids are not "
        "printed; noise is left out of the score here, which fits its numbers best.",
        "K-Medoids has the best of its metrics (the distances, and Euclidean between their rows) "
        "and starts (random, k-medoids++, heuristic, BUILD), for 2 to 50 clusters; every score is "
        "by the distances.",
    ),
    readings=(
        *readings("least", "noise"),
        "Bins of a feature histogram: 16 here; the thesis prints no number.",
        "Grids of settings: 2 to 10 neighbors and 50 quantiles of the radii for DBSCAN here; the "
        "thesis prints none.",
    ),
)  # fmt: skip
