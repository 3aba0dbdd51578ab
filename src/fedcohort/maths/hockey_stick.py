"""Hockey-stick divergences: how well two laws can be told apart.

H_a(P || Q) = sup_S P(S) - a Q(S), for a > 0. A mechanism is (eps, delta)-differentially private
exactly where H_a(P || Q) <= delta for a = e^eps and every two neighbours P, Q. As a function of
a it is the *profile* of the pair: convex, falling from 1, at least 1 - a, and
H_a(P || Q) = 1 - a + a H_{1/a}(Q || P).

All functions take losses eps = log a, as an array.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

Floats = NDArray[np.float64]


def gaussian(distance: float, losses: Floats) -> Floats:
    """The profile of N(distance, 1) and N(0, 1), in either order.

    >>> gaussian(1.0, np.array([0.0])).round(4)  # twice Phi(1/2), minus 1
    array([0.3829])
    """
    if distance <= 0:
        return nothing(losses)
    if np.isinf(distance):
        return np.ones_like(losses)
    half = distance / 2
    away = np.exp(losses + log_ndtr(-half - losses / distance))
    out: Floats = np.clip(ndtr(half - losses / distance) - away, 0.0, 1.0)
    return np.maximum(out, nothing(losses))


def nothing(losses: Floats) -> Floats:
    """The profile of two equal laws: (1 - a)_+."""
    out: Floats = -np.expm1(np.minimum(losses, 0.0))
    return out


def drawn(chances: Floats, distance: float, losses: Floats) -> Floats:
    """sum_k chances_k H(N(k distance, 1), N(0, 1)), k = 1, 2, ...: the number k is seen."""
    out = np.zeros_like(losses)
    for number, chance in enumerate(chances, start=1):
        if chance > 0:
            out += chance * gaussian(number * distance, losses)
    return out


def amplified(chances: Floats, distance: float, losses: Floats) -> Floats:
    """The same where it is not seen that k > 0, for losses of at least 0.

    With q the sum of the chances, sum_k chances_k H_{1 + (a - 1) / q}: Theorem 2 of Balle, Barthe
    and Gaboardi (2018), `docs/privacy.md` derives it. It grows with every chance P(c >= k) and
    with the distance, so the largest of each bounds many clients at once.
    """
    q = float(chances.sum())
    if q <= 0:
        return nothing(losses)
    return drawn(chances, distance, np.log1p(np.expm1(losses) / q))


def mixture_second(chance: float, distance: float, losses: Floats) -> Floats:
    """N(0, 1) and (1 - q) N(0, 1) + q N(distance, 1), in this order, for losses of at least 0.

    Exact: with a (1 - q) < 1 it is (1 - a (1 - q)) H_b(N(0, 1), N(distance, 1)) at
    b = a q / (1 - a (1 - q)), and otherwise 0.
    """
    left = 1.0 - np.exp(losses) * (1.0 - chance)
    out = np.zeros_like(losses)
    some = left > 0
    out[some] = left[some] * gaussian(distance, losses[some] + np.log(chance / left[some]))
    return out


def opposite_mixtures(chance: float, distance: float, losses: Floats) -> Floats:
    """(1 - q) N(0, 1) + q N(d, 1) and (1 - q) N(0, 1) + q N(-d, 1), for losses of at least 0.

    Exact: the ratio of the densities grows with x, and passes a where t = e^(dx) solves
    s t^2 + (1 - q)(1 - a) t - a s = 0, with s = q e^(-d^2/2).
    """
    stay, shrunk = 1.0 - chance, -np.expm1(-losses)  # 1 - 1/a
    log_s = np.log(chance) - distance**2 / 2
    root = np.sqrt((stay * shrunk) ** 2 + 4 * np.exp(2 * log_s - losses))
    cut = (losses + np.log(stay * shrunk + root) - np.log(2) - log_s) / distance
    ours = stay * ndtr(-cut) + chance * ndtr(distance - cut)
    theirs = stay * np.exp(losses + log_ndtr(-cut)) + chance * np.exp(
        losses + log_ndtr(-distance - cut)
    )
    out: Floats = np.clip(ours - theirs, 0.0, 1.0)
    return out


def convex(points: Floats, values: Floats) -> NDArray[np.intp]:
    """Positions of the points on the largest convex function below all of them.

    >>> convex(np.arange(4.0), np.array([1.0, 0.9, 0.2, 0.1]))
    array([0, 2, 3])
    """
    kept = np.arange(len(points))
    while len(kept) > 2:
        slopes = np.diff(values[kept]) / np.diff(points[kept])
        # A point above the chord of its neighbours lies above the hull, whatever else is left.
        below = np.concatenate([[True], slopes[1:] > slopes[:-1], [True]])
        if below.all():
            break
        kept = kept[below]
    return kept
