"""Is the advice right? What it promises from labels or a pilot round, and what is there later.

    python benchmarks/advice.py [--partitions 101 102] [--cohorts 200]

Federations that nothing was chosen on (their seeds). After 10 rounds of md all clients train once,
which is the pilot round; the advice is held against the updates of all clients 10 rounds later,
with the laws that it had in mind. Variances relative to MD sampling; where no formula gives them,
means over drawn cohorts. Needs the data of MNIST.
"""

from __future__ import annotations

import argparse

import numpy as np

from fedcohort._internal.random import stream
from fedcohort.advice import advise
from fedcohort.schemes import scheme
from fedcohort.selection import Federation
from fedcohort.simulation import LocalWork, Problem
from fedcohort.simulation._engine import federation_of
from fedcohort.theory._moments import estimated_variance
from fedcohort.theory._pilot import Known
from fedcohort_papers.recipes.beyond._balanced import DIVISIONS, EVEN, ONE, SIZES, M
from fedcohort_papers.recipes.beyond._updates import looks

WORK = LocalWork(steps=20, batch=20, lr=0.05)
PLAIN = ("md", "uniform", "clustered-size", "pivotal", "systematic")
BY_LABELS = (*PLAIN, "local-pivotal", "balanced")
BY_PILOT = (
    *PLAIN,
    "clustered-similarity",
    "systematic:by=updates",
    "pivotal:by=updates",
    "local-pivotal:by=updates",
    "balanced:by=updates",
)


def measured(known: Known, federation: Federation, word: str, x: np.ndarray, cohorts: int) -> float:
    """The variance of the aggregate of x under the law that the advice had in mind."""
    name, _, more = word.partition(":")
    fresh = Federation.restored(federation.shares.parts, federation.sizes, len(federation))
    law = known.law(scheme(f"{name}:m={M}{',' * bool(more)}{more}"), fresh)
    if law.second_moments.startswith("exact"):
        return law.aggregate_variance(x)
    return estimated_variance(law, x, cohorts, stream(1, "measured")).variance


def held(known: Known, federation: Federation, words, later: np.ndarray, cohorts: int) -> None:
    """One advice beside what was measured."""
    told = {"label_histograms": known.label_histograms, "updates": known.updates}
    found = advise(federation, M, only=words, sweep=(), **told)
    least = {word: measured(known, federation, word, later, cohorts) for word in words}
    best, md = min(least, key=least.get), found.row("md").score
    print(f"    advised {found.recommended}; least measured: {best}", flush=True)
    for word in words[1:]:
        promised = found.row(word).score / md
        print(f"      {word:26s} promised {promised:5.2f}   is {least[word] / least['md']:5.2f}")


def main(partitions: list[int], cohorts: int) -> None:
    """Every division, every seed; by labels, then by the pilot round."""
    for division in (SIZES, EVEN, ONE):
        for seed in partitions:
            problem = Problem("mnist", DIVISIONS[division], model="softmax", partition_seed=seed)
            task = problem.task()
            federation = federation_of(task)
            seen = [updates for _, _, updates, _ in looks(task, f"md:m={M}", WORK, (10, 20), seed)]
            pilot, later = seen
            histograms = task.label_histograms
            print(f"{division}, partition {seed}\n  by labels", flush=True)
            held(Known(federation, histograms), federation, BY_LABELS, later, cohorts)
            print("  by a pilot round")
            held(Known(federation, None, pilot), federation, BY_PILOT, later, cohorts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[101, 102])
    parser.add_argument("--cohorts", type=int, default=200)
    given = parser.parse_args()
    main(given.partitions, given.cohorts)
