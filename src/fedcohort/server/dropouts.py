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
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.design import Design, Pools
from fedcohort.core.parameters import Checked, Whole
from fedcohort.core.types import Floats, Ints
from fedcohort.maths.choice import as_integers
from fedcohort.maths.draws import pick
from fedcohort.server.named import named

Train = Callable[[Ints], Ints]
"""Asks clients to train and returns those that did: positions in, positions out."""


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

    A scheme without clusters or strata gets no replacements: it is `Hajek`.

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
class Nothing(DropOutRule):
    """Weights as they were; who does not answer counts as unchanged. Biased, and slower."""

    name: ClassVar[str] = "none"
    biased: ClassVar[bool] = True

    def weights(self, drawn: float, answered: Floats, factors: Floats) -> Floats:
        return answered


RULES: dict[str, type[DropOutRule]] = {r.name: r for r in (Redraw, Hajek, Survivors, Nothing)}


def dropout_rule(which: DropOutRule | str | None = None, **parameters: Any) -> DropOutRule:
    """The rule of that name; None is the default, and a rule is itself.

    >>> dropout_rule("redraw", attempts=1)
    Redraw(attempts=1)
    """
    if isinstance(which, DropOutRule) and not parameters:
        return which
    return named("drop-out rule", RULES, Redraw.name if which is None else which, parameters)


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
    answered = set((yield cohort.clients).tolist())
    pools = None if law is None or not rule.attempts else law.pools()
    books = _Books(cohort, None if law is None else law.value, pools, answered)
    for _ in range(rule.attempts if pools is not None else 0):
        wanted = books.redraw(rng)
        if len(wanted):
            books.heard(wanted, (yield wanted))
    clients, weights, draws = books.result()
    now = attendance.after(np.array(sorted(books.asked), dtype=np.int64), clients)
    filled = float(draws.sum() / cohort.draws.sum()) if len(cohort) else 1.0
    factors = _factors(clients, pools, attendance.chances, 1 + rule.attempts)
    if filled == 1.0 and not books.extra and np.all(factors == 1.0):
        return Completed(cohort, now, filled)
    corrected = rule.weights(float(cohort.weights.sum()), weights, factors)
    return Completed(replace(cohort, clients=clients, weights=corrected, draws=draws), now, filled)


def complete(
    rule: DropOutRule,
    cohort: Cohort,
    design: Design | None,
    attendance: Attendance,
    train: Train,
    rng: np.random.Generator,
) -> Completed:
    """`settle` with a function that lets clients train."""
    conversation = settle(rule, cohort, design, attendance, rng)
    invited = next(conversation)
    while True:
        answered = train(invited)
        try:
            invited = conversation.send(answered)
        except StopIteration as ended:
            return cast("Completed", ended.value)


def _factors(clients: Ints, pools: Pools | None, chances: Floats, tries: int) -> Floats:
    """(k,) A / (a_j (1 - (1 - A)^t)) for clients with a pool, 1 / a_j for the others."""
    own = chances[clients]
    if pools is None or np.all(chances == 1.0):
        return 1.0 / own
    average = np.minimum(1.0, pools.average(chances)[clients])
    return np.asarray(average / (own * (1.0 - (1.0 - average) ** tries)))


class _Books:
    """Who was asked, who answered, and which draws are still open."""

    def __init__(
        self, cohort: Cohort, value: Floats | None, pools: Pools | None, answered: set[int]
    ) -> None:
        self.cohort, self.value, self.pools, self.answered = cohort, value, pools, answered
        self.asked: set[int] = set(cohort.clients.tolist())
        self.extra: dict[int, int] = {}  # draws that came to a client as a replacement
        self.lost = [
            client
            for client, times in zip(cohort.clients.tolist(), cohort.draws.tolist(), strict=True)
            if client not in answered
            for _ in range(times)
        ]
        self.tried: list[int] = []  # whom each lost draw has gone to, aligned with `lost`

    def redraw(self, rng: np.random.Generator) -> Ints:
        """Draw every lost draw again in its pool; returns whom to ask."""
        self.tried, still = [], []
        for client in self.lost:
            other = self._stand_in(client, rng)
            if other is None:
                continue  # the pool is exhausted: the draw stays lost
            if other in self.answered:
                self.extra[other] = self.extra.get(other, 0) + 1
            else:
                still.append(client)
                self.tried.append(other)
        self.lost = still
        return np.unique(np.array(self.tried, dtype=np.int64))

    def _stand_in(self, client: int, rng: np.random.Generator) -> int | None:
        if self.pools is None:
            return None
        pool = self.pools.of(client)
        barred = self.asked - self.answered if pool.again else self.asked | set(self.tried)
        free = ~np.isin(pool.clients, list(barred))
        if not free.any():
            return None
        edges = np.cumsum(as_integers(pool.chances[free]))
        place = pick(rng, edges, int(edges[-1]), np.zeros(1, dtype=np.int64))
        return int(pool.clients[free][place[0]])

    def heard(self, asked: Ints, answered: Ints) -> None:
        """Book the answers of replacements."""
        self.asked |= set(asked.tolist())
        self.answered |= set(answered.tolist())
        open_draws = []
        for client, other in zip(self.lost, self.tried, strict=True):
            if other in self.answered:
                self.extra[other] = self.extra.get(other, 0) + 1
            else:
                open_draws.append(client)
        self.lost = open_draws

    def result(self) -> tuple[Ints, Floats, Ints]:
        """(k,) those who answered, what their draws weigh, and how many draws they have."""
        members = {
            client: (weight, times)
            for client, weight, times in zip(
                self.cohort.clients.tolist(),
                self.cohort.weights.tolist(),
                self.cohort.draws.tolist(),
                strict=True,
            )
            if client in self.answered
        }
        value = self.value
        clients = sorted({*members, *self.extra})
        weights, draws = np.zeros(len(clients)), np.zeros(len(clients), dtype=np.int64)
        for row, client in enumerate(clients):
            weight, times = members.get(client, (0.0, 0))
            more = self.extra.get(client, 0)
            weights[row] = weight + (more * float(value[client]) if value is not None else 0.0)
            draws[row] = times + more
        return np.array(clients, dtype=np.int64), weights, draws
