"""A size that nobody reported can be read off who answers; not if everybody does."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from fedcohort import LocalWork, scheme, simulate
from fedcohort._internal.types import Bools, Floats, Ints
from fedcohort.simulation import Quadratic

ROUNDS = 100
SIZES = np.maximum(1, np.exp(3 + np.random.default_rng(0).standard_normal(200)).astype(np.int64))


def guessed_sizes(answered: Bools, rate: float) -> Floats:
    """The most likely size behind k answers in T rounds: 1 - (1 - rate)^n = k / T."""
    share = np.clip(answered.mean(axis=0), 0.5 / ROUNDS, 1 - 0.5 / ROUNDS)
    out: Floats = np.log(1 - share) / np.log(1 - rate)
    return out


def played() -> tuple[Bools, Ints, float]:
    """(T, n) who drew a sample, how often each took part, and the rate."""
    task = Quadratic(np.ones((len(SIZES), 1)), sizes=SIZES)
    samples = int(SIZES.sum()) // 50
    trace = simulate(
        task,
        scheme("fedsampling", K=samples, mechanism="exact"),
        rounds=ROUNDS,
        work=LocalWork(steps=1, batch=None, lr=0.1),
        evaluate_every=ROUNDS,
    )
    drew = np.stack([trace.cohort(t).weights > 0 for t in range(ROUNDS)])
    return drew, trace.participation, samples / float(SIZES.sum())


def test_silence_tells_the_size_and_zero_updates_do_not() -> None:
    drew, participation, rate = played()
    guesses = guessed_sizes(drew, rate)  # if only those with a sample answered
    error = np.median(np.abs(guesses - SIZES) / SIZES)
    assert spearmanr(guesses, SIZES).statistic > 0.9
    assert error < 0.25
    assert (participation == ROUNDS).all()  # what the server sees: everybody, always
