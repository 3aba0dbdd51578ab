"""What hardening costs where nobody lies: rounds to an accuracy on the digits, paired by seed.

    python benchmarks/hardening.py [SCHEME ...] [--partitions 12] [--seeds 1] [--rounds 60]
        [--hardened clip ...]

How data are divided matters more than the seed: the cap on sizes changes the objective, for better
on one division and for worse on another. So every number is over several divisions, and so is its
interval. Prints, for every scheme (all of them by default), the mean number of rounds as it is
published and hardened, the change in percent (the geometric mean over divisions, with a 95 %
t-interval), how many runs of each never came there, and the accuracy of the last ten rounds of
both, with the same interval of the difference.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.stats import t as student

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
    there = _there(accuracy, target)
    return int(np.argmax(there)) + WINDOW if there.any() else len(accuracy)


def reached(accuracy: np.ndarray, target: float) -> bool:
    """Whether the average of some rounds is at the target."""
    return bool(_there(accuracy, target).any())


def _there(accuracy: np.ndarray, target: float) -> np.ndarray:
    return np.convolve(accuracy, np.ones(WINDOW) / WINDOW, "valid") >= target


def interval(values: np.ndarray) -> tuple[float, float]:
    """The mean, and half the width of its 95 % interval."""
    k = len(values)
    return float(values.mean()), float(
        student.ppf(0.975, k - 1) * values.std(ddof=1) / np.sqrt(k) if k > 1 else np.nan
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schemes", nargs="*", default=[SETTINGS.get(s, s) for s in SCHEMES])
    parser.add_argument("--partitions", type=int, default=12, help="Ways to divide the data.")
    parser.add_argument("--partition-seed", type=int, default=0, help="Of the first of them.")
    parser.add_argument("--seeds", type=int, default=1, help="Of each.")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--target", type=float, default=0.9)
    parser.add_argument("--partition", default="dirichlet-per-class:alpha=0.1,n=50")
    parser.add_argument("--hardened", nargs="*", help="Guards; all by default.")
    told = parser.parse_args()
    first = told.partition_seed
    tasks = [
        Problem("digits", told.partition, partition_seed=seed).task()
        for seed in range(first, first + told.partitions)
    ]
    warnings.simplefilter("ignore", FedcohortWarning)
    print(
        f"{told.partition}, partition seeds {first} to {first + told.partitions - 1}, "
        f"{told.seeds} seeds of each, rounds to {told.target:.0%} of {told.rounds}",
        flush=True,
    )
    for word in told.schemes:
        scheme = SCHEMES.build(word, otherwise={"m": 10})
        curves = np.array(
            [
                [
                    [
                        simulate(
                            task, scheme, rounds=told.rounds, seed=s, work=WORK, hardened=hardened
                        ).accuracy
                        for s in range(told.seeds)
                    ]
                    for task in tasks
                ]
                for hardened in (None, told.hardened or True)
            ]
        )  # (2, partitions, seeds, rounds)
        rounds = np.apply_along_axis(rounds_to, -1, curves, told.target).mean(axis=-1)
        never = np.count_nonzero(
            np.apply_along_axis(lambda c: not reached(c, told.target), -1, curves), axis=(1, 2)
        )
        more, wide = interval(np.log(rounds[1] / rounds[0]))
        ends = 100 * curves[..., -10:].mean(axis=(2, 3))
        gain, by = interval(ends[1] - ends[0])
        print(
            f"{scheme.name:22} {rounds[0].mean():5.1f} {rounds[1].mean():5.1f}  "
            f"{100 * np.expm1(more):+6.1f} % "
            f"[{100 * np.expm1(more - wide):+.0f}, {100 * np.expm1(more + wide):+.0f}]  "
            f"never {never[0]} {never[1]}  end {ends[0].mean():.1f} {ends[1].mean():.1f}  "
            f"{gain:+.2f} ± {by:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
