"""Weights of conditional Poisson sampling that give the chances that are wanted.

Poisson sampling with odds w_i, given that k units come, has the law P(S) ~ prod_{i in S} w_i:
of all laws of k units with its chances the one of most entropy (Chen, Dempster and Liu, 1994).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 200
"""Most steps towards the weights; ten or so are taken."""
LONGEST = 16.0
"""A weight changes by no more than this factor in a step."""
CLOSE = 1e-13
"""Chances that are as near as this to those wanted will do."""


def numbers_from(chances: Floats, k: int) -> Floats:
    """(n + 1, k + 1) the probability that r of the independent units i, i + 1, ... come.

    >>> numbers_from(np.array([0.5, 0.5]), 2)[0]
    array([0.25, 0.5 , 0.25])
    """
    out = np.zeros((len(chances) + 1, k + 1))
    out[-1, 0] = 1.0
    for i in range(len(chances) - 1, -1, -1):
        out[i] = (1.0 - chances[i]) * out[i + 1]
        out[i, 1:] += chances[i] * out[i + 1, :-1]
    return out


def inclusion_of(weights: Floats, k: int) -> Floats:
    """(n,) the chances of conditional Poisson sampling of k units with these weights (odds).

    >>> inclusion_of(np.array([1.0, 1.0, 2.0]), 2).round(6)
    array([0.6, 0.6, 0.8])
    """
    chances = weights / (1.0 + weights)
    after = numbers_from(chances, k)
    out, state = np.zeros(len(weights)), np.zeros(k + 1)  # how many are still to come
    state[k] = 1.0
    for i, chance in enumerate(chances.tolist()):
        takes = np.zeros(k + 1)
        takes[1:] = np.divide(
            chance * after[i + 1, :-1], after[i, 1:], out=np.zeros(k), where=after[i, 1:] > 0
        )
        moved = state * takes
        out[i] = moved.sum()
        state = state - moved
        state[:-1] += moved[1:]
    return out


def weights_for(inclusion: Floats, k: int) -> Floats:
    """(n,) weights whose conditional Poisson law has these chances in (0, 1), which sum to k.

    They are found up to a common factor, with which about k units would come by themselves.

    >>> found = weights_for(np.array([0.6, 0.6, 0.8]), 2)
    >>> (found / found[0]).round(6)
    array([1., 1., 2.])
    """
    odds = inclusion / (1.0 - inclusion)
    weights = odds.copy()
    for _ in range(STEPS):
        found = inclusion_of(weights, k)
        if np.abs(found - inclusion).max() < CLOSE:
            break
        # Odds for odds, a little less: of equal units a step of Newton's method. A long step is
        # cut, since from far away it leads nowhere.
        found = np.clip(found, 1e-300, 1.0 - 1e-16)
        step = (odds * (1.0 - found) / found) ** ((len(odds) - 1) / len(odds))
        weights *= np.clip(step, 1.0 / LONGEST, LONGEST)
    return weights
