"""How many clients a round: what a larger m buys, and where it stops to be worth it.

The cohort's answer is the true mean plus an error whose variance V(m) is known exactly. Beside the
squared length of the mean itself it is the *noise* of a round, r(m) = V(m) / |mean|^2. Gradient
steps whose noise is r must be 1 + r times shorter to be safe, and so need 1 + r times as many
rounds (Bottou, Curtis and Nocedal 2018, Theorem 4.6, with M_G = 1 + r). Hence the rule:

    m is large enough as soon as twice as many clients would save less than a tenth of the rounds,
    (r(m) - r(2m)) / (1 + r(m)) < 0.1.

V(m) is exact; that rounds go with 1 + r is a rule of thumb, since clients take many steps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from fedcohort.theory.recommendation import closed_score

if TYPE_CHECKING:
    from fedcohort.theory.judge import Judge

SAVES = 0.1
"""Twice as many clients are worth it as long as they save this share of the rounds."""
RULE = f"twice as many clients would save less than {SAVES:.0%} of the rounds"
STEPS = (1, 1.5, 2, 3, 5, 7)
"""Values of m that are tried: these, and ten, a hundred, ... times as many."""


@dataclass(frozen=True)
class AtM:
    """What one value of m comes to, for the same progress.

    ``noise`` is r(m); ``rounds`` are those that bring as far as the rounds of the advice at its m;
    ``trainings`` counts a client for each round in which it trains; ``saved`` is the share of the
    rounds that 2m would save.
    """

    m: int
    noise: float
    rounds: float
    trainings: float | None
    bytes_total: float | None
    saved: float


@dataclass(frozen=True)
class WhichM:
    """The recommended m of one scheme, and its neighbours; None where no value was tried."""

    scheme: str
    recommended: int | None
    rows: tuple[AtM, ...]
    rule: str = RULE
    if_unlike: int | None = None
    """The same if clients differ ten times as much; None where updates or labels are known."""

    def row(self, m: int) -> AtM:
        """What one of the values comes to."""
        return next(row for row in self.rows if row.m == m)


def which_m(judge: Judge, name: str, m: int) -> WhichM | None:
    """How many clients a round a scheme should have; None where its noise is not known."""
    judge = replace(judge, noise=None)  # privacy has its own question
    n = len(judge.federation.present)
    noise = _noise(judge, name)
    if noise(m) is None:
        return None
    best = _least_m(noise, n)
    unlike = None
    if judge.known.updates is None and judge.known.label_histograms is None:
        more = replace(judge, heterogeneity=10 * judge.heterogeneity)
        unlike = _least_m(_noise(more, name), n)
    near = {m, 1, n} if best is None else {m, max(1, best // 2), best, min(n, 2 * best), n}
    rows = [_at(judge, name, value, noise, m) for value in sorted(near) if value <= max(m, n)]
    known = tuple(row for row in rows if row is not None)
    return WhichM(name, best, known, if_unlike=unlike)


Noise = Callable[[int], float | None]


def _noise(judge: Judge, name: str) -> Noise:
    strength = judge.strength

    @cache
    def noise(m: int) -> float | None:
        score = closed_score(judge, name, m)
        return None if score is None or strength <= 0 else score / strength

    return noise


def _saved(noise: Noise, m: int, n: int) -> float | None:
    """The share of the rounds that twice as many clients would save."""
    here = noise(m)
    if here is None:
        return None
    there = noise(min(n, 2 * m)) if m < n else here
    there = here / 2 if there is None else there  # where a scheme has no such m: as draws do
    return (here - there) / (1 + here)


def _least_m(noise: Noise, n: int) -> int | None:
    """The least of the tried values that is large enough."""
    values = sorted({*(int(s * 10**e) for e in range(9) for s in STEPS if s * 10**e <= n), n})

    def enough(m: int) -> bool:
        saved = _saved(noise, m, n)
        return saved is not None and saved < SAVES

    found = bisect_left(values, True, key=enough)  # noise falls with m
    return values[found] if found < len(values) else None


def _at(judge: Judge, name: str, m: int, noise: Noise, asked: int) -> AtM | None:
    here, now, n = noise(m), noise(asked), len(judge.federation.present)
    saved = _saved(noise, m, n)
    if here is None or now is None or saved is None:
        return None
    rounds = judge.rounds * (1 + here) / (1 + now)
    facts = replace(judge, rounds=max(1, int(np.ceil(rounds - 1e-9)))).facts(name, m)
    trainings = None if facts.expected_distinct is None else facts.expected_distinct * rounds
    return AtM(m, here, rounds, trainings, facts.bytes_total, saved)
