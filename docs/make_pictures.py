"""Draw the pictures of docs/schemes: what a scheme knows at the end of a short run.

    python docs/make_pictures.py [SCHEME ...]

Handwritten digits (bundled with scikit-learn) on 50 clients, softmax, 40 rounds: one class per
client and m = 10 for the matrix of similarities, Dirichlet(0.3) and m = 20 for the strata.
Writes docs/images/NAME.png, each below 100 KB.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import dendrogram, leaves_list

from fedcohort import LocalWork, Trace, scheme, simulate
from fedcohort.simulation import Problem

IMAGES = Path(__file__).parent / "images"
NAMES = ("clustered-similarity", "importance", "cluster", "cluster-neyman", "hcsfed")
ONE_CLASS = Problem("digits", "one-class-per-client", {"n": 50, "per_client": 25})
DIRICHLET = Problem("digits", "dirichlet-per-client", {"n": 50, "alpha": 0.3})
WORK = LocalWork(steps=20, batch=10, lr=0.1)


def run(name: str) -> Trace:
    alike = name == "clustered-similarity"
    task = (ONE_CLASS if alike else DIRICHLET).task()
    chooser = scheme(name, m=10 if alike else 20)
    return simulate(task, chooser, rounds=40, work=WORK, evaluate_every=40)


def classes(trace: Trace) -> np.ndarray:
    """(n,) the digit that each client has most of."""
    return np.argmax(trace.label_histograms, axis=1)


def draw_matrix(figure: Any, trace: Trace) -> None:
    """The tree, and the distances in the order of its leaves."""
    tree, matrix = trace.pictures["linkage"], trace.pictures["distances"]
    order = leaves_list(tree)
    above, below = figure.subplots(2, 1, height_ratios=(1, 3))
    dendrogram(tree, ax=above, no_labels=True, color_threshold=0, above_threshold_color="0.3")
    above.set_axis_off()
    shown = below.imshow(matrix[np.ix_(order, order)], cmap="magma_r", aspect="auto")
    below.set_xticks(range(len(order)), classes(trace)[order], fontsize=5)
    below.set_yticks([])
    below.set_xlabel("clients by the tree, labelled with the digit they have", fontsize=8)
    figure.colorbar(shown, ax=[above, below], label="angle between updates", shrink=0.7)


def draw_strata(figure: Any, trace: Trace) -> None:
    """Clients and draws per stratum, with the digits that are in it."""
    sizes, draws = trace.pictures["strata_sizes"], trace.pictures["allocation"]
    labels, digits = trace.pictures["labels"], classes(trace)
    axes = figure.subplots()
    places = np.arange(len(sizes))
    axes.bar(places - 0.2, sizes, 0.4, label="clients")
    axes.bar(places + 0.2, draws, 0.4, label="draws")
    names = ["\n".join(map(str, np.unique(digits[labels == h]))) for h in places]
    axes.set_xticks(places, names, fontsize=8)
    axes.set_xlabel("stratum, with the digits that its clients have most of")
    axes.legend()


def draw_counts(figure: Any, trace: Trace) -> None:
    """How often each client took part."""
    order = np.argsort(classes(trace), kind="stable")
    axes = figure.subplots()
    axes.bar(np.arange(len(order)), trace.participation[order])
    axes.set_xticks(np.arange(len(order)), classes(trace)[order], fontsize=5)
    axes.set(xlabel="clients, labelled with the digit they have most of", ylabel="rounds of 40")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        trace = run(name)
        draw = draw_strata
        if "linkage" in trace.pictures:
            draw = draw_matrix
        elif len(trace.pictures["strata_sizes"]) == 1:
            draw = draw_counts
        figure = Figure(figsize=(5.6, 4.4), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure, trace)
        place = IMAGES / f"{name}.png"
        figure.savefig(place, dpi=110)
        print(place, place.stat().st_size)


if __name__ == "__main__":
    main()
