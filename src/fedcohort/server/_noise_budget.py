"""What a run with noise on its sums promises and has spent: for its trace, and for its budget.

Whoever carries rounds uses it alike: the simulator, and Flower.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

from fedcohort._internal.errors import BadInput, BudgetSpent, MissingExtra
from fedcohort.privacy._price import MOST_LAWS, Law, Price, law, priced
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Participation
from fedcohort.selection._federation import Federation
from fedcohort.server._dropouts import AsDrawn
from fedcohort.server._noise import Gaussian, Released
from fedcohort.server._state import Setup, State

LOOK_AHEAD = 64
"""The number of rounds ahead for which the first price of a run is computed."""
TWICE = (
    "In some rounds the law of the cohorts is not known, and a client may be drawn several times: "
    "there is no bound."
)


def calibrated(setup: Setup, federation: Federation) -> Setup:
    """Return the setup with noise for the largest weight that a draw of the scheme can have.

    If 'noise' is None, the setup gets the least noise that the budget allows. If the scheme has
    no law, weights are capped: no bound is known on how often it draws a client in a round.
    """
    private = setup.aggregator
    if not isinstance(private, Gaussian):
        return setup
    if not law(setup.scheme, federation, MOST_LAWS + 1).rounds:
        private = replace(private, capped=True)
    if private.weight is None:
        known = law(setup.scheme, federation, 1)
        heaviest = max((part.largest_weight for part, _ in known.rounds), default=0.0)
        private = replace(private, weight=heaviest or 1.0)
    if private.noise is None:
        private = replace(private, noise=_least_noise(setup, private, federation))
    return replace(setup, aggregator=private)


_FOUND: dict[Any, float] = {}
"""Noise that was searched for once: a comparison has many runs alike."""


def _least_noise(setup: Setup, private: Gaussian, federation: Federation) -> float:
    """To a thousandth, above."""
    rounds, wanted = int(private.rounds or 1), float(private.epsilon or 1.0)
    key = (
        str(setup.scheme), setup.dropouts.spec, replace(private, seed=None).spec,
        federation.importance.tobytes(),
    )  # fmt: skip

    def cost(logarithm: float) -> float:
        tried = replace(private, noise=math.exp(logarithm))
        found = spent(replace(setup, aggregator=tried), federation, rounds)
        return math.inf if found is None else found.epsilon

    if key not in _FOUND:
        low, high = math.log(0.05), math.log(0.2)
        while cost(high) > wanted:
            low, high = high, high + 1.0
            if high > math.log(1e6):
                raise BadInput(f"No noise makes {rounds} rounds cost epsilon = {wanted:g} or less.")
        while high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if cost(middle) > wanted else (low, middle)
        _FOUND[key] = math.exp(high)
    return _FOUND[key]


def spent(setup: Setup, federation: Federation, full: int, away: int = 0) -> Price | None:
    """Return the cost of the rounds with all and with some clients available, None without bound.

    With clients away the others are likelier to be drawn than their law says, so no amplification
    is counted for those rounds. There is no bound for them if a client may be drawn twice. If no
    law is known, only capped weights have a bound.
    """
    private = cast("Gaussian", setup.aggregator)
    known = law(setup.scheme, federation, max(full, 1))
    parts = [(_as_used(part, setup), times) for part, times in known.rounds if full]
    if not (known.rounds or private.capped):
        return None
    if away and known.rounds:
        first = known.rounds[0][0]
        twice = any(part.at_least.shape[1] > 1 for part, _ in known.rounds)
        if twice and not private.capped:
            return None
        parts.append((first.certain(private.most), away))
    heaviest = max((part.largest_weight for part, _ in parts), default=private.most)
    if heaviest == 0.0:
        heaviest = private.most
    noise = private.multiplier * private.most / heaviest
    why = f"{known.why}; weights are capped" if private.capped else known.why
    settled = Law(tuple(parts), why, known.covered)
    return priced(
        settled, str(setup.scheme), len(federation.present), full + away, noise, private.delta
    )


def _as_used(part: Participation, setup: Setup) -> Participation:
    """A law, as weights are after drop-outs."""
    private = cast("Gaussian", setup.aggregator)
    if isinstance(setup.dropouts, AsDrawn):
        if private.capped:
            part = replace(part, at_least=part.at_least[:, :1])
        return part.cut(private.most)
    if setup.dropouts.attempts:  # who stands in for others is likelier to come than its law says
        return part.certain(private.most)
    return part.open(private.most)  # the others are weighed by who answered


def promised(setup: Setup, state: State) -> dict[str, Any]:
    """Epsilon of the rounds so far, and the guarantee in words; {} for a run without noise."""
    private, memory = setup.aggregator, state.aggregator
    if not isinstance(private, Gaussian) or not isinstance(memory, Released):
        return {}
    told: dict[str, Any] = {
        "deviation": private.deviation_at(private.longest(memory)),
        "clip": private.longest(memory),
        "delta": private.delta,
        "sums": memory.number,
    }
    full = memory.number - memory.away
    try:
        cost = spent(setup, state.federation, full, memory.away) if memory.number else None
    except MissingExtra as missing:
        return {"privacy": {**told, "epsilon": None, "guarantee": str(missing)}}
    if cost is None:
        words = TWICE if memory.number else "Nothing was released."
        return {"privacy": {**told, "epsilon": None if memory.number else 0.0, "guarantee": words}}
    away = ""
    if memory.away:
        away = f" Clients were away in {memory.away} rounds: no amplification is counted for them."
    return {
        "privacy": {
            **told,
            "epsilon": cost.epsilon,
            "if_known_who": cost.seen,
            "covered": cost.covered,
            "guarantee": cost.guarantee() + away,
        }
    }


class Budget:
    """Refuses a round with which a client would have paid more than was set.

    A price takes long to compute, so prices are computed for some rounds ahead: as many as the
    budget allows, by halves.
    """

    def __init__(self) -> None:
        self._federation: Federation | None = None
        self._full = self._away = 0  # rounds with and without everybody that the budget allows
        self._ahead = LOOK_AHEAD

    def require(self, setup: Setup, state: State, everybody: bool) -> None:
        """Return if one more sum may be released; refuse otherwise, before anybody is asked."""
        private, memory = setup.aggregator, state.aggregator
        if not isinstance(private, Gaussian):
            return
        if private.rounds is not None and memory.number >= private.rounds:
            private.begin(memory, Cohort.empty())  # it refuses
        if private.epsilon is None:
            return
        if self._federation is not state.federation:
            self._federation = state.federation
            self._full, self._away, self._ahead = -1, -1, LOOK_AHEAD
        full, away = memory.number - memory.away + everybody, memory.away + (not everybody)
        if full <= self._full and away <= self._away:
            return
        while self._ahead:
            later = full + self._ahead, away + (self._ahead if away else 0)
            if within_budget(setup, state.federation, *later):
                self._full, self._away = later
                self._ahead *= 2
                return
            self._ahead //= 2
        if not within_budget(setup, state.federation, full, away):
            raise BudgetSpent(
                f"The privacy budget is spent after {memory.number} rounds: one more would cost a "
                f"client more than epsilon = {private.epsilon:g} (delta = {private.delta:g}); use "
                "more noise for more rounds (fedcohort price --epsilon)."
            )


def within_budget(setup: Setup, federation: Federation, full: int, away: int = 0) -> bool:
    """Return whether the budget allows rounds with everybody, and others with clients away."""
    cost = spent(setup, federation, full, away)
    epsilon = cast("Gaussian", setup.aggregator).epsilon or 0.0
    return cost is not None and cost.epsilon <= epsilon
