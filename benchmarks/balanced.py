"""Balanced cohorts: how long a draw takes, how well it balances, and what noise on labels costs.

    python benchmarks/balanced.py [--most 1000000] [--cohorts 40] [--only landing]

Processor time, the best of several draws. Variances are of the mean of ten label shares
(Dirichlet(0.3), sizes 1 to 1,000, m = 10, 9 components), relative to MD sampling.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from fedcohort._internal.random import stream
from fedcohort.designs import ConditionalPoisson, Cube, Pivotal, Rows, Sampford
from fedcohort.maths._noise import REPLACE_ONE, clipped, noisy_counts
from fedcohort.selection import Shares
from fedcohort.theory._moments import estimated_variance

M, CLASSES = 10, 10


def federation(n: int, seed: int = 0) -> tuple[Shares, np.ndarray]:
    """Sizes, and how many samples of each class every client has."""
    rng = stream(seed, "benchmark")
    sizes = rng.integers(1, 1_001, n)
    return Shares.of(sizes), rng.multinomial(sizes, rng.dirichlet(np.full(CLASSES, 0.3), n))


def shares_of(counts: np.ndarray) -> np.ndarray:
    """(n, classes) label shares; those of a client without any are zero."""
    total = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)


def best(function, times: int) -> float:
    """Milliseconds of processor time."""
    took = []
    for number in range(times):
        start = time.process_time()
        function(number)
        took.append(time.process_time() - start)
    return 1e3 * min(took)


def relative(design: Cube, x: np.ndarray, cohorts: int) -> str:
    """The variance of the aggregate beside that of MD sampling, with a 95 % interval."""
    md = Rows.alike(design.target, M).aggregate_variance(x)
    found = estimated_variance(design, x, cohorts, stream(1, "cohorts"))
    return f"{found.variance / md:.3f} ({found.low / md:.3f} to {found.high / md:.3f})"


def speed(most: int, cohorts: int) -> None:
    """A draw of the cube method, and of others, by the number of clients."""
    print("n         cube ms   once ms   variance / MD           pivotal ms   Poisson, Sampford ms")
    n = 100
    while n <= most:
        shares, counts = federation(n)
        x = shares_of(counts)
        once = best(lambda _, s=shares, f=x: Cube.balancing(s, M, f, M - 1), 1)
        design = Cube.balancing(shares, M, x, M - 1)
        design.draw(stream(0, "warm"))
        tries = 5 if n <= 10_000 else 2
        cube = best(lambda seed, d=design: d.draw(stream(seed, "draw")), tries)
        line = Pivotal.proportional(shares, M, np.arange(n))
        line.draw(stream(0, "warm"))
        pivotal = best(lambda seed, d=line: d.draw(stream(seed, "draw")), tries)
        others = ""
        if n <= 10_000:
            for kind in (ConditionalPoisson, Sampford):
                law = kind.proportional(shares, M)
                others += f"{best(lambda seed, d=law: d.draw(stream(seed, 'draw')), tries):8.1f}"
        spread = relative(design, x, cohorts if n <= 100_000 else min(cohorts, 20))
        print(
            f"{n:<9d} {cube:7.1f}   {once:7.1f}   {spread:24s} {pivotal:8.1f}   {others}",
            flush=True,
        )
        n *= 10


def landing(cohorts: int) -> None:
    """What it brings to find the end of the walk by linear programming."""
    print("\nn         dropping                   linear programming")
    for n in (100, 1_000):
        shares, counts = federation(n)
        x = shares_of(counts)
        cells = [
            relative(Cube.balancing(shares, M, x, M - 1, program), x, cohorts)
            for program in (False, True)
        ]
        print(f"{n:<9d} {cells[0]:26s} {cells[1]}", flush=True)


def noise(cohorts: int) -> None:
    """What noise on the label counts costs, of every class and of three groups of classes."""
    shares, counts = federation(200)
    x = shares_of(counts)
    groups = np.stack([counts[:, k::3].sum(axis=1) for k in range(3)], axis=1)
    print("\nepsilon   ten classes                three groups")
    for epsilon in (None, 10.0, 3.0, 1.0, 0.3, 0.1):
        cells = []
        for told in (counts, groups):
            rows = told
            if epsilon is not None:
                rng = stream(2, "noise")
                noisy = [noisy_counts(rng, row, epsilon, REPLACE_ONE) for row in told]
                rows = clipped(np.array(noisy, dtype=np.float64))
            design = Cube.balancing(shares, M, shares_of(np.asarray(rows)), M - 1)
            cells.append(relative(design, x, cohorts))
        print(
            f"{'none' if epsilon is None else epsilon!s:9s} {cells[0]:26s} {cells[1]}", flush=True
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--cohorts", type=int, default=200)
    parser.add_argument("--only", choices=["speed", "landing", "noise"])
    given = parser.parse_args()
    if given.only in (None, "speed"):
        speed(given.most, given.cohorts)
    if given.only in (None, "landing"):
        landing(given.cohorts)
    if given.only in (None, "noise"):
        noise(given.cohorts)
