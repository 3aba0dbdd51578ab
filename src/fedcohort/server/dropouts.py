"""What the server does about clients that were chosen and do not answer.

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

Weights are scaled to the sum that was drawn (Hajek), and the bias of that ratio is taken out by
the jackknife (Quenouille 1956). Availability is learnt from *earlier* rounds alone, as
1/a = (asked + 1) / (answered + 1), which is unbiased but for (1 - a)^(asked + 1) / a; a client's
answer of the round itself must not enter, or the correction would be too small.

Where all members of a pool are alike this is the plain redraw, and the best there is; where they
are not, the weights see to it.

A scheme that chooses by rank (the highest losses, the fastest devices) has no law and no pools.
Its cohort may bring a reserve instead: whoever comes next takes the place of who does not answer,
with all that it weighs. Availability does not enter there: had the scheme known who would answer,
it would have chosen just so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from fedcohort.core.cohort import Cohort, Reserve
from fedcohort.core.design import Design, Pool, Pools
from fedcohort.core.parameters import Checked, Whole
from fedcohort.core.positions import ascending
from fedcohort.core.registry import Kind
from fedcohort.core.types import Bools, Floats, Ints
from fedcohort.maths.choice import as_integers
from fedcohort.maths.draws import below, permutation, steadily_below


@dataclass(frozen=True, eq=False)
class Attendance:
    """How often each client was asked to train, and how often it did.

    >>> seen = Attendance.of(3).after(np.array([0, 2]), np.array([2]))
    >>> seen.chances
    array([0.5, 1. , 1. ])
    """

    asked: Ints  # (n,)
    answered: Ints  # (n,)

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
    def weights(self, drawn: float, answered: Floats, factors: Floats) -> Floats:
        """(k,) what the answers weigh.

        ``drawn`` is the sum of the weights of the cohort, ``answered`` (k,) the weights of those
        who answered, ``factors`` (k,) by how much their chance to do so must be made up for.
        """


@dataclass(frozen=True)
class Hajek(DropOutRule):
    """Weights by learnt availability, scaled to the drawn sum; no further message."""

    name: ClassVar[str] = "hajek"

    def weights(self, drawn: float, answered: Floats, factors: Floats) -> Floats:
        return jackknifed(drawn, answered * factors)


@dataclass(frozen=True)
class Redraw(Hajek):
    """Replacements from the same cluster or stratum, then as `Hajek`; the default.

    Where a cohort was not drawn from a law, whoever comes next in its reserve, as drawn. With
    neither clusters nor strata nor a reserve it is `Hajek`.

    Parameters
    ----------
    attempts
        How often a lost draw is made again; every time costs an exchange with clients.
    """

    attempts: Annotated[int, Whole(0)] = 2

    name: ClassVar[str] = "redraw"


@dataclass(frozen=True)
class Survivors(DropOutRule):
    """The mean of whoever answered, as most frameworks do. Biased: see the module."""

    name: ClassVar[str] = "survivors"
    biased: ClassVar[bool] = True

    def weights(self, drawn: float, answered: Floats, factors: Floats) -> Floats:
        return _scaled(drawn, answered)


@dataclass(frozen=True)
class AsDrawn(DropOutRule):
    """Weights as they were; who does not answer counts as unchanged. Biased, and slower."""

    name: ClassVar[str] = "none"
    biased: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False

    def weights(self, drawn: float, answered: Floats, factors: Floats) -> Floats:
        return answered


RULES: Kind[DropOutRule] = Kind("drop-out rule", __name__, DropOutRule, default="redraw")


def dropout_rule(which: DropOutRule | str | None = None, **parameters: Any) -> DropOutRule:
    """The rule of that name; None is the default, and a rule is itself.

    >>> dropout_rule("redraw", attempts=1)
    Redraw(attempts=1)
    """
    return RULES.build(which, **parameters)


def jackknifed(drawn: float, weights: Floats) -> Floats:
    """Weights scaled to the sum ``drawn``, so that the scaling itself adds no bias.

    With H = sum_l h_l the ratio estimate is R = sum_i h_i x_i / H, R_l the same without client l,
    and the jackknife is k R - (k - 1)/k sum_l R_l: again a weighted sum of the x_i. Where it
    would give somebody a negative weight (one answer dwarfs the others) R itself is used.

    >>> jackknifed(1.0, np.array([1.0, 1.0, 2.0])).round(3)
    array([0.194, 0.194, 0.611])
    """
    k, total = len(weights), float(weights.sum())
    plain = _scaled(drawn, weights)
    if k < 2:
        return plain
    without = 1.0 / (total - weights)  # (k,) one over the sum of the others
    out: Floats = drawn * weights * (k / total - (k - 1) / k * (without.sum() - without))
    return out if np.all(np.isfinite(out)) and np.all(out >= 0) else plain


def _scaled(drawn: float, weights: Floats) -> Floats:
    total = float(weights.sum())
    return weights * (drawn / total) if total > 0 else weights


def settle(
    rule: DropOutRule,
    cohort: Cohort,
    law: Design | None,
    attendance: Attendance,
    rng: np.random.Generator,
) -> Generator[Ints, Ints, Completed]:
    """A cohort's training as a conversation: yields whom to invite, receives who answered.

    The cohort is invited first, then those who stand in for the members that are missing; it
    ends with those who answered and what they weigh. ``law`` is what the cohort was drawn from,
    None where it is not known. Nothing is touched, not even by a rounding error, as long as
    nobody ever failed.
    """
    answered = yield cohort.clients
    everyone = np.array_equal(ascending(answered), cohort.clients)
    if everyone and np.array_equal(attendance.asked, attendance.answered):  # nobody ever failed
        return Completed(cohort, attendance.after(cohort.clients, cohort.clients), 1.0)
    pools = None if law is None or not rule.attempts else law.pools()
    reserve = cohort.reserve if pools is None and rule.attempts else None
    asked, clients, weights, draws = cohort.clients, cohort.clients, cohort.weights, cohort.draws
    if not everyone:
        books = _Books(cohort, answered, len(attendance.asked))
        if pools is not None and law is not None:
            yield from _redrawn(books, pools, law.value, rule.attempts, rng)
        elif reserve is not None:
            yield from _from_reserve(books, reserve, rule.attempts, rng)
        asked, clients, weights, draws = books.result()
    now = attendance.after(asked, clients)
    filled = float(draws.sum() / cohort.draws.sum()) if len(cohort) else 1.0
    factors = np.ones(len(clients))  # a reserve: as if the scheme had known who would answer
    if reserve is None:
        factors = _factors(clients, pools, attendance, 1 + rule.attempts)
    whole = filled == 1.0 and bool(np.all(factors == 1.0))
    if whole and everyone:
        return Completed(cohort, now, filled)
    if not (whole and reserve is not None):
        weights = rule.weights(float(cohort.weights.sum()), weights, factors)
    kept = replace(cohort, clients=clients, weights=weights, draws=draws, reserve=None)
    return Completed(kept, now, filled)


def _factors(clients: Ints, pools: Pools | None, attendance: Attendance, tries: int) -> Floats:
    """(k,) A / (a_j (1 - (1 - A)^t)) for clients with a pool, 1 / a_j for the others."""
    if pools is None:
        return 1.0 / Attendance(attendance.asked[clients], attendance.answered[clients]).chances
    chances = attendance.chances
    if np.all(chances == 1.0):
        return 1.0 / chances[clients]
    average = np.minimum(1.0, pools.average(chances)[clients])
    return np.asarray(average / (chances[clients] * (1.0 - (1.0 - average) ** tries)))


class _Books:
    """Who was asked, who answered, and what everybody's draws weigh."""

    def __init__(self, cohort: Cohort, answered: Ints, n: int) -> None:
        self.cohort = cohort
        self.asked, self.answered = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.heard(cohort.clients, answered)
        self.lost = np.flatnonzero(~self.answered[cohort.clients])  # places in the cohort
        there = np.flatnonzero(self.answered[cohort.clients])
        self.weights, self.draws = np.zeros(n), np.zeros(n, dtype=np.int64)
        self.weights[cohort.clients[there]] = cohort.weights[there]
        self.draws[cohort.clients[there]] = cohort.draws[there]

    def heard(self, asked: Ints, answered: Ints) -> None:
        """Book answers."""
        self.asked[asked] = True
        self.answered[answered] = True

    def result(self) -> tuple[Ints, Ints, Floats, Ints]:
        """Who was asked; who answered, what their draws weigh, and how many they have. # (k,)."""
        clients = np.flatnonzero(self.asked & self.answered)
        return np.flatnonzero(self.asked), clients, self.weights[clients], self.draws[clients]


def _redrawn(
    books: _Books, pools: Pools, value: Floats, attempts: int, rng: np.random.Generator
) -> Generator[Ints, Ints, None]:
    """Every lost draw is made again in its pool; who is drawn weighs what its draws do."""
    cohort, extra = books.cohort, np.zeros_like(books.draws)
    lost = np.repeat(cohort.clients[books.lost], cohort.draws[books.lost]).tolist()
    for _ in range(attempts):
        tried: list[tuple[int, int]] = []  # (who is lost, to whom the draw has gone)
        taken = books.asked.copy()
        for client in lost:
            other = _drawn_in(pools.of(client), books, taken, rng)
            if other is not None and books.answered[other]:
                extra[other] += 1
            elif other is not None:  # None: the pool is exhausted, and the draw stays lost
                tried.append((client, other))
                taken[other] = True
        if not tried:
            break
        wanted = np.unique([other for _, other in tried])
        books.heard(wanted, (yield wanted))
        np.add.at(extra, [other for _, other in tried if books.answered[other]], 1)
        lost = [client for client, other in tried if not books.answered[other]]
    books.weights += extra * value
    books.draws += extra


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
