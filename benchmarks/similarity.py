"""A round of the schemes that look at updates: processor time of one thread.

    python benchmarks/similarity.py [--json]

* Algorithm 2, n = 1,000 clients, d = 10,000, m = 10 new updates in the round: the pairwise way
  of the authors' code (all n**2 pairs, three sums for each layer), everything by one product,
  and the refresh of what changed; then Ward, cut and pour, the same for all. The pairwise way
  is timed on 1,000 pairs and scipy's Ward of rows on the whole; the pairs are EXTRAPOLATED.
* The same refresh for n = 10,000, d = 1,000. A run reaches this size from all zeros, round by
  round, so that the O(n**3) distances between rows are never computed; here they start from a
  projection, which changes nothing in the time of a round. The first round of a process also
  waits for its memory, on a virtual machine for seconds; a round is the median of the next five.
* k-means of HCSFed, n = 100,000, 100 features, 10 strata: cold, and warm on moved features.
* The same as whole rounds of the schemes: everything `clustered-similarity` does between the
  answers of one round and the cohort of the next, nothing changed in place; and a round of
  `hcsfed` from the features of all clients to the cohort, and from its updates to the state.

Processor time, so that other work on the machine hardly counts; still, only the ratios within
one run mean much.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.cluster.hierarchy import linkage
from threadpoolctl import threadpool_limits

from fedcohort import Federation, Replies, scheme
from fedcohort._internal.random import stream
from fedcohort.maths._distances import distances, refresh
from fedcohort.maths._groups import exact_masses, kmeans, pour, split_large
from fedcohort.maths._tree import cut, refresh_rows_apart, rows_apart_of, ward_of_rows
from fedcohort.selection import Cohort, RoundContext

M = 10
PAIRS = 1000


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def one_pair(left: list[np.ndarray], right: list[np.ndarray]) -> float:
    """The angle as the authors' code finds it: layer by layer, both lengths anew."""
    product = left_square = right_square = 0.0
    for a, b in zip(left, right, strict=True):
        product += np.sum(a * b)
        left_square += np.sum(a**2)
        right_square += np.sum(b**2)
    if left_square == 0 or right_square == 0:
        return 0.0
    return float(np.arccos(np.clip(product / np.sqrt(left_square * right_square), -1, 1)))


def pairwise_seconds(updates: np.ndarray) -> float:
    """The time of all n**2 pairs, extrapolated from some."""
    n, d = updates.shape
    layers = [[u[: d // 2].reshape(50, -1), u[d // 2 :].reshape(50, -1)] for u in updates]
    pairs = np.random.default_rng(0).integers(0, n, (PAIRS, 2)).tolist()
    return seconds(lambda: [one_pair(layers[i], layers[j]) for i, j in pairs]) / PAIRS * n**2


def clustered_updates(n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((20, d), dtype=np.float32)
    return directions[np.arange(n) % 20] + rng.standard_normal((n, d), dtype=np.float32)


def regroup(matrix: np.ndarray, rows_apart: np.ndarray, sizes: np.ndarray) -> None:
    masses = exact_masses(sizes, M)
    capacity = int(sizes.sum())
    _, rest = split_large(masses, capacity)
    pour(cut(ward_of_rows(matrix, rows_apart), rest, capacity), masses, M)


def refreshed(
    matrix: np.ndarray, rows_apart: np.ndarray, updates: np.ndarray, changed: np.ndarray
) -> None:
    before = matrix[:, changed].copy()
    refresh(matrix, updates, changed)
    refresh_rows_apart(rows_apart, matrix, changed, before)


def scheme_round(
    updates: np.ndarray, sizes: np.ndarray, changed: np.ndarray, known: tuple[np.ndarray, ...]
) -> Callable[[], object]:
    """From the answers of one round to the cohort of the next; the state is a value."""
    chooser, federation = scheme("clustered-similarity", m=M), Federation.from_sizes(sizes)
    state = chooser.start(federation, stream(0, "start"))
    places = np.ix_(state.line, state.line)
    state = replace(
        state,
        length=updates.shape[1],
        latest=replace(state.latest, kept=updates, recent=updates[:0]),
        distances=known[0][places],
        rows_apart=known[1][places],
    )
    cohort, replies = Cohort.equal(changed), Replies(changed, {"update": updates[changed]})

    def work() -> object:
        after = chooser.observe(state, federation, cohort, replies)
        return chooser.design(after, federation, RoundContext()).draw(stream(0, "select"))

    return work


def thousand_clients() -> dict[str, float]:
    n, d = 1000, 10_000
    updates, changed = clustered_updates(n, d), np.arange(0, n, n // M)
    sizes = np.random.default_rng(2).integers(50, 500, n)
    matrix = distances(updates)
    rows_apart = rows_apart_of(matrix)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy notices that the matrix is one of distances
        scipys = seconds(lambda: linkage(matrix.astype(np.float64), "ward"), 1)
    found = {
        "pairwise (extrapolated)": pairwise_seconds(updates),
        "Ward of rows, scipy": scipys,
        "all distances, one product": seconds(lambda: distances(updates)),
        "rows apart, one product": seconds(lambda: rows_apart_of(matrix)),
        "refresh of distances and rows": seconds(
            lambda: refreshed(matrix, rows_apart, updates, changed), 7
        ),
        "Ward, cut, pour": seconds(lambda: regroup(matrix, rows_apart, sizes), 7),
        "clustered-similarity, a round": seconds(
            scheme_round(updates, sizes, changed, (matrix, rows_apart)), 7
        ),
    }
    theirs = found["pairwise (extrapolated)"] + found["Ward of rows, scipy"]
    again = found["all distances, one product"] + found["rows apart, one product"]
    found["round, authors' way"] = theirs
    found["round, all anew"] = again + found["Ward, cut, pour"]
    found["round, refreshed"] = found["refresh of distances and rows"] + found["Ward, cut, pour"]
    found["ratio: all anew"] = theirs / found["round, all anew"]
    found["ratio: refreshed"] = theirs / found["round, refreshed"]
    found["ratio: clustered-similarity"] = theirs / found["clustered-similarity, a round"]
    return found


def ten_thousand_clients() -> dict[str, float]:
    n, d = 10_000, 1000
    updates, changed = clustered_updates(n, d), np.arange(0, n, n // M)
    sizes = np.random.default_rng(2).integers(50, 500, n)
    found = {}
    start = time.process_time()
    matrix = distances(updates)
    found["all distances, one product"] = time.process_time() - start
    projection = np.random.default_rng(3).standard_normal((n, 128), dtype=np.float32)
    rows_apart = distances(matrix @ projection, "l2")
    found["refresh of distances and rows"] = seconds(
        lambda: refreshed(matrix, rows_apart, updates, changed)
    )
    found["Ward, cut, pour"] = seconds(lambda: regroup(matrix, rows_apart, sizes))
    found["round, refreshed"] = sum(list(found.values())[1:])
    work = scheme_round(updates, sizes, changed, (matrix, rows_apart))
    found["clustered-similarity, first round"] = seconds(work, 1)
    found["clustered-similarity, a round"] = seconds(work, 5)
    found["memory: the state"] = 2.0 * matrix.nbytes
    found["memory: a round, beside it"] = float(most_allocated(work))
    return found


def most_allocated(work: Callable[[], object]) -> int:
    """The most bytes that ``work`` held at a time."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def strata() -> dict[str, float]:
    rng = np.random.default_rng(4)
    features = rng.standard_normal((10, 100))[np.arange(100_000) % 10]
    features += rng.standard_normal(features.shape)
    moved = features + 0.1 * rng.standard_normal(features.shape)
    chaos = rng.standard_normal(features.shape)

    def generator() -> np.random.Generator:
        return np.random.Generator(np.random.Philox(0))

    _, centres = kmeans(features, 10, generator())
    _, anywhere = kmeans(chaos, 10, generator(), steps=5)
    return {
        "cold": seconds(lambda: kmeans(features, 10, generator()), 1),
        "warm": seconds(lambda: kmeans(moved, 10, generator(), start=centres)),
        "warm, no clusters, 10 steps": seconds(
            lambda: kmeans(chaos, 10, generator(), start=anywhere, steps=10)
        ),
    }


def hcsfed_round() -> dict[str, float]:
    """Everything but the clients: 100,000 of them, d = 1,000, 100 features."""
    n, rng = 100_000, np.random.default_rng(5)
    features = rng.standard_normal((10, 100), dtype=np.float32)[np.arange(n) % 10]
    features += rng.standard_normal(features.shape, dtype=np.float32)
    moved = features + 0.1 * rng.standard_normal(features.shape, dtype=np.float32)
    federation = Federation.from_sizes(rng.integers(1, 500, n))
    chooser = scheme("hcsfed", m=100, strata=10)
    cold = chooser.start(federation, stream(0, "start"))
    cohort = chooser.given(features, federation, cold).draw(stream(0, "select"))
    updates = rng.standard_normal((len(cohort), 1000), dtype=np.float32)
    replies = Replies(cohort.clients, {"update": updates})
    warm = replace(
        chooser.observe(cold, federation, cohort, replies),
        centres=chooser._centres(features[cohort.clients], cold),
    )
    found = {
        "choose, cold": seconds(
            lambda: chooser.given(features, federation, cold).draw(stream(0, "select")), 1
        ),
        "choose, warm": seconds(
            lambda: chooser.given(moved, federation, warm).draw(stream(1, "select"))
        ),
        "observe": seconds(lambda: chooser.observe(warm, federation, cohort, replies)),
    }
    found["round, warm"] = found["choose, warm"] + found["observe"]
    return found


def shown(name: str, value: float) -> str:
    if name.startswith("ratio"):
        return f"{value:10.0f} x"
    if name.startswith("memory"):
        return f"{value / 1e6:10.0f} MB"
    return f"{value * 1e3:10.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    as_json = parser.parse_args().json
    with threadpool_limits(1):
        results = {
            "Algorithm 2, n = 1,000, d = 10,000": thousand_clients(),
            "Algorithm 2, n = 10,000, d = 1,000": ten_thousand_clients(),
            "k-means, n = 100,000, 100 features, 10 strata": strata(),
            "hcsfed, n = 100,000, 100 features, 10 strata, m = 100": hcsfed_round(),
        }
    if as_json:
        print(json.dumps(results, indent=2))
        return
    for title, found in results.items():
        print(title)
        for name, value in found.items():
            print(f"  {name:<38}{shown(name, value)}")


if __name__ == "__main__":
    main()
