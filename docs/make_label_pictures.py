"""Draw the pictures of the schemes that look at labels and losses.

    FEDCOHORT_DATA=... python docs/make_label_pictures.py

label-clusters.png: 100 clients of Fashion-MNIST (Dirichlet 0.05 per class) grouped by OPTICS.
haccs.png: handwritten digits on 50 devices of different speed, 100 rounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.manifold import TSNE

from fedcohort import LocalWork, scheme, simulate
from fedcohort.schemes._data_groups import Grouping, Groups
from fedcohort.simulation import Devices, Problem
from fedcohort_papers.recipes.thesis._federations import SETTINGS

IMAGES = Path(__file__).parent / "images"


def save(figure: Any, name: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / name, dpi=100)
    print(IMAGES / name, (IMAGES / name).stat().st_size)


def new_figure(width: float, height: float) -> Any:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_groups(figure: Any, groups: Groups, classes: np.ndarray) -> None:
    """Embedding, reachability and sizes; colours are the class a client has most of."""
    shown = groups.picture()
    labels, order = shown["labels"], shown["ordering"]
    colours = np.array([f"C{c}" for c in range(10)])[classes]
    left, middle, right = figure.subplots(1, 3)
    places = TSNE(metric="precomputed", init="random", perplexity=20, random_state=0).fit_transform(
        shown["distances"]
    )
    left.scatter(*places.T, c=colours, s=14)
    left.set(title="t-SNE of the distances", xticks=[], yticks=[])
    middle.bar(np.arange(len(order)), shown["reachability"][order], 1.0, color=colours[order])
    middle.set(title="reachability", xlabel="clients in the order of OPTICS")
    sizes = np.bincount(labels)
    right.bar(np.arange(len(sizes)), sizes, 1.0)
    right.set(title="clients per group", xlabel="group (singletons last)")


def main() -> None:
    task = SETTINGS[0].task()
    groups = Grouping("labels", "optics", None, 16, "picture").grouped(task.label_histograms)
    figure = new_figure(9.6, 3.2)
    draw_groups(figure, groups, np.argmax(task.label_histograms, axis=1))
    save(figure, "label-clusters.png")

    digits = Problem("digits", "one-class-per-client", {"n": 50, "per_client": 25}).task()
    devices = Devices(spread=1.0, jitter=0.1)
    work = LocalWork(steps=20, batch=10, lr=0.1)
    trace = simulate(
        digits,
        scheme("haccs", m=10),
        rounds=100,
        work=work,
        availability=devices,
        evaluate_every=100,
    )
    seconds = devices.latency(50, 0, np.random.default_rng(0))
    classes = np.argmax(trace.label_histograms, axis=1)
    figure = new_figure(5.6, 3.6)
    axes = figure.subplots()
    axes.scatter(seconds, trace.participation, c=np.array([f"C{c}" for c in range(10)])[classes])
    axes.set(
        xscale="log", xlabel="latency of the device", ylabel="rounds of 100 in which it trained"
    )
    axes.set_title("One colour per digit: the fastest of every kind train", fontsize=9)
    save(figure, "haccs.png")


if __name__ == "__main__":
    main()
