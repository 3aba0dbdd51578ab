"""Drop-out rules: weights and replacements when invited clients do not reply.

The problem. Client i answers with probability a_i, and a_i often goes with its data: phones of
the poor, hospitals at night. The mean of whoever answered is then wrong, by 20 % in common
settings, and neither inviting more clients nor redrawing from everyone repairs it, because
those who answer are still the same kind.

Symbols: omega_j the weight of client j as drawn, ``t`` the exchanges a draw may take (1, plus
``attempts`` replacements), r_j the chance of j in its *pool* (its row of clustered sampling, its
stratum), A = sum_j r_j a_j the availability of that pool.

The rule. A draw whose client fails is made again in the same pool, up to ``attempts`` times. It
then ends at j with probability r_j a_j (1 - (1 - A)^t) / A instead of r_j, so the answer weighs::

    h_j = omega_j * A / (a_j (1 - (1 - A)^t))          (omega_j / a_j without replacements)

Alone, these weights are unbiased, but their sum varies with the number of answers. So a client
that does not answer counts as the mean of those that do, and one that does as that mean plus
h_j / omega_j times what its update differs from it (`Hajek`, ``scale=difference``). The mean leaves
out the client itself, so whether it answers is independent of it, and the expected weight stays
omega_j whatever the weights are. Scaling the h_j to the sum that was drawn (``scale=weights``) is
biased where weights differ, as those of ``uniform`` do.

Availability is learnt from *earlier* rounds alone, as 1/a = (asked + 1) / (answered + 1), which is
unbiased but for (1 - a)^(asked + 1) / a; a client's answer of the round itself must not enter, or
the correction would be too small.

Where pools overlap (the neighbours of each client, in designs that spread or balance a cohort),
A / (1 - (1 - A)^t) becomes 1 / v_j, v_j how often a draw comes to j (`Pools.visits`), and the
stand-ins of all who are missing are drawn at once, by the design itself (`Pools.together`).

Where all members of a pool are alike this is the plain redraw, and the best there is; where they
are not, the weights see to it.

A scheme that chooses by rank (the highest losses, the fastest devices) has no law and no pools.
Its cohort may bring a reserve instead: whoever comes next takes the place of who does not answer,
with all that it weighs. Availability does not enter there: had the scheme known who would answer,
it would have chosen just so.

Other packages add theirs through the entry point group ``fedcohort.drop_out_rules``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Checked, OneOf, Whole
from fedcohort._internal.registry import Kind
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Bools, Floats, Ints
from fedcohort.maths._draws import as_integers, below, permutation, steadily_below
from fedcohort.selection._cohort import Cohort, Reserve, ascending, missing_from
from fedcohort.selection._design import Design, Pool, Pools

# Who was asked to train, and who did.


@dataclass(frozen=True, eq=False)
class Attendance:
    """How often each client was asked to train, and how often it did.

    >>> seen = Attendance.of(3).after(np.array([0, 2]), np.array([2]))
    >>> seen.chances
    array([0.5, 1. , 1. ])
    """

    asked: Annotated[Ints, Shaped("n", low=0)]
    answered: Annotated[Ints, Shaped("n", low=0)]

    @classmethod
    def of(cls, n: int) -> Self:
        """Nobody was asked yet."""
        return cls(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))

    def after(self, asked: Ints, answered: Ints) -> Attendance:
        """The counts after one more round."""
        out = replace(self, asked=self.asked.copy(), answered=self.answered.copy())
        out.asked[asked] += 1
        out.answered[answered] += 1
        return out

    def moved(self, came_from: Ints) -> Attendance:
        """The counts after clients came or left; -1 for a client that is new."""
        new = came_from < 0
        return Attendance(
            np.where(new, 0, self.asked[came_from]), np.where(new, 0, self.answered[came_from])
        )

    @property
    def chances(self) -> Floats:
        """(n,) what is believed of each client's availability."""
        return (self.answered + 1) / (self.asked + 1)


# What drop-out rules share.


class Turnout(NamedTuple):
    """Who replied in a round, and whose draws are lost: (k,) clients, in ascending order.

    A client whose lost draws all went to others is not among them.
    """

    drawn: float
    """The sum of the weights of the cohort as drawn."""
    weights: Floats
    """What the draws of each client weigh; of a client that did not reply, its lost draws."""
    draws: Ints
    factors: Floats
    """By how much the chance of each client to reply must be made up for."""
    replied: Bools


class DropOutRule(Checked, ABC):
    """What becomes of the weights when chosen clients do not answer."""

    name: ClassVar[str]
    biased: ClassVar[bool] = False
    """Whether the step leans towards clients that answer more often."""
    attempts: int = 0
    """How often a lost draw is made again."""
    needs_rows: ClassVar[bool] = True
    """Whether weights are known only once it is known who answered."""

    @abstractmethod
    def weights(self, turnout: Turnout) -> Floats:
        """Return what the replies weigh, one number for each client that replied."""


def scaled(drawn: float, weights: Floats) -> Floats:
    """Weights of the sum ``drawn``; the ratio estimate."""
    total = float(weights.sum())
    return weights * (drawn / total) if total > 0 else weights


# Replacements for the members of a cohort that do not respond, and corrected weights.


class Completed(NamedTuple):
    """A round after its drop-outs."""

    cohort: Cohort
    """Those who answered, with corrected weights."""
    attendance: Attendance
    filled: float
    """The share of the draws that somebody answered; 1 if nobody was drawn."""

    def void(self, quorum: float) -> bool:
        """Whether too few answered for a step. That nobody was drawn is no drop-out."""
        return self.filled < quorum or self.filled == 0


def settle(
    rule: DropOutRule,
    cohort: Cohort,
    law: Design | None,
    attendance: Attendance,
    rng: np.random.Generator,
    answered: Ints,
) -> Generator[Ints, Ints, Completed]:
    """Replace and reweigh the members of a cohort that did not respond.

    ``answered`` are the clients of the cohort that responded, in any order. The generator yields
    replacements to invite, receives those that respond, and returns the clients that count, with
    their weights. ``law`` is the design that the cohort was drawn from, None if it is not known.
    As long as no client ever failed the cohort is returned as it is, without rounding errors.
    """
    everyone = np.array_equal(ascending(answered), cohort.clients)
    pools = None if law is None or not rule.attempts else law.pools()
    reserve = cohort.reserve if pools is None and rule.attempts else None
    asked, clients, weights, draws = cohort.clients, cohort.clients, cohort.weights, cohort.draws
    replied = np.ones(len(clients), dtype=bool)
    if not everyone:
        books = _Books(cohort, answered, len(attendance.asked))
        if pools is not None and law is not None:
            yield from _redrawn(books, pools, law.value, rule.attempts, rng)
        elif reserve is not None:
            yield from _from_reserve(books, reserve, rule.attempts, rng)
        asked, clients, weights, draws, replied = books.result()
    here, times = clients[replied], draws[replied]
    now = attendance.after(asked, here)
    filled = float(times.sum() / cohort.draws.sum()) if len(cohort) else 1.0
    factors = np.ones(len(clients))  # a reserve: as if the scheme had known who would answer
    if reserve is None:
        factors = _factors(clients, pools, attendance, 1 + rule.attempts)
    whole = filled == 1.0 and bool(np.all(factors == 1.0))
    if whole and everyone:
        return Completed(cohort, now, filled)
    counted = weights[replied]
    if not (whole and reserve is not None):
        drawn = float(cohort.weights.sum())
        counted = rule.weights(Turnout(drawn, weights, draws, factors, replied))
    kept = replace(cohort, clients=here, weights=counted, draws=times, reserve=None)
    return Completed(kept, now, filled)


def _factors(clients: Ints, pools: Pools | None, attendance: Attendance, tries: int) -> Floats:
    """(k,) 1 / (a_j v_j) for clients to whom a draw comes v_j times, 1 / a_j without pools."""
    if pools is None:
        return 1.0 / Attendance(attendance.asked[clients], attendance.answered[clients]).chances
    chances = attendance.chances
    if np.all(chances == 1.0):
        return 1.0 / chances[clients]
    return 1.0 / (chances * pools.visits(chances, tries))[clients]


class _Books:
    """Who was asked, who answered, and what everybody's draws weigh."""

    def __init__(self, cohort: Cohort, answered: Ints, n: int) -> None:
        self.cohort = cohort
        self.asked, self.answered = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.heard(cohort.clients, answered)
        self.lost = np.flatnonzero(~self.answered[cohort.clients])  # places in the cohort
        self.weights, self.draws = np.zeros(n), np.zeros(n, dtype=np.int64)
        self.weights[cohort.clients] = cohort.weights
        self.draws[cohort.clients] = cohort.draws

    def heard(self, asked: Ints, answered: Ints) -> None:
        """Book answers; raise BadInput for one of a client that was not asked."""
        if len(strangers := missing_from(ascending(asked), answered)):
            raise BadInput(f"Only invited clients can respond; {strangers[:5].tolist()} were not.")
        self.asked[asked] = True
        self.answered[answered] = True

    def moved(self, draws: list[tuple[int, int]], value: Floats) -> None:
        """Book draws that have gone from one client to another, whose draws weigh ``value``."""
        left, came = (
            np.bincount(np.array(clients, dtype=np.int64), minlength=len(self.draws))
            for clients in ([one for one, _ in draws], [other for _, other in draws])
        )
        self.weights -= self.weights * left / np.maximum(self.draws, 1)
        self.weights += came * value
        self.draws += came - left

    def result(self) -> tuple[Ints, Ints, Floats, Ints, Bools]:
        """Who was asked; (k,) whose draws count or are lost, their weights, number, and which."""
        replied = self.asked & self.answered
        clients = np.flatnonzero(replied | (self.draws > 0))
        weights, draws = self.weights[clients], self.draws[clients]
        return np.flatnonzero(self.asked), clients, weights, draws, replied[clients]


def _redrawn(
    books: _Books, pools: Pools, value: Floats, attempts: int, rng: np.random.Generator
) -> Generator[Ints, Ints, None]:
    """Every lost draw is made again in its pool; who is drawn weighs what its draws do."""
    cohort, filled = books.cohort, list[tuple[int, int]]()
    lost = np.repeat(cohort.clients[books.lost], cohort.draws[books.lost]).tolist()
    for _ in range(attempts):
        tried: list[tuple[int, int]] = []  # (who is lost, to whom the draw has gone)
        taken = books.asked.copy()
        found = pools.together(lost, ~taken, rng)
        for k, client in enumerate(lost):
            other = found[k] if found else _drawn_in(pools.of(client), books, taken, rng)
            if other is not None and books.answered[other]:
                filled.append((client, other))
            elif other is not None:  # None: the pool is exhausted, and the draw stays lost
                tried.append((client, other))
                taken[other] = True
        if not tried:
            break
        wanted = np.unique([other for _, other in tried])
        books.heard(wanted, (yield wanted))
        filled += [(client, other) for client, other in tried if books.answered[other]]
        lost = [client for client, other in tried if not books.answered[other]]
    books.moved(filled, value)


def _drawn_in(pool: Pool, books: _Books, taken: Bools, rng: np.random.Generator) -> int | None:
    """Somebody of the pool who is not known to be away; or, without repetition, not taken."""
    barred = taken[pool.clients]
    if pool.again:
        barred = books.asked[pool.clients] & ~books.answered[pool.clients]
    clients, chances = pool.clients[~barred], pool.chances[~barred]
    if not len(clients):
        return None
    edges = np.cumsum(as_integers(chances))
    whole = int(edges[-1])
    ticket = steadily_below(rng, whole) if pool.rounded else int(below(rng, whole, 1)[0])
    return int(clients[np.searchsorted(edges, ticket, side="right")])


def _from_reserve(
    books: _Books, reserve: Reserve, attempts: int, rng: np.random.Generator
) -> Generator[Ints, Ints, None]:
    """Every lost place goes to who comes next, with all that it weighs."""
    shuffled = permutation(rng, len(reserve.clients))
    queue = shuffled[np.argsort(reserve.ranks[shuffled], kind="stable")].tolist()
    for _ in range(attempts):
        taken = _next_up(books.lost.tolist(), queue, reserve)
        if not taken:
            return
        others = reserve.clients[list(taken.values())]
        books.heard(others, (yield np.sort(others)))
        places, came = np.array(list(taken)), books.answered[others]
        books.weights[others[came]] = books.cohort.weights[places[came]]
        books.draws[others[came]] = books.cohort.draws[places[came]]
        books.draws[books.cohort.clients[places[came]]] = 0
        books.lost = np.setdiff1d(books.lost, places[came])


def _next_up(lost: list[int], queue: list[int], reserve: Reserve) -> dict[int, int]:
    """Who of the reserve takes which place of the cohort; they leave the queue."""
    taken: dict[int, int] = {}
    for own in (True, False):  # all own groups first: none lends whom it needs itself
        for place in lost:
            group = reserve.members[place]
            fits = (i for i in queue if not own or reserve.groups[i] == group)
            if place not in taken and (found := next(fits, None)) is not None:
                queue.remove(found)
                taken[place] = found
    return taken


# Weights by learnt availability.


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


# Nothing is done about drop-outs.


@dataclass(frozen=True)
class AsDrawn(DropOutRule):
    """Weights as they were; who does not answer counts as unchanged. Biased, and slower."""

    name: ClassVar[str] = "none"
    biased: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False

    def weights(self, turnout: Turnout) -> Floats:
        return turnout.weights[turnout.replied]


# Replacements, then weights by learnt availability.


@dataclass(frozen=True)
class Redraw(Hajek):
    """Replacements from the same cluster or stratum, then as `Hajek`; the default.

    Where a cohort was not drawn from a law, whoever comes next in its reserve, as drawn. With
    neither clusters nor strata nor a reserve it is `Hajek`.

    Parameters
    ----------
    scale
        As for `Hajek`.
    attempts
        How often a lost draw is made again; every time costs an exchange with clients.
    """

    attempts: Annotated[int, Whole(0)] = 2

    name: ClassVar[str] = "redraw"


# The mean of whoever answered.


@dataclass(frozen=True)
class Survivors(DropOutRule):
    """The mean of whoever answered, as most frameworks do. Biased: see the package."""

    name: ClassVar[str] = "survivors"
    biased: ClassVar[bool] = True

    def weights(self, turnout: Turnout) -> Floats:
        return scaled(turnout.drawn, turnout.weights[turnout.replied])


RULES: Kind[DropOutRule] = Kind("drop-out rule", (__name__,), DropOutRule, default="redraw")


def dropout_rule(which: DropOutRule | str | None = None, **parameters: Any) -> DropOutRule:
    """The rule of that name; None is the default, and a rule is itself.

    >>> dropout_rule("redraw", attempts=1)
    Redraw(scale='difference', attempts=1)
    """
    return RULES.build(which, **parameters)
