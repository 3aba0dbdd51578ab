"""Many cohorts of a design at once: the Monte-Carlo twin of every formula here.

`Design.draw` makes one cohort, as a server would. A check by simulation wants 100,000; this
draws the same law as one matrix of weights.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from fedcohort._internal.errors import TooLarge
from fedcohort._internal.parameters import Whole, within_ranges
from fedcohort._internal.types import Bools, Floats, Ints
from fedcohort.designs import Bernoulli, Everyone, Rows, Simple, Stratified
from fedcohort.maths._draws import coins, pick
from fedcohort.selection._design import Design
from fedcohort.theory.ranges import COUNT

WEIGHT_LIMIT = 200_000_000
"""Above this many weights (rounds x clients) nothing is drawn."""


@within_ranges
def drawn_weights(
    design: Design, rounds: Annotated[int, Whole(0, COUNT.high)], rng: np.random.Generator
) -> Floats:
    """(rounds, n) the weights of independent cohorts; a client that was not drawn has 0.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=2).law(Federation.from_sizes([6, 3, 1]))
    >>> drawn_weights(md, 3, np.random.Generator(np.random.Philox(1))).sum(axis=1)
    array([1., 1., 1.])
    """
    if rounds * design.n > WEIGHT_LIMIT:
        raise TooLarge(
            f"{rounds} rounds of {design.n} clients are {rounds * design.n:.1e} weights; "
            f"draw at most {WEIGHT_LIMIT:.0e} at once."
        )
    match design:
        case Everyone():
            return np.tile(design.value, (rounds, 1))
        case Rows():
            return _counts(design, rounds, rng) * design.value
        case Simple():
            return _chosen(design, rounds, rng) * design.value
        case Bernoulli():
            shown = coins(rng, np.tile(design.parts, rounds), design.whole)
            return shown.reshape(rounds, design.n) * design.value
        case Stratified():
            return _by_stratum(design, rounds, rng)
        case _:
            return one_by_one(design, rounds, rng)


class Estimate(NamedTuple):
    """A variance found by drawing cohorts, with its 95 % interval."""

    variance: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return (
            f"Monte Carlo, {self.rounds} cohorts: between {self.low:.3g} and {self.high:.3g} (95 %)"
        )


def estimated_variance(design: Design, x: Floats, rounds: int, rng: Any) -> Estimate:
    """E ||sum_i omega_i x_i - E(...)||^2 where no formula gives it: a mean over cohorts. # (n, d).

    The mean of the sum is known exactly, so the squared distances are independent and their mean
    is unbiased.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=2).law(Federation.from_sizes([1, 1]))
    >>> rng = np.random.Generator(np.random.Philox(1))
    >>> estimated_variance(md, np.array([[1.0], [-1.0]]), 400, rng).low < 0.5
    True
    """
    centre = design.mean() @ x
    squares = np.empty(rounds)
    for number in range(rounds):
        cohort = design.draw(rng)
        squares[number] = np.sum((cohort.weights @ x[cohort.clients] - centre) ** 2)
    mean, error = float(squares.mean()), float(squares.std(ddof=1)) / rounds**0.5
    return Estimate(mean, max(0.0, mean - 1.96 * error), mean + 1.96 * error, rounds)


def one_by_one(design: Design, rounds: int, rng: Any) -> Floats:
    """The slow, obvious twin of `drawn_weights`: one `Design.draw` after the other."""
    out = np.zeros((rounds, design.n))
    for row in out:
        cohort = design.draw(rng)
        row[cohort.clients] = cohort.weights
    return out


def _counts(design: Rows, rounds: int, rng: np.random.Generator) -> Ints:
    """(rounds, n) how often each client is drawn."""
    rows = np.tile(np.repeat(np.arange(design.rows), design.repeats), rounds)
    segments = pick(rng, design.cumulative, design.width, rows)
    clients = segments if design.clients is None else design.clients[segments]
    cells = np.repeat(np.arange(rounds), design.draws) * design.n + clients
    return np.bincount(cells, minlength=rounds * design.n).reshape(rounds, design.n)


def _chosen(design: Simple, rounds: int, rng: np.random.Generator) -> Bools:
    """(rounds, n) who is chosen: the m smallest of as many random words as there are clients."""
    total = len(design.support)
    out = np.zeros((rounds, design.n), dtype=bool)
    if design.m >= total:
        out[:, design.support] = True
        return out
    words = rng.bit_generator.random_raw(rounds * total).reshape(rounds, total)
    smallest = np.argpartition(words, design.m, axis=1)[:, : design.m]
    np.put_along_axis(out, design.support[smallest], True, axis=1)
    return out


def _by_stratum(design: Stratified, rounds: int, rng: np.random.Generator) -> Floats:
    out = np.zeros((rounds, design.n))
    for positions, part, scale in zip(design.strata, design.parts, design.scale, strict=True):
        out[:, positions] = float(scale) * drawn_weights(part, rounds, rng)
    return out
