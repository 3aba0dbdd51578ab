"""What hardening costs where nobody lies: rounds to an accuracy, paired by seed.

    python benchmarks/hardening.py [SCHEME ...] [--fleet] [--partitions 12] [--seeds 1]
        [--rounds 60] [--hardened clip ...] [--times 1.75 2 2.5 4 10]

By default the digits among 50 clients, 10 a round. With ``--fleet`` a federation like that of
tools/attack.py: MNIST (``FEDCOHORT_DATA``) among 1,000 clients with log-normal sizes and few
labels each, 20 a round.

How data are divided matters more than the seed: the cap on sizes changes the objective, for better
on one division and for worse on another. So every number is over several divisions, and so is its
interval. Prints, for every scheme (all of them by default), the mean number of rounds as it is
published and hardened, the change in percent (the geometric mean over divisions, with a 95 %
t-interval), how many runs of each never came there, and the accuracy of the last ten rounds of
both, with the same interval of the difference; at the end the mean change of all schemes, division
by division.

With ``--times`` both caps are set to each of these numbers of fair shares, and what a hundredth of
the clients gets by the lie that pays most stands beside the cost: what ``rate-cap`` promises, and
the largest share of places, weight and step that `benchmarks/tools/attack.py` finds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from fedcohort import simulate
from fedcohort._internal.errors import FedcohortWarning
from fedcohort._internal.random import stream
from fedcohort.schemes import SCHEMES
from fedcohort.server import Guard
from fedcohort.server._guards import HARDENED, SAVED, Hardened, RateCap, SizeCap
from fedcohort.simulation import LocalWork, Problem
from fedcohort.simulation._problem import reading_once
from fedcohort.training import Task
from tools.attackers import attacked, lies_to

SETTINGS = {
    "poisson": "poisson:cap=true",  # a large client may be due more than one place
    "fedsampling": "fedsampling:K=500,mechanism=exact",
}
WORK = LocalWork(steps=20, batch=10, lr=0.1)
WINDOW = 5
"""Accuracies are averaged over so many rounds: one lucky round is not there yet."""
FLEET = 1000
ATTACK_ROUNDS = 400


def fleet(seed: int) -> Problem:
    """MNIST among clients of log-normal sizes, as attackers meet them, with few labels each."""
    sizes = 1 + (30 * stream(seed, "sizes").lognormal(0.0, 1.0, FLEET)).astype(np.int64)
    options = {"sizes": tuple(sizes.tolist()), "alpha": 0.1}
    return Problem("mnist", "dirichlet-per-client", options, partition_seed=seed)


def tasks_of(told: argparse.Namespace) -> Iterator[Task]:
    """One for every division."""
    with reading_once():
        for seed in range(told.partition_seed, told.partition_seed + told.partitions):
            problem = Problem("digits", told.partition, partition_seed=seed)
            yield (fleet(seed) if told.fleet else problem).task()


def capped(times: float) -> tuple[Guard, ...]:
    """All guards, with both caps at so many fair shares."""
    return tuple(
        replace(guard, times=times) if isinstance(guard, SizeCap | RateCap) else guard
        for guard in HARDENED
    )


def influence(word: str, hardened: Hardened) -> float:
    """The largest share that ten of a thousand clients get by the lie that pays most."""
    scheme = SCHEMES.build(word, otherwise={"m": 20})
    return max(
        max(attacked(scheme, lie, rounds=ATTACK_ROUNDS, hardened=hardened))
        for lie in lies_to(scheme)
    )


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


def curves(
    scheme: Any, tasks: list[Task], told: argparse.Namespace, hardened: Hardened
) -> np.ndarray:
    """Accuracies: (partitions, seeds, rounds)."""
    run = {"rounds": told.rounds, "work": WORK, "hardened": hardened}
    return np.array(
        [
            [simulate(task, scheme, seed=s, **run).accuracy for s in range(told.seeds)]
            for task in tasks
        ]
    )


def compared(published: np.ndarray, hardened: np.ndarray, target: float) -> tuple[str, np.ndarray]:
    """Both in one line, see the module, and the logarithm of the change on every division."""
    both = np.array([published, hardened])
    rounds = np.apply_along_axis(rounds_to, -1, both, target).mean(axis=-1)
    never = np.count_nonzero(
        np.apply_along_axis(lambda c: not reached(c, target), -1, both), axis=(1, 2)
    )
    change = np.log(rounds[1] / rounds[0])
    ends = 100 * both[..., -10:].mean(axis=(2, 3))
    gain, by = interval(ends[1] - ends[0])
    said = (
        f"{rounds[0].mean():5.1f} {rounds[1].mean():5.1f}  {in_percent(change)}  "
        f"never {never[0]} {never[1]}  end {ends[0].mean():.1f} {ends[1].mean():.1f}  "
        f"{gain:+.2f} ± {by:.2f}"
    )
    return said, change


def in_percent(change: np.ndarray) -> str:
    """The geometric mean of changes, given as logarithms, with its interval."""
    more, wide = interval(change)
    ends = [100 * np.expm1(more + side) for side in (0.0, -wide, wide)]
    return f"{ends[0]:+6.1f} % [{ends[1]:+.1f}, {ends[2]:+.1f}]"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("schemes", nargs="*", default=[SETTINGS.get(s, s) for s in SCHEMES])
    parser.add_argument("--fleet", action="store_true", help="1,000 clients instead of 50.")
    parser.add_argument("--partitions", type=int, default=12, help="Ways to divide the data.")
    parser.add_argument("--partition-seed", type=int, default=0, help="Of the first of them.")
    parser.add_argument("--seeds", type=int, default=1, help="Of each.")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--target", type=float, default=0.9)
    parser.add_argument("--partition", default="dirichlet-per-class:alpha=0.1,n=50")
    parser.add_argument("--hardened", nargs="*", help="Guards; all by default.")
    parser.add_argument("--times", nargs="*", type=float, help="Of both caps, one after another.")
    told = parser.parse_args()
    warnings.simplefilter("ignore", FedcohortWarning)
    first = told.partition_seed
    print(
        f"{'MNIST, 1,000 clients' if told.fleet else told.partition}, partition seeds {first} to "
        f"{first + told.partitions - 1}, {told.seeds} seeds of each, "
        f"rounds to {told.target:.0%} of {told.rounds}",
        flush=True,
    )
    tasks, changes = list(tasks_of(told)), []
    for word in told.schemes:
        scheme = SCHEMES.build(word, otherwise={"m": 20 if told.fleet else 10})
        published = curves(scheme, tasks, told, None)
        for times in told.times or [None]:
            hardened = (told.hardened or True) if times is None else capped(times)
            said, change = compared(published, curves(scheme, tasks, told, hardened), told.target)
            changes.append(change)
            if times is not None:
                promised = times * (1 + SAVED / ATTACK_ROUNDS)
                got = 100 * influence(word, hardened)
                said = f"{times:5} promised {promised:.2f} % got {got:.2f} %  {said}"
            print(f"{scheme.name:22} {said}", flush=True)
    print(f"{'the mean of all rows':22} {in_percent(np.mean(changes, axis=0))}")


if __name__ == "__main__":
    main()
