"""An attack on the noise: what it finds is a lower bound on epsilon, with a stated confidence.

A *canary* client either sends a known answer or not; all else is known to the attacker: the law,
the others' answers, the noise. It sees the noisy sums of all rounds and guesses which it was. How
often it is right bounds epsilon from below (Clopper and Pearson), so a program that promises less
than the attack finds is broken. That it finds less proves nothing: the price does, by theorem.

The sums are made by the aggregator of real runs, from cohorts that the scheme's law draws. The
guess is by likelihood: the sum of a round is a mixture of Gaussians whose centres are drawn from
the law beforehand. Threshold and direction are chosen on one half of the trials, and the bound is
taken from the other.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import beta

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_real, is_whole
from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats, Ints, for_json
from fedcohort.privacy._accounting import ADD_REMOVE, ADJACENCIES
from fedcohort.privacy._price import _nobody, law, price
from fedcohort.schemes import as_scheme
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import converse
from fedcohort.selection._scheme import RoundContext, Scheme
from fedcohort.server._noise import Gaussian, Released, _Account

CENTRES = 400
"""Sums without noise that the attacker draws to know their law."""
OTHERS = (0.0, -1.0)
"""What all others may send: nothing, or the opposite of the canary."""


@dataclass(frozen=True)
class Audit:
    """What an attack found, and what was promised.

    Attributes
    ----------
    lower
        Epsilon is at least this, with the stated confidence.
    promised
        The price; above ``lower`` unless the program is broken.
    """

    scheme: str
    adjacency: str
    rounds: int
    noise: float
    delta: float
    trials: int
    confidence: float
    lower: float
    promised: float

    @property
    def broken(self) -> bool:
        """Whether more was found than was promised."""
        return self.lower > self.promised

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**for_json(asdict(self)), "broken": self.broken}


@dataclass(frozen=True)
class Planted(Gaussian):
    """A defect to be found: noise for draws of weight 1/m, and weights as they come."""

    def cut(self, account: _Account, clients: Ints, weights: Floats) -> Floats:
        return weights


def audit(
    scheme: Scheme[Any] | str,
    federation: Federation | Any,
    rounds: int,
    noise: float,
    delta: float = 1e-3,
    *,
    adjacency: str = ADD_REMOVE,
    trials: int = 20_000,
    confidence: float = 0.999,
    seed: int = 0,
    planted: bool = False,
) -> Audit:
    """Attack a scheme with noise on its sums, and hold what is found against its price.

    Parameters
    ----------
    scheme, federation, rounds, noise, delta, adjacency
        As for `fedcohort.privacy._price`. The canary is the client that weighs most. What is rarer
        than a few in so many trials no attack can see, so delta is best well above that.
    trials
        Runs of each of the two worlds; half of them are for learning.
    confidence
        Of the lower bound.
    seed
        Of the cohorts; the noise is that of the operating system.
    planted
        Attack a faulty program instead: noise for 1/m where weights are unequal.

    >>> found = audit("binomial:m=2", [1] * 6, 2, 0.5, trials=400)
    >>> found.lower <= found.promised
    True
    """
    chosen = as_scheme(scheme)
    given: Any = federation
    clients = given if isinstance(given, Federation) else Federation.from_sizes(given)
    _check(trials, confidence, adjacency)
    design = _law(chosen, clients, rounds)
    known = price(chosen, clients, rounds, noise, delta, adjacency=adjacency)
    times = 1 if adjacency == ADD_REMOVE else 2
    weight = float(known.largest_weight or 1.0)
    private = Gaussian(noise=times * noise, weight=weight)
    if planted:
        expected = float(design.expected_counts().sum())
        private = Planted(noise=times * noise, weight=1.0 / expected)
    canary = int(np.argmax(np.where(design.inclusion() > 0, design.value, -1.0)))
    there, gone = 1.0, 0.0 if adjacency == ADD_REMOVE else -1.0
    attack = _Attack(design, private, canary, rounds, delta, (1 - confidence) / 2)
    few = max(100, trials // 10)
    tried = [attack.learnt(others, there, gone, few, seed) for others in OTHERS]
    others = OTHERS[int(np.argmax([guess.found for guess in tried]))]
    guess = attack.learnt(others, there, gone, trials // 2, seed + 1)
    lower = attack.certified(guess, others, there, gone, trials - trials // 2, seed + 2)
    return Audit(
        str(chosen), adjacency, rounds, float(noise), float(delta), trials, confidence,
        max(0.0, lower), known.epsilon,
    )  # fmt: skip


def _check(trials: int, confidence: float, adjacency: str) -> None:
    if not is_whole(trials) or not 100 <= trials <= 10**7:
        raise BadParameter("trials", "audit", "a whole number in [100, 10000000]", trials)
    if not is_real(confidence) or not 0 < confidence < 1:
        raise BadParameter("confidence", "audit", "a number in (0, 1)", confidence)
    if adjacency not in ADJACENCIES:
        raise BadParameter("adjacency", "audit", " or ".join(ADJACENCIES), adjacency)


def _law(scheme: Scheme[Any], federation: Federation, rounds: int) -> Design:
    known = law(scheme, federation, rounds)
    design = None
    if len(known.rounds) == 1:
        begun = scheme.start(federation, stream(0, "start"))
        state = converse(begun, _nobody, scheme.asks, speaker=scheme.name)
        design = scheme.design(state, federation, RoundContext(0))
    if design is None:
        raise BadInput(
            f"{scheme.name} has no law that is the same in every round, which an audit draws "
            f"cohorts from: {known.why}."
        )
    return design


@dataclass(frozen=True, eq=False)
class _Guess:
    """How the attacker decides, and what epsilon the learning trials suggest."""

    threshold: float
    above: bool  # whether "the canary sent it" is said above the threshold
    found: float


@dataclass(frozen=True, eq=False)
class _Attack:
    design: Design
    private: Gaussian
    canary: int
    rounds: int
    delta: float
    level: float

    def sums(self, others: float, own: float, number: int, seed: int, loud: bool = True) -> Floats:
        """(number,) noisy sums of single rounds, by the aggregator of real runs."""
        rng, out = stream(seed, "audit"), np.empty(number)
        private = self.private if loud else replace(self.private, noise=1e-300)
        for i in range(number):
            cohort = self.design.draw(rng)
            answers = np.where(cohort.clients == self.canary, own, others)[:, None]
            out[i] = private.direction(Released(), cohort, cohort.clients, answers)[0][0]
        return out

    def scores(self, others: float, worlds: tuple[float, float], number: int, seed: int) -> Floats:
        """(2, number) log-likelihood ratios of runs in both worlds."""
        centres = [self.sums(others, own, CENTRES, seed + 7, loud=False) for own in worlds]
        laws = [np.unique(c.round(12), return_counts=True) for c in centres]
        out = np.empty((2, number))
        for world, own in enumerate(worlds):
            seen = self.sums(others, own, number * self.rounds, seed + 11 * (world + 1))
            ratio = self._log(seen, *laws[0]) - self._log(seen, *laws[1])
            out[world] = ratio.reshape(number, self.rounds).sum(axis=1)
        return out

    def _log(self, seen: Floats, centres: Floats, counts: Ints) -> Floats:
        away = (seen[:, None] - centres) / self.private.deviation
        out: Floats = logsumexp(-(away**2) / 2, axis=1, b=counts / counts.sum())
        return out

    def learnt(self, others: float, there: float, gone: float, number: int, seed: int) -> _Guess:
        """The threshold and direction that tell most."""
        first, second = np.sort(self.scores(others, (there, gone), number, 1000 * seed + 1), axis=1)
        best = _Guess(0.0, True, -math.inf)
        for threshold in np.unique(np.quantile(np.concatenate([first, second]), _GRID)):
            hit = 1 - np.searchsorted(first, threshold) / number
            false = 1 - np.searchsorted(second, threshold) / number
            rounding = 3 / number  # rates below it cannot be told from zero
            for above, (right, wrong) in ((True, (hit, false)), (False, (1 - false, 1 - hit))):
                if right > self.delta:
                    found = math.log((right - self.delta) / max(wrong, rounding))
                    if found > best.found:
                        best = _Guess(float(threshold), above, found)
        return best

    def certified(
        self, guess: _Guess, others: float, there: float, gone: float, number: int, seed: int
    ) -> float:
        """Epsilon is at least this, by fresh trials."""
        first, second = self.scores(others, (there, gone), number, 1000 * seed + 1)
        right, wrong = first >= guess.threshold, second >= guess.threshold
        if not guess.above:
            right, wrong = ~wrong, ~right
        hits, misses = int(right.sum()), int(wrong.sum())
        low = float(beta.ppf(self.level, hits, number - hits + 1)) if hits else 0.0
        high = 1.0
        if misses < number:
            high = float(beta.ppf(1 - self.level, misses + 1, number - misses))
        return math.log((low - self.delta) / high) if low > self.delta else 0.0


_GRID = np.concatenate([np.linspace(0.001, 0.05, 25), np.linspace(0.06, 0.94, 45),
                        np.linspace(0.95, 0.999, 25)])  # fmt: skip
