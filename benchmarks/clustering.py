"""Distances and clusters of clients: processor time of one thread.

    python benchmarks/clustering.py [--json]

* Hellinger distances of 10,000 label histograms: one product in row blocks, scipy's pdist,
  and the double loop of the thesis (timed on 5,000 pairs, EXTRAPOLATED to all).
* DBSCAN on a grid of 100 settings, 1,000 clients: one scikit-learn fit per setting against
  one spanning tree per min_samples; labels only, then with the silhouette of each.
* OPTICS, 1,000 clients: scikit-learn's walk against ours (the results are equal).
* The whole default grid search of each method, 1,000 clients.

Processor time, so that other work on the machine hardly counts; still, only the ratios within
one run mean much.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import DBSCAN, compute_optics_graph
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from fedcohort.maths._clusters import METHODS, DensityTree, Reachability, dbscan, nearest
from fedcohort.maths._distances import hellinger

EPS = np.linspace(0.1, 0.7, 10).tolist()
MIN_SAMPLES = list(range(2, 12))
PAIRS = 5000


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def histograms(n: int) -> np.ndarray:
    rng = np.random.Generator(np.random.Philox(0))
    return rng.multinomial(500, rng.dirichlet(np.full(10, 0.1), n))


def by_pdist(counts: np.ndarray) -> np.ndarray:
    return squareform(pdist(np.sqrt(counts / counts.sum(axis=1, keepdims=True)))) / np.sqrt(2)


def pair_loop(counts: np.ndarray) -> None:
    frequencies = counts / counts.sum(axis=1, keepdims=True)
    for j in range(1, PAIRS + 1):
        np.sqrt(((np.sqrt(frequencies[0]) - np.sqrt(frequencies[j])) ** 2).sum()) / np.sqrt(2)


def repeated_fits(distances: np.ndarray, score: bool) -> None:
    for samples in MIN_SAMPLES:
        for eps in EPS:
            model = DBSCAN(eps=eps, min_samples=samples, metric="precomputed")
            labels = model.fit_predict(distances)
            kept = labels >= 0
            if score and 2 <= np.unique(labels[kept]).size < kept.sum():
                inner = distances[np.ix_(kept, kept)]
                silhouette_score(inner, labels[kept], metric="precomputed")


def shared_trees(distances: np.ndarray) -> None:
    around, gaps = nearest(distances, max(MIN_SAMPLES))
    for samples in MIN_SAMPLES:
        tree = DensityTree.grow(distances, around[:, :samples], gaps[:, :samples])
        for eps in EPS:
            tree.cut(eps)


def sklearn_walk(distances: np.ndarray) -> None:
    fixed = {"p": 2, "metric_params": None, "algorithm": "auto", "leaf_size": 30, "n_jobs": None}
    compute_optics_graph(distances, min_samples=5, max_eps=np.inf, metric="precomputed", **fixed)


def our_walk(distances: np.ndarray) -> None:
    Reachability.walk(distances, nearest(distances, 5)[1][:, -1])


def measure() -> dict[str, dict[str, float]]:
    many, some = histograms(10_000), hellinger(histograms(1000))
    n = len(many)
    return {
        "Hellinger, n = 10,000": {
            "double loop (extrapolated)": seconds(lambda: pair_loop(many))
            / PAIRS
            * n
            * (n - 1)
            / 2,
            "scipy pdist": seconds(lambda: by_pdist(many)),
            "fedcohort": seconds(lambda: hellinger(many)),
        },
        "DBSCAN, 100 settings, n = 1,000": {
            "repeated fits": seconds(lambda: repeated_fits(some, score=False)),
            "fedcohort": seconds(lambda: shared_trees(some)),
        },
        "DBSCAN with silhouettes": {
            "repeated fits": seconds(lambda: repeated_fits(some, score=True), 1),
            "fedcohort": seconds(lambda: dbscan(some, EPS, MIN_SAMPLES)),
        },
        "OPTICS walk, n = 1,000": {
            "scikit-learn": seconds(lambda: sklearn_walk(some), 1),
            "fedcohort": seconds(lambda: our_walk(some)),
        },
        **{
            f"{name}, default grid, n = 1,000": {"fedcohort": seconds(lambda m=m: m(some), 1)}
            for name, m in METHODS.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        found = measure()
    if arguments.json:
        print(json.dumps(found))
        return
    for task, ways in found.items():
        print(task)
        for way, time_taken in ways.items():
            ratio = time_taken / ways["fedcohort"]
            print(f"  {way:28s} {time_taken * 1000:10.0f} ms   {ratio:7.1f} x")


if __name__ == "__main__":
    main()
