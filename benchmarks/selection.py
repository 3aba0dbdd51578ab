"""How long it takes to choose, and how much memory: Algorithm 1, MD and uniform sampling.

    python benchmarks/selection.py [--large] [--json]

* Algorithm 1 at n = 10,000 and m = 1,000 against the way it is usually written: a dense m x n
  matrix, filled client by client, with the sum of the current row taken anew for each client.
  Both must agree to 1e-8.
* m = 100 of n clients by MD and by uniform sampling against `Generator.choice`.
* A balanced draw (the cube method) of m = 10 with nine components.
* ``--large``: n = 10,000,000, each in a process of its own, with the peak of its memory.

Times are processor time, the best of several runs; on a shared machine only ratios within one
run mean much.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fedcohort import Federation, RoundContext, Selector, scheme
from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats, Ints
from fedcohort.designs import Cube, Rows
from fedcohort.selection import Shares

M_DRAWS = 100
LARGE = 10_000_000


def dense_greedy(sizes: Ints, m: int) -> Floats:
    """Algorithm 1 as a dense matrix, filled greedily: the slow twin. # (n,) -> (m, n)."""
    whole = float(sizes.sum())
    rows = np.zeros((m, len(sizes)))
    k = 0
    for i in np.argsort(-sizes, kind="stable"):
        left = float(m * sizes[i])
        while left > 0:
            taken = min(left, whole - np.sum(rows[k]))
            rows[k, i] += taken
            left -= taken
            if np.sum(rows[k]) == whole:
                k += 1
    return rows / rows.sum(axis=1, keepdims=True)


def sizes_of(n: int) -> Ints:
    return 1 + stream(0, "sizes").integers(0, 1_000, n)


def algorithm_1(sizes: Ints, m: int, **parameters: Any) -> Rows:
    """Built from nothing but the sizes: federation, order, rows."""
    federation = Federation.from_sizes(sizes)
    clustered = scheme("clustered-size", m=m, **parameters)
    state = clustered.start(federation, stream(0, "start"))
    design = clustered.design(state, federation, RoundContext())
    assert isinstance(design, Rows)
    return design


def best(function: Callable[[], Any], times: int) -> float:
    """Seconds of processor time of the fastest of several runs."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        function()
        found.append(time.process_time() - begun)
    return min(found)


def against_dense(n: int, m: int) -> dict[str, Any]:
    sizes = sizes_of(n)
    ours = algorithm_1(sizes, m, ties="index")
    difference = float(np.abs(ours.matrix.toarray() - dense_greedy(sizes, m)).max())
    assert difference < 1e-8, f"the two ways differ by {difference}"
    slow = best(lambda: dense_greedy(sizes, m), 2)
    fast = best(lambda: algorithm_1(sizes, m, ties="index"), 20)
    return {
        "what": f"Algorithm 1, build, n = {n:,}, m = {m:,}",
        "seconds": fast,
        "usual way": slow,
        "ratio": slow / fast,
    }


def draws(name: str, n: int) -> dict[str, Any]:
    """A draw after the build, against the one call of numpy that does the same."""
    federation = Federation.from_sizes(sizes_of(n))
    design = Selector(scheme(name, m=M_DRAWS), federation, seed=0).design()
    assert design is not None
    rng = stream(0, "draw")
    design.draw(rng)
    fast = best(lambda: design.draw(rng), 50)
    chances = federation.importance if name == "md" else None
    replace = name == "md"
    usual = best(lambda: rng.choice(n, M_DRAWS, replace, chances, shuffle=False), 5)
    return {
        "what": f"{name}, draw, n = {n:,}, m = {M_DRAWS}",
        "seconds": fast,
        "usual way": usual,
        "ratio": usual / fast,
    }


def cubes(n: int, program: bool) -> dict[str, Any]:
    """A balanced draw with nine components of label shares."""
    rng = stream(0, "labels")
    labels = rng.dirichlet(np.full(10, 0.3), n)
    design = Cube.balancing(Shares.of(sizes_of(n)), 10, labels, 9, program)
    design.draw(rng)
    end = "program" if program else "drop"
    what = f"balanced, landing={end}, draw, n = {n:,}, m = 10"
    return {"what": what, "seconds": best(lambda: design.draw(rng), 10)}


def large(name: str) -> dict[str, Any]:
    """Build, first draw and further draws at n = 10,000,000, and the peak memory of it all."""
    sizes, chosen = sizes_of(LARGE), scheme(name, m=M_DRAWS)
    begun = time.process_time()
    federation = Federation.from_sizes(sizes)
    design = Selector(chosen, federation, seed=0).design()
    assert design is not None
    rng = stream(0, "draw")
    design.draw(rng)
    build = time.process_time() - begun
    return {
        "what": f"{name}, n = {LARGE:,}, m = {M_DRAWS}",
        "build": build,
        "seconds": best(lambda: design.draw(rng), 20),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_own_process(name: str) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603 - this file itself
        [sys.executable, __file__, "--only", name], capture_output=True, text=True, check=True
    )
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{'':50}{'build':>10}{'time':>12}{'usual way':>12}{'ratio':>8}{'peak MB':>9}")
    for row in rows:
        build = f"{row['build']:.2f} s" if "build" in row else ""
        usual = f"{1e3 * row['usual way']:.3f} ms" if "usual way" in row else ""
        ratio = f"{row['ratio']:.1f}" if "ratio" in row else ""
        peak = f"{row['peak MB']:.0f}" if "peak MB" in row else ""
        seconds = f"{1e3 * row['seconds']:.3f} ms"
        print(f"{row['what']:50}{build:>10}{seconds:>12}{usual:>12}{ratio:>8}{peak:>9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also ten million clients")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(large(options.only)))
        return
    rows = [against_dense(1_000, 100), against_dense(10_000, 1_000)]
    rows += [draws(name, n) for name in ("md", "uniform") for n in (10_000, 1_000_000)]
    rows += [cubes(n, program) for n in (100, 1_000, 10_000) for program in (False, True)]
    if options.large:
        rows += [in_own_process(name) for name in ("md", "uniform", "clustered-size")]
    print(json.dumps(rows, indent=1)) if options.json else show(rows)


if __name__ == "__main__":
    main()
