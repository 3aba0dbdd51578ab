"""Figure 2: whether groups of clients are clearer in compressed gradients than in raw ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats
from fedcohort.maths._clusters import silhouette
from fedcohort.maths._compression import Compression, compress
from fedcohort.simulation import LocalWork, Problem
from fedcohort_papers.recipes.hcsfed import PAPER
from fedcohort_papers.reproduction import Claim, Computed, Drawn, Own, Recipe, Results, Scale

RATE = 0.1
WAYS: tuple[Compression, ...] = ("groups", "centres", "projection")
CLEARER = 0.05
"""Silhouettes lie between -1 and 1; that much more is clearer."""


def compute(scale: Scale, seed: int) -> Computed:
    """Silhouettes of the true classes in the first updates, raw and compressed."""
    partition = f"one-class-per-client:n={scale.numbers['n']},per_client=100"
    task = Problem("mnist", partition, model="softmax", partition_seed=seed).task()
    clients = np.arange(len(task.sizes))
    updates = task.updates(
        task.initial(seed),
        clients,
        LocalWork(steps=50, batch=50, lr=0.01),
        [stream(seed, "training", 0, int(i)) for i in clients],
    )
    labels = np.argmax(np.asarray(task.label_histograms), axis=1)
    features = {"raw": updates} | {way: compress(updates, RATE, way, seed) for way in WAYS}
    columns: dict[str, Array] = {"client": clients, "class": labels}
    for name, rows in features.items():
        x, y = _plane(np.asarray(rows, dtype=np.float64)).T
        columns |= {f"{name} x": x, f"{name} y": y}
    samples = {name: _clear(rows, labels) for name, rows in features.items()}
    return Computed(columns, samples)


def _clear(rows: Array, labels: Array) -> float:
    """The mean silhouette by angle: directions are what clusters are made of."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    angles = np.arccos(np.clip(unit @ unit.T, -1, 1))
    np.fill_diagonal(angles, 0)
    return silhouette(angles.astype(np.float64), labels.astype(np.int64)) or 0.0


def _plane(rows: Floats) -> Floats:
    """The two directions in which rows differ most."""
    centred = rows - rows.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(u[:, :2] * s[:2])


def _gains(way: str) -> Own:
    def gain(results: Results) -> Floats:
        raw, packed = (results.values("computed", name).numbers for name in ("raw", way))
        return packed - raw

    return Own(f"the silhouette of compressed updates ({way}) less that of raw ones", gain,
               above=CLEARER, partly=0.0)  # fmt: skip


def _draw(name: str, title: str) -> Drawn:
    def draw(axes: Any, results: Results) -> None:
        found = results.columns
        for k in np.unique(found["class"]).tolist():
            mine = found["class"] == k
            x, y = found[f"{name} x"][mine], found[f"{name} y"][mine]
            axes.plot(x, y, ls="", marker=f"${k}$", ms=5, color="0.2")
        axes.set(title=title, xticks=[], yticks=[])

    return Drawn(draw)


FIGURE_2 = Recipe(
    "hcsfed-fig2",
    "Are groups of clients clearer in compressed gradients?",
    PAPER,
    where="Figure 2",
    compute=compute,
    scales={
        "quick": Scale(seeds=3, numbers={"n": 40}, changed="40 clients instead of 100."),
        "standard": Scale(seeds=10, numbers={"n": 100}),
        "full": Scale(seeds=10, numbers={"n": 100}),
    },
    claims=(
        Claim(
            "clusters are clearer in compressed gradients than in raw ones",
            "a picture: raw points mixed, compressed ones in groups",
            _gains("centres"),
        ),
        Claim(
            "so they are with the compression that is used here",
            "not in the paper: signed sums keep positions",
            _gains("groups"),
            ours=True,
            kind="sound",
        ),
    ),
    panels=(
        _draw("raw", "raw updates"),
        _draw("centres", "sorted centres, 10 %"),
        _draw("groups", "signed sums, 10 %"),
    ),
    shows="Two drawings of clients as points: raw gradients in a cloud without order, compressed "
    "ones in separate clusters.",
    notes=(
        "The paper's compression forgets positions; its centres are comparable only when sorted.",
        "Points are drawn on the two directions in which they differ most; digits are classes.",
    ),
    readings=(
        "Clearness: the silhouette by angle here; by distance is possible.",
        "Gradients: the updates of the first round here; those of any later round are possible.",
        "Centres: sorted here; in any order is possible, where they are not comparable.",
    ),
)
