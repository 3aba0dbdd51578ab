"""The thesis' search for K-Medoids (Section 3.2): numbers of clusters, two metrics, four starts.

`fedcohort.maths._clusters.kmedoids`, which the schemes use, has one metric and one start: the
distances themselves, and BUILD. Here are the others, so that Table 4.1 can say what they add.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from scipy.spatial.distance import pdist, squareform

from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._clusters import MOST_MEDOIDS, build, fasterpam, silhouette

Start: TypeAlias = Callable[[Floats, int, np.random.Generator], Ints]


def at_random(distances: Floats, k: int, rng: np.random.Generator) -> Ints:
    """Any k points."""
    return np.sort(rng.choice(len(distances), k, replace=False))


def heuristic(distances: Floats, k: int, rng: np.random.Generator) -> Ints:
    """The k points that are nearest to all others."""
    return np.argsort(distances.sum(axis=1), kind="stable")[:k].astype(np.int64)


def far_apart(distances: Floats, k: int, rng: np.random.Generator) -> Ints:
    """One point after the other, with chances by the square of the distance to those before."""
    chosen = [int(rng.integers(len(distances)))]
    while len(chosen) < k:
        chances = distances[chosen].min(axis=0) ** 2
        if not chances.any():  # all others are where a chosen one is
            chances = np.where(np.isin(np.arange(len(distances)), chosen), 0.0, 1.0)
        chosen.append(int(rng.choice(len(distances), p=chances / chances.sum())))
    return np.array(chosen, dtype=np.int64)


STARTS: Mapping[str, Start] = {
    "random": at_random,
    "k-medoids++": far_apart,
    "heuristic": heuristic,
    "build": lambda distances, k, rng: build(distances, k),
}


def metrics(distances: Floats) -> dict[str, Floats]:
    """The distances as they are, and between their rows, as a library does told 'euclidean'."""
    return {"precomputed": distances, "euclidean": squareform(pdist(distances))}


def searched(distances: Floats, rng: np.random.Generator) -> dict[tuple[str, str], float]:
    """The best silhouette over all k, by (metric, start), always by the distances themselves."""
    n = len(distances)
    found: dict[tuple[str, str], float] = {}
    for metric, matrix in metrics(distances).items():
        for name, start in STARTS.items():
            scores = [
                silhouette(distances, fasterpam(matrix, start(matrix, k, rng)).labels)
                for k in range(2, min(n - 1, MOST_MEDOIDS) + 1)
            ]
            found[metric, name] = max((s for s in scores if s is not None), default=np.nan)
    return found
