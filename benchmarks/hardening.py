"""What hardening costs where nobody lies: rounds to an accuracy on the digits, paired by seed.

    python benchmarks/hardening.py [SCHEME ...] [--seeds 40] [--partition ...] [--partition-seed 1]
        [--hardened clip ...]

Prints, for every scheme (all of them by default), the mean number of rounds as it is published and
hardened, the change in percent with its standard error over seeds, and the accuracy at the end
of both.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from fedcohort import simulate
from fedcohort.core.errors import FedcohortWarning
from fedcohort.schemes import SCHEMES
from fedcohort.simulation import LocalWork
from fedcohort.simulation.problem import Problem

SETTINGS = {
    "poisson": "poisson:cap=true",  # a large client may be due more than one place
    "fedsampling": "fedsampling:K=500,mechanism=exact",
}
WORK = LocalWork(steps=20, batch=10, lr=0.1)
WINDOW = 5
"""Accuracies are averaged over so many rounds: one lucky round is not there yet."""


def rounds_to(accuracy: np.ndarray, target: float) -> int:
    """The first round in which the average of the last few is at the target; all if none is."""
    there = np.convolve(accuracy, np.ones(WINDOW) / WINDOW, "valid") >= target
    return int(np.argmax(there)) + WINDOW if there.any() else len(accuracy)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schemes", nargs="*", default=[SETTINGS.get(s, s) for s in SCHEMES])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--target", type=float, default=0.9)
    parser.add_argument("--partition", default="dirichlet-per-class:alpha=0.1,n=50")
    parser.add_argument("--partition-seed", type=int, default=0, help="How the data are divided.")
    parser.add_argument("--hardened", nargs="*", help="Guards; all by default.")
    told = parser.parse_args()
    task = Problem("digits", told.partition, partition_seed=told.partition_seed).task()
    warnings.simplefilter("ignore", FedcohortWarning)
    print(
        f"{told.partition}, partition seed {told.partition_seed}, {told.seeds} seeds, "
        f"rounds to {told.target:.0%}",
        flush=True,
    )
    for word in told.schemes:
        scheme = SCHEMES.build(word, otherwise={"m": 10})
        curves = [
            [
                simulate(
                    task, scheme, rounds=told.rounds, seed=seed, work=WORK, hardened=hardened
                ).accuracy
                for seed in range(told.seeds)
            ]
            for hardened in (None, told.hardened or True)
        ]
        plain, hard = (
            np.array([rounds_to(curve, told.target) for curve in some]) for some in curves
        )
        change = 100 * (hard.mean() / plain.mean() - 1)
        error = 100 * (hard - plain * hard.mean() / plain.mean()).std(ddof=1)
        error /= plain.mean() * np.sqrt(told.seeds)
        ends = [np.mean([curve[-10:].mean() for curve in some]) for some in curves]
        print(
            f"{scheme.name:22} {plain.mean():6.1f} {hard.mean():6.1f}  {change:+6.1f} % "
            f"± {error:.1f}   end {ends[0]:.3f} {ends[1]:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
