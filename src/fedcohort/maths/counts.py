"""How often clients are drawn, and what the others weigh."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

Floats = NDArray[np.float64]

UNLIKELY = 1e-18
"""Numbers of draws that are less likely than this are left out of a law."""


def largest_of_others(weight: Floats, possible: NDArray[Any]) -> Floats:
    """(n,) the largest weight among the other clients that can be drawn.

    >>> largest_of_others(np.array([1.0, 5.0, 2.0, 9.0]), np.array([1, 1, 1, 0]))
    array([5., 2., 5., 5.])
    """
    weight = np.where(possible > 0, weight, 0.0)
    if len(weight) < 2:
        return np.zeros(len(weight))
    second, first = np.sort(weight)[-2:]
    out = np.full(len(weight), first)
    out[int(np.argmax(weight))] = second
    return out


def count_tails(chances: Floats, repeats: int) -> Floats:
    """(n, k) P(c >= 1), ..., P(c >= k) of sums of binomial counts.

    ``chances`` (n, r): client i is drawn with each of its r chances ``repeats`` times,
    independently. Numbers of draws with a chance below 1e-18 for all clients are left out.

    >>> count_tails(np.array([[0.5, 0.0], [0.5, 1.0]]), 1)
    array([[0.5, 0. ],
           [1. , 0.5]])
    """
    most = repeats * int((chances > 0).sum(axis=1).max(initial=1))
    mean = float(repeats * chances.sum(axis=1).max(initial=0.0))
    kept = _enough(mean, most)
    counts = np.zeros((len(chances), kept + 1))  # the chance of 0, 1, ..., kept draws
    numbers = np.arange(min(repeats, kept) + 1)
    counts[:, numbers] = _binomial(numbers, repeats, chances[:, :1])
    for column in chances.T[1:]:
        some = column > 0
        one = _binomial(numbers, repeats, column[some, None])  # (s, numbers)
        old, new = counts[some], np.zeros((int(some.sum()), kept + 1))
        for number in numbers:
            new[:, number:] += one[:, number, None] * old[:, : kept + 1 - number]
        counts[some] = new
    tails: Floats = np.minimum(1.0, np.cumsum(counts[:, :0:-1], axis=1)[:, ::-1])
    return tails


def _binomial(numbers: NDArray[Any], repeats: int, chances: Floats) -> Floats:
    """(n, k) chances of so many draws; scipy.stats has it too, but takes its time to import."""
    ways = gammaln(repeats + 1) - gammaln(numbers + 1) - gammaln(repeats - numbers + 1)
    log = ways + xlogy(numbers, chances) + xlog1py(repeats - numbers, -chances)
    return np.asarray(np.exp(np.minimum(log, 0.0)))


def _enough(mean: float, most: int) -> int:
    """The first number of draws whose chance is below 1e-18 by Chernoff's bound, or all."""
    number = max(1, int(np.ceil(mean)))
    if mean == 0:
        return number
    while number < most and number - mean + number * np.log(mean / number) > np.log(UNLIKELY):
        number += 1
    return number
