"""Weights by learnt availability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.parameters import OneOf
from fedcohort.core.types import Floats
from fedcohort.server.dropouts.base import DropOutRule, Turnout, scaled


def differenced(turnout: Turnout) -> Floats:
    """Return the weights of the difference estimator, which is unbiased if the factors are exact.

    Let x_i be the update of client i, w_i its weight, f_i = 1 / P(i replies), h_i = w_i f_i, S the
    clients that replied. A drawn client counts as the mean c_i of the *others*, and if it replies,
    as that plus f_i times the difference of its update from it::

        sum_i w_i c_i  +  sum_(i in S) h_i (x_i - c_i),    c_i = sum_(j in S, not i) h_j x_j / H_i

    c_i does not depend on whether i replies, so the expectation is sum_i w_i x_i, whatever the
    weights are. H_i is the sum of the h_j, but at least V = sum_i (h_i - w_i)+ over all drawn
    clients: with less, a client of small weight could count negatively. With V it never does.

    >>> replied = np.array([True, True, True, False])
    >>> differenced(Turnout(1.0, np.full(4, 0.25), np.ones(4), np.full(4, 2.0), replied)).round(3)
    array([0.333, 0.333, 0.333])
    """
    w, there = turnout.weights, turnout.replied
    h, w_there = (w * turnout.factors)[there], w[there]
    if not len(h):
        return h
    lost, total = turnout.drawn - w_there.sum(), h.sum()
    least = np.maximum(w * (turnout.factors - 1), 0).sum() + max(-lost, 0)
    of_others = np.maximum(total - h, least)
    rest = np.divide(w_there - h, of_others, out=np.zeros_like(h), where=of_others > 0)
    for_lost = lost / max(total, least) if max(total, least) > 0 else 0
    out: Floats = h * np.maximum(1 + for_lost + rest.sum() - rest, 0)  # below 0 by rounding alone
    return out


def by_draws(turnout: Turnout) -> Floats:
    """Return w_i f_i, scaled so that the factors of all draws sum to the number of draws."""
    draws, there = np.maximum(turnout.draws, 1), turnout.replied
    sums = jackknifed(float(draws.sum()), (draws * turnout.factors)[there])
    return turnout.weights[there] * sums / draws[there]


def by_weights(turnout: Turnout) -> Floats:
    """Return w_i f_i, scaled to the sum of the weights as drawn; biased if weights differ."""
    return jackknifed(turnout.drawn, unscaled(turnout))


def unscaled(turnout: Turnout) -> Floats:
    """Return w_i f_i."""
    return (turnout.weights * turnout.factors)[turnout.replied]


def jackknifed(drawn: float, weights: Floats) -> Floats:
    """Weights scaled to the sum ``drawn``, so that the scaling itself adds little bias.

    With H = sum_l h_l the ratio estimate is R = sum_i h_i x_i / H, R_l the same without client l,
    and the jackknife is k R - (k - 1)/k sum_l R_l: again a weighted sum of the x_i. Where it
    would give somebody a negative weight (one answer dwarfs the others) R itself is used.

    >>> jackknifed(1.0, np.array([1.0, 1.0, 2.0])).round(3)
    array([0.194, 0.194, 0.611])
    """
    k, total = len(weights), float(weights.sum())
    plain = scaled(drawn, weights)
    if k < 2 or total <= 0:
        return plain
    with np.errstate(divide="ignore", invalid="ignore"):  # the others may weigh nothing
        without = 1.0 / (total - weights)  # (k,) one over the sum of the others
        out: Floats = drawn * weights * (k / total - (k - 1) / k * (without.sum() - without))
    return out if np.all(np.isfinite(out)) and np.all(out >= 0) else plain


SCALES: Mapping[str, Callable[[Turnout], Floats]] = {
    "difference": differenced,
    "draws": by_draws,
    "weights": by_weights,
    "none": unscaled,
}


@dataclass(frozen=True, kw_only=True)
class Hajek(DropOutRule):
    """Weights by learnt availability; no further message.

    Parameters
    ----------
    scale
        What holds the sum of the weights together. ``difference``: a client that does not reply
        counts as the mean of those that do; unbiased for every scheme. ``draws``: weights are
        scaled to the number of draws. ``weights``: to the sum of the drawn weights, which is
        biased if they differ. ``none``: nothing; unbiased, and the sum varies.
    """

    scale: Annotated[str, OneOf(tuple(SCALES))] = "difference"

    name: ClassVar[str] = "hajek"

    def weights(self, turnout: Turnout) -> Floats:
        return SCALES[self.scale](turnout)
