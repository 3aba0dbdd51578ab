"""Replacements for the members of a cohort that do not respond, and corrected weights."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fedcohort.core.cohort import Cohort, Reserve, ascending
from fedcohort.core.design import Design, Pool, Pools
from fedcohort.core.types import Bools, Floats, Ints
from fedcohort.maths._draws import as_integers, below, permutation, steadily_below
from fedcohort.server.dropouts._attendance import Attendance
from fedcohort.server.dropouts.base import DropOutRule, Turnout


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
        """Book answers."""
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
