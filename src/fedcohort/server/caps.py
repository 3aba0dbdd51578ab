"""A cap on what a client claims about itself: its size, held against the median."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import is_real

LARGEST_SIZE = 10.0
"""How many times the median size a client is believed to have."""


def cap_sizes(sizes: Sequence[int], times: float | None) -> tuple[list[int], list[int]]:
    """Sizes of at most ``times`` the median, and the positions of those that claimed more.

    The median is that of the clients that have anything, the lower one of two: whoever claims
    more than the cap cannot raise it, unless half of the clients do. It is taken in exact
    integers, as sizes may be as large as 2**62. A cap is at least 1; None is no cap.

    Attackers that are the largest clients are their own quantile, so a high quantile is no cap;
    a multiple of the median is. At 10 times the median, a hundredth of the clients that claim
    anything have a tenth of the importance at most, where honest sizes are equal.

    >>> cap_sizes([20, 30, 10, 2**62], 10)
    ([20, 30, 10, 200], [3])
    >>> cap_sizes([20, 30, 10, 2**62], None)[1]
    []
    """
    told = [int(size) for size in sizes]
    if times is None:
        return told, []
    if not (is_real(times) and times >= 1):
        raise BadParameter("largest_size", "cap_sizes", "a number of at least 1, or None", times)
    some = sorted(size for size in told if size > 0)
    if not some:
        return told, []
    cap = math.floor(Fraction(times) * some[(len(some) - 1) // 2])
    return [min(size, cap) for size in told], [i for i, size in enumerate(told) if size > cap]


def cap_shares(sizes: Sequence[int], times: float) -> list[int]:
    """Sizes cut to one value so that nobody has more than ``times`` / n of their sum.

    n counts those that have anything. The value is the largest whole number k with
    ``n * k <= times * sum_i min(size_i, k)``, found by cutting the largest one after another.
    Applied again it changes nothing.

    >>> cap_shares([10, 10, 10, 10, 10**6], 2)
    [10, 10, 10, 10, 26]
    """
    if not (is_real(times) and times > 1):
        raise BadParameter("times", "cap_shares", "a number above 1", times)
    told = [int(size) for size in sizes]
    ordered = sorted((size for size in told if size > 0), reverse=True)
    n, rest, ratio = len(ordered), sum(ordered), Fraction(times)
    cut = 0
    while cut < n and ordered[cut] * (n - ratio * cut) > ratio * rest:
        rest -= ordered[cut]
        cut += 1
    if not cut:
        return told
    cap = math.floor(ratio * rest / (n - ratio * cut))
    return [min(size, cap) for size in told]
