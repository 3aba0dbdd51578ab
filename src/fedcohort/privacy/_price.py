"""What a scheme costs in privacy: epsilon of the clients, by the law that cohorts are drawn from.

Every round publishes sum_i c_i v_i clip(x_i) + noise. How much that tells of one client depends
on how likely it was drawn, and on who gave way to it; a design says so itself
(`Design.participation`). ``docs/privacy.md`` has the theorems and what they do not cover.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_real, is_whole
from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats, for_json
from fedcohort.privacy._accounting import (
    ACCOUNTANTS,
    ADD_REMOVE,
    ADJACENCIES,
    PLD,
    POINTS,
    REPLACE_ONE,
    Part,
    Rounds,
    epsilon,
)
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._design import Participation
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import converse
from fedcohort.selection._scheme import Claim, RoundContext, Scheme, as_scheme

CURVE = 11
"""Clients along the curve, from the cheapest to the dearest."""
GROUPS = 8
"""As many different clients at most stand for all others where the worst is looked for."""
COMPARED = 2_000
"""Up to this many different clients are compared one by one before they are grouped."""
MOST_LAWS = 50
"""Above this many different laws in a run no amplification is computed."""
COARSE = 4_000
"""Points of the grid for single clients, and for a first guess of a noise: a little dearer."""
NOISE_STEP = 2e-4
"""Relative precision of a noise that is searched for."""


class Law(NamedTuple):
    """What is known of a scheme's cohorts before training: laws with numbers of rounds."""

    rounds: tuple[tuple[Participation, int], ...]  # empty: no amplification is known
    why: str  # the law in words, or why there is none
    covered: bool  # whether the choice itself tells nothing of data
    draws: float = 1  # of one client in a round, at most; only where no law is known


@dataclass(frozen=True)
class Price:
    """Epsilon of single clients over a whole run, and what it means.

    Attributes
    ----------
    noise
        The noise multiplier: the standard deviation of the noise over the *sensitivity*, which is
        how far one client can move the sum with one draw. That is the clipping norm times
        ``largest_weight``, twice that under replace-one.
    deviation
        The standard deviation of the noise on the sum, in clipping norms.
    epsilon, median
        Of the worst-off and of the middle client.
    curve
        (share of the clients, epsilon), ascending; empty where all are alike.
    seen
        Epsilon of the worst-off if it becomes known who took part: never below ``epsilon``.
    unamplified
        Epsilon of a client that is drawn once in every round.
    how
        The law, or why no amplification is known.
    covered
        False where the choice looks at data: then epsilon is that of the sums alone.
    """

    scheme: str
    n: int
    rounds: int
    noise: float
    delta: float
    adjacency: str
    accountant: str
    epsilon: float
    median: float
    curve: tuple[tuple[float, float], ...]
    seen: float
    unamplified: float
    how: str
    amplified: bool
    covered: bool
    largest_weight: float | None
    deviation: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        told: dict[str, Any] = for_json(asdict(self))
        return told

    def guarantee(self) -> str:
        """What is promised, in one sentence."""
        other = "sends nothing" if self.adjacency == ADD_REMOVE else "sends anything else"
        promise = (
            f"Whether a client answers or {other} changes the chance of whatever is seen of the "
            f"models of {self.rounds} rounds by a factor of at most e^{self.epsilon:.4g} (except "
            f"with a chance of {self.delta:g})"
        )
        if not self.covered:
            return f"{promise}, given who was chosen: that itself looks at data and is not covered."
        hidden = ", if nobody learns who took part" if self.seen > self.epsilon * 1.001 else ""
        return f"{promise}{hidden}."


def price(
    scheme: Scheme[Any] | str,
    federation: Federation | Any,
    rounds: int,
    noise: float,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    accountant: str = PLD,
) -> Price:
    """What a run costs every client.

    Parameters
    ----------
    scheme
        A scheme, or its name with settings.
    federation
        A federation, or the sizes of its clients; both are public.
    rounds
        T.
    noise
        The noise multiplier z, see `Price`.
    delta
        The chance with which the promise may fail; well below 1/n.
    adjacency
        ``"add-remove"``: the client sends nothing; ``"replace-one"``: it sends anything else.
    accountant
        ``"pld"`` (tight) or ``"rdp"`` (as in most papers; knows three laws).

    >>> sizes = [1] * 1000
    >>> round(price("binomial:m=10", sizes, 500, 1.0, 1e-5).epsilon, 2)
    1.33
    >>> round(price("pow-d:m=10", sizes, 500, 1.0, 1e-5, accountant="rdp").epsilon, 1)
    354.9
    """
    _check(rounds, delta, adjacency, accountant)
    if not is_real(noise) or noise <= 0:
        raise BadParameter("noise", "price", "a finite number above 0", noise)
    chosen, clients = as_scheme(scheme), _federation(federation)
    known = law(chosen, clients, rounds)
    setting = rounds, float(noise), float(delta), adjacency, accountant
    return priced(known, str(chosen), len(clients.present), *setting)


def priced(
    known: Law,
    scheme: str,
    n: int,
    rounds: int,
    noise: float,
    delta: float,
    adjacency: str = ADD_REMOVE,
    accountant: str = PLD,
) -> Price:
    """What a run of these laws costs every client; ``scheme`` is what it is called."""
    bill = _Bill(known, rounds, noise, delta, adjacency, accountant)
    weight = bill.largest_weight
    worst = bill.worst()
    curve = replace(bill, points=COARSE).curve(worst)
    return Price(
        scheme,
        n,
        rounds,
        noise,
        delta,
        adjacency,
        accountant,
        worst,
        curve[len(curve) // 2][1] if curve else worst,
        curve,
        bill.seen(),
        bill.unamplified(),
        known.why,
        bool(known.rounds) and worst < bill.unamplified() * (1 - 1e-9),
        known.covered,
        weight,
        None if weight is None else noise * bill.sensitivity,
    )


def noise_for(
    scheme: Scheme[Any] | str,
    federation: Federation | Any,
    rounds: int,
    epsilon: float,
    delta: float,
    *,
    adjacency: str = ADD_REMOVE,
    accountant: str = PLD,
    points: int = POINTS,
) -> float:
    """Return the smallest noise multiplier with which no client pays more than epsilon.

    It is found to a thousandth. With fewer ``points`` of the grid of losses it is found faster, and
    is a little larger.

    >>> z = noise_for("binomial:m=10", [1] * 1000, 500, 1.33, 1e-5)
    >>> round(z, 1)
    1.0
    """
    _check(rounds, delta, adjacency, accountant)
    if not is_real(epsilon) or epsilon <= 0:
        raise BadParameter("epsilon", "noise_for", "a finite number above 0", epsilon)
    known = law(as_scheme(scheme), _federation(federation), rounds)
    if math.isinf(known.draws):
        raise BadInput(f"No noise keeps an epsilon: {known.why}.")

    def excess(logarithm: float, grid: int) -> float:
        bill = _Bill(known, rounds, math.exp(logarithm), delta, adjacency, accountant, grid)
        return min(bill.worst(), 1e6) - epsilon

    coarse, step = min(COARSE, points), NOISE_STEP * POINTS / points
    low, high = math.log(1e-2), math.log(1e-1)
    while excess(high, coarse) > 0:
        low, high = high, high + 1.0
        if high > math.log(1e6):
            raise BadParameter("epsilon", "noise_for", "within reach of a noise of 1e6", epsilon)
    if excess(low, coarse) > 0:
        high = float(brentq(excess, low, high, (coarse,), step))
    # The coarse grid is pessimistic: the fine one allows less noise, or once in a while more.
    while (over := excess(high, points)) > 0:
        high += step
    wide = max(step, -math.log1p(over / epsilon))  # epsilon falls about as 1 / noise, or faster
    while excess(low := high - wide, points) <= 0 and low > math.log(1e-2):
        high = low
    while high - low > 2 * step:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle, points) > 0 else (low, middle)
    return math.exp(high)


def law(scheme: Scheme[Any], federation: Federation, rounds: int) -> Law:
    """Return the laws of a run's cohorts, if they are known beforehand and do not look at data.

    If not, return a bound on the number of draws of one client in a round.
    """
    known = _law(scheme, federation, rounds)
    if known.rounds or scheme.draws_once or Claim.EXACTLY_M in scheme.claims:
        return known
    most = getattr(scheme, "m", None)
    if most is None or not is_whole(most):
        more = f"no bound on its draws is known; set draws_once = True in {type(scheme).__name__} "
        more += "if it draws no client twice in a round"
        return known._replace(draws=math.inf, why=f"{known.why}; {more}")
    if most == 1:
        return known
    more = f"a client may be drawn up to {most} times a round"
    return known._replace(draws=int(most), why=f"{known.why}; {more}")


def _law(scheme: Scheme[Any], federation: Federation, rounds: int) -> Law:
    looks = sorted(signal.name for signal in scheme.asks | scheme.listens)
    if looks:
        told = " and ".join(word.replace("_", " ") for word in looks)
        why = f"the choice looks at {told}: no amplification is known, and looking costs on its own"
        return Law((), why, False)
    state = converse(
        scheme.start(federation, stream(0, "start")), _nobody, scheme.asks, speaker=scheme.name
    )
    if _remembers(scheme, state, federation):
        return Law((), "who comes depends on the rounds before: no amplification is known", True)
    found: list[tuple[Participation, int]] = []
    last: Any = None
    for number in range(rounds):
        design = scheme.design(state, federation, RoundContext(number))
        if design is None:
            return Law((), "it has no law known beforehand: no amplification is known", True)
        if design is not last:
            part, last = design.participation(), design
            if part is None:
                why = f"nothing is known of the law {type(design).__name__}: no amplification"
                return Law((), why, True)
            found.append((part, 0))
        if len(found) > MOST_LAWS:
            return Law((), "every round has a law of its own: no amplification is computed", True)
        found[-1] = (found[-1][0], found[-1][1] + 1)
    return Law(tuple(found), found[0][0].how, True)


def _remembers(scheme: Scheme[Any], state: Any, federation: Federation) -> bool:
    """Whether a scheme that hears nothing knows more after a round, be it who came or who not."""
    if type(scheme).observe is Scheme.observe:
        return False
    everybody = Cohort.of(federation.present, federation.importance[federation.present])
    return any(
        scheme.observe(state, federation, cohort, Replies(cohort.clients, {})) is not state
        for cohort in (everybody, Cohort.empty())
    )


def _nobody(ask: Any) -> Any:
    raise BadInput("Nobody is asked before a price is known.")


@dataclass(frozen=True)
class _Bill:
    """The law of a run with its noise: what one client, or the worst of all, pays."""

    law: Law
    rounds: int
    noise: float
    delta: float
    adjacency: str
    accountant: str
    points: int = POINTS

    @property
    def largest_weight(self) -> float | None:
        """What one draw weighs at most; None where there is no law."""
        return max((part.largest_weight for part, _ in self.law.rounds), default=None)

    @property
    def sensitivity(self) -> float:
        """How far one client can move a sum with one draw, in clipping norms."""
        return (self.largest_weight or 1.0) * (2 if self.adjacency == REPLACE_ONE else 1)

    def unamplified(self, draws: float = 1) -> float:
        """Of a client that is drawn so many times in every round, as heavy as any."""
        if math.isinf(draws):
            return math.inf
        half = 2 if self.adjacency == REPLACE_ONE else 1
        return self._epsilon([Rounds(Part((1.0,), draws / self.noise / half, 0.0), self.rounds)])

    def worst(self) -> float:
        """Of the worst-off client, or a little more where many differ in many ways."""
        if not self.law.rounds:
            return self.unamplified(self.law.draws)
        return max(self._of(row) for row in self._foremost())

    def seen(self) -> float:
        """The same if it is known who took part."""
        if not self.law.rounds:
            return self.unamplified(self.law.draws)
        rows = self._foremost()
        known = [[one._replace(displaced=math.inf) for one in row] for row in rows]
        return max(replace(self, accountant=PLD)._of(row) for row in known)

    def curve(self, worst: float) -> tuple[tuple[float, float], ...]:
        """(share of the clients, epsilon) along clients by chance and weight."""
        if not self.law.rounds:
            return ()
        spent = sum(
            times * (part.at_least.sum(axis=1) * part.weight**2) for part, times in self.law.rounds
        )
        there = np.flatnonzero(spent > 0)
        order = there[np.argsort(spent[there], kind="stable")]
        if spent[order[0]] >= spent[order[-1]] * (1 - 1e-9):
            return ()
        places = np.unique(np.rint(np.linspace(0, len(order) - 1, CURVE)).astype(int))
        costs = [self._of(self._of_client(int(order[place]))) for place in places]
        ascending = np.minimum(worst, np.maximum.accumulate([*costs[:-1], worst]))
        shares = (places + 1) / len(order)
        return tuple((float(s), float(e)) for s, e in zip(shares, ascending, strict=True))

    def _of_client(self, client: int) -> list[_Row]:
        return [
            _Row(part.at_least[client], part.weight[client], part.displaced[client])
            for part, _ in self.law.rounds
        ]

    def _of(self, rows: list[_Row]) -> float:
        """Of a client with these rows, one for each law of the run."""
        deviation = self.noise * self.sensitivity
        given = [
            Rounds(row.part(deviation), times)
            for row, (_, times) in zip(rows, self.law.rounds, strict=True)
        ]
        found = self._epsilon(given)
        if any(len(each.part.chances) > 1 for each in given):
            return found  # who comes twice may pay more than for one draw in every round
        return min(found, self.unamplified())

    def _foremost(self) -> list[list[_Row]]:
        """A few clients, made up if need be, such that nobody is worse off than all of them.

        A client with smaller chances P(c >= k), weight and displacement pays less. So those that
        are below others are left out, and of what is left the largest of each is taken, group by
        group.
        """
        each = [
            np.column_stack([part.weight, part.displaced, part.at_least])
            for part, _ in self.law.rounds
        ]
        widths = np.cumsum([columns.shape[1] for columns in each])[:-1]
        table = np.unique(np.column_stack(each), axis=0)
        table = table[np.argsort(-table[:, 2], kind="stable")]  # likeliest first
        if len(table) <= COMPARED:
            kept: list[Floats] = []
            for row in table:
                if not any(np.all(row <= other) for other in kept):
                    kept.append(row)
            table = np.array(kept)
        groups = np.array_split(table, min(GROUPS, len(table)))
        return [
            [_Row(one[2:], one[0], one[1]) for one in np.split(group.max(axis=0), widths)]
            for group in groups
        ]

    def _epsilon(self, given: list[Rounds]) -> float:
        return epsilon(given, self.delta, self.adjacency, self.accountant, self.points)


class _Row(NamedTuple):
    """What a `Participation` says of one client."""

    at_least: Floats  # (k,)
    weight: float
    displaced: float

    def part(self, deviation: float) -> Part:
        """In standard deviations of the noise."""
        some = self.at_least[: max(1, int((self.at_least > 0).sum()))]
        chances = (some - np.append(some[1:], 0.0)).tolist()
        return Part(
            tuple(chances), float(self.weight) / deviation, float(self.displaced) / deviation
        )


def _check(rounds: int, delta: float, adjacency: str, accountant: str) -> None:
    if not is_whole(rounds) or not 1 <= rounds <= 10**7:
        raise BadParameter("rounds", "price", "a whole number in [1, 10000000]", rounds)
    if not is_real(delta) or not 0 < delta < 1:
        raise BadParameter("delta", "price", "a number in (0, 1)", delta)
    if adjacency not in ADJACENCIES:
        raise BadParameter("adjacency", "price", " or ".join(ADJACENCIES), adjacency)
    if accountant not in ACCOUNTANTS:
        raise BadParameter("accountant", "price", " or ".join(ACCOUNTANTS), accountant)


def _federation(given: Any) -> Federation:
    return given if isinstance(given, Federation) else Federation.from_sizes(given)
