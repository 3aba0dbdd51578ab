"""Mechanisms by which a client reports its size under local differential privacy.

The problem. FedSampling needs the total N = sum_c n_c, and no client wants to tell its n_c.
Each client therefore answers with a random value whose law depends so little on n_c that no
two sizes can be told apart by more than a factor e^eps.

Symbols: ``threshold`` M (sizes are clipped to 1..M-1), ``epsilon`` eps, ``levels`` g.

The rule, ``mechanism="levels"`` (the default). Put g levels at equal distances on [1, M-1].
Round the clipped size to one of its two neighbouring levels at random, so that the mean is
kept. Then k-ary randomised response on the level l: answer l with probability
e^eps / (e^eps + g - 1), every other level with probability 1 / (e^eps + g - 1).

``mechanism="paper"`` (Qi et al., IJCAI 2023, equations (1) and (21)) is the case
g = M - 1 without any rounding: the answer is the true size with probability alpha, else
uniform on 1..M-1, alpha = (e^eps - 1) / (e^eps + M - 2).

Where we differ from the paper, and why:

* Sizes are clipped to 1..M-1 *before* the draw. The paper clips at the top only, so that an
  empty client would answer 0, which nobody else can: eps would be infinite there. The
  authors' code does not clip at all.
* Few levels instead of M - 1: at M = 300, eps = 3 the standard error is 17 times smaller.
* Whole numbers only. Floating-point noise has holes that identify the input. Here e^eps is
  the integer w = floor(2^64 e^eps) over 2^64, from 60 digits, rounded down: the ratio of two
  probabilities is w / 2^64 <= e^eps exactly, and the estimator that uses the same w has a
  bias of exactly zero.
* Entropy comes from the operating system and from nowhere else. A client that draws from a
  seeded generator has no privacy: whoever knows the seed replays it. No seed can be given.

>>> report = SizeReport(threshold=300, epsilon=3)
>>> report.levels, report.answers
(4, range(0, 4))
>>> draw(report, 40) in report.answers
True
>>> SizeReport(300, 3, mechanism="paper").answers
range(1, 300)
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, get_args

from fedcohort._internal.errors import BadParameter, NoEntropy
from fedcohort._internal.parameters import is_real, is_whole

Mechanism = Literal["levels", "paper", "printed"]

UNIT = 2**64  # the weight of a false answer; the true one weighs floor(UNIT * e^eps)
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 20.0
LARGEST_THRESHOLD = 2**31  # so that the simulated twin stays within 64 bits
_CHOOSE = 0
_DIGITS = Context(prec=60, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class SizeReport:
    """The law of one private answer to "how many samples do you have?".

    Parameters
    ----------
    threshold
        M: sizes are clipped to 1..M-1 before anything else happens.
    epsilon
        The largest log-ratio of the probabilities of an answer under two sizes.
    levels
        g, between 2 and M-1. Left out, it is `best_levels`: chosen from eps, never from data.
    mechanism
        "levels", or "paper" for the paper's own (g = M-1, answers 1..M-1). "printed" is "paper"
        without the lower clip: a size of 0 answers 0, which no other size can, so that epsilon
        does not hold. It is for simulations; no client agrees to it unless its policy names it.
    """

    threshold: int
    epsilon: float
    levels: int = _CHOOSE
    mechanism: Mechanism = "levels"

    def __post_init__(self) -> None:
        must = "'levels', 'paper' or 'printed'"
        self._require("mechanism", self.mechanism in get_args(Mechanism), must)
        fits = is_whole(self.threshold) and 3 <= self.threshold <= LARGEST_THRESHOLD
        self._require("threshold", fits, f"an int in [3, {LARGEST_THRESHOLD}]")
        fits = is_real(self.epsilon) and SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON
        self._require("epsilon", fits, f"a number in [{SMALLEST_EPSILON}, {LARGEST_EPSILON:g}]")
        self._require("levels", is_whole(self.levels), "an int, or left out")
        threshold, epsilon, levels = int(self.threshold), float(self.epsilon), int(self.levels)
        paper, most = self.mechanism != "levels", threshold - 1
        if levels == _CHOOSE:
            levels = most if paper else best_levels(epsilon, threshold)
        fits = levels == most if paper else 2 <= levels <= most
        must = (
            f"M-1 = {most} for the paper's mechanism" if paper else f"an int in [2, M-1 = {most}]"
        )
        self._require("levels", fits, f"{must}, or left out")
        # Plain types, so that equal questions have equal text whoever asks them.
        for name, value in (("threshold", threshold), ("epsilon", epsilon), ("levels", levels)):
            object.__setattr__(self, name, value)

    def _require(self, name: str, fits: bool, must: str) -> None:
        if not fits:
            raise BadParameter(name, "SizeReport", must, getattr(self, name))

    # -- the answer set ---------------------------------------------------------------------

    @property
    def lowest(self) -> int:
        """The answer that stands for level 0: the paper counts from 1."""
        return 0 if self.mechanism == "levels" else 1

    @property
    def smallest(self) -> int:
        """The size to which smaller ones are clipped."""
        return 0 if self.mechanism == "printed" else 1

    @property
    def answers(self) -> range:
        """Every answer that an honest client can give."""
        return range(self.lowest - 1 + self.smallest, self.lowest + self.levels)

    # -- the exact law ----------------------------------------------------------------------

    @cached_property
    def truth_weight(self) -> int:
        """The weight w = floor(2^64 e^eps) of the true level."""
        return exponential_weight(self.epsilon)

    @cached_property
    def tickets(self) -> int:
        """The sum of all weights, w + (g - 1) 2^64: one ticket is drawn among these."""
        return self.truth_weight + (self.levels - 1) * UNIT

    @cached_property
    def alpha(self) -> Fraction:
        """P(true level) - P(any one other level), exactly as drawn."""
        return Fraction(self.truth_weight - UNIT, self.tickets)

    def clip(self, size: int) -> int:
        """The size inside 1..M-1; everything random happens after this."""
        return min(max(size, self.smallest), self.threshold - 1)

    def level(self, size: int, offset: int) -> int:
        """The level of a size, given its offset in ``range(M - 2)``.

        A uniform offset makes the mean level equal to the position of the size between the
        levels, exactly (Hermite's identity); an offset that is kept makes it a fixed function.
        """
        position = (self.clip(size) - 1) * (self.levels - 1)  # in units of 1 / (M - 2) levels
        return (position + offset) // (self.threshold - 2)

    def answer(self, level: int, ticket: int) -> int:
        """The answer for a level, given its ticket in ``range(self.tickets)``.

        The level of a size of 0 as printed is -1. No false answer is 0, so it has g others.
        """
        truth = self.truth_weight - UNIT * (level < 0)
        other = (ticket - truth) // UNIT  # which of the others, if not the truth
        other += 0 <= level <= other
        return self.lowest + (level if ticket < truth else other)

    def weights(self, size: int) -> tuple[int, ...]:
        """The law of the answer as integers over ``(M - 2) * self.tickets``, in answer order.

        >>> SizeReport(4, 1.0, levels=2).weights(2) == SizeReport(4, 1.0, levels=2).weights(2)[::-1]
        True
        """
        step = self.threshold - 2
        low, up = divmod((self.clip(size) - 1) * (self.levels - 1), step)
        law = {answer: step * UNIT * (answer >= self.lowest) for answer in self.answers}
        bonus = self.truth_weight - UNIT
        law[self.lowest + low] += (step - up) * bonus
        if up:
            law[self.lowest + low + 1] += up * bonus
        return tuple(law.values())

    def law(self, size: int) -> tuple[Fraction, ...]:
        """P(answer | size) for every answer, exactly.

        >>> sum(SizeReport(300, 3.0).law(40))
        Fraction(1, 1)
        """
        whole = (self.threshold - 2) * self.tickets
        return tuple(Fraction(weight, whole) for weight in self.weights(size))

    def value(self, answer: int) -> Fraction:
        """What one answer says about the clipped size, without bias."""
        spacing = Fraction(self.threshold - 2, self.levels - 1)
        middle = Fraction(self.levels - 1, 2)
        return 1 + spacing * ((answer - self.lowest - middle) / self.alpha + middle)


def whole_size(size: object, owner: str) -> int:
    """A number of samples, or one clear sentence."""
    if is_real(size) and size == int(size) and size >= 0:  # type: ignore[call-overload,operator]
        return int(size)  # type: ignore[call-overload,no-any-return]
    raise BadParameter("size", owner, "a whole number >= 0", size, "Pass the number of samples.")


# -- drawing -----------------------------------------------------------------------------------


def entropy_below(bound: int) -> int:
    """A uniform integer in ``[0, bound)`` from the operating system, exact (by rejection)."""
    try:
        return secrets.randbelow(bound)
    except (OSError, NotImplementedError) as error:
        raise NoEntropy(
            f"The operating system gave no randomness ({error}); a private answer has no other "
            "source, so nothing was answered. Repair /dev/urandom and ask again."
        ) from error


def draw_offset(report: SizeReport) -> int:
    """A fresh offset for `SizeReport.level`: it does not depend on the size, so it is free."""
    return entropy_below(report.threshold - 2)


def draw_answer(report: SizeReport, level: int) -> int:
    """One private answer for a level; every call spends eps."""
    return report.answer(level, entropy_below(report.tickets))


def draw(report: SizeReport, size: int) -> int:
    """One private answer for a size; every call spends eps, and nothing books it here.

    Clients use `fedcohort.privacy.PrivateSize`, which remembers and counts.
    """
    size = whole_size(size, "draw")
    return draw_answer(report, report.level(size, draw_offset(report)))


# -- eps, alpha, g -----------------------------------------------------------------------------


def exact_epsilon(epsilon: float) -> Fraction:
    """The decimal number that the user wrote: 0.1 is 1/10, so that ten of them make one."""
    return Fraction(repr(epsilon))


def exponential_weight(epsilon: float) -> int:
    """floor(2^64 e^eps), never above: the safe side.

    A float has two readings, its binary value and the decimal that was typed; the smaller
    counts. `Decimal.exp` rounds to nearest, so its last digit is lowered by one.

    >>> exponential_weight(3.0)
    370512759205086491348
    """
    smaller = min(Decimal(epsilon), Decimal(repr(epsilon)))
    below = _DIGITS.next_minus(_DIGITS.exp(smaller))
    return int(_DIGITS.multiply(below, Decimal(UNIT)))


def alpha_of_epsilon(epsilon: float, threshold: int) -> Decimal:
    """The paper's alpha = (e^eps - 1) / (e^eps + M - 2) to 60 digits (equation (21)).

    >>> round(alpha_of_epsilon(3.0, 300), 7)
    Decimal('0.0600013')
    """
    power = _DIGITS.exp(Decimal(repr(epsilon)))
    above = _DIGITS.subtract(power, Decimal(1))
    return _DIGITS.divide(above, _DIGITS.add(power, Decimal(threshold - 2)))


def exponential_of_alpha(alpha: Fraction, threshold: int) -> Fraction:
    """The e^eps that belongs to an alpha: (1 + alpha (M - 2)) / (1 - alpha) (equation (20)).

    The authors' code sets alpha = 1/2 and M = 100 by hand, which is eps = ln 100 = 4.6:

    >>> exponential_of_alpha(Fraction(1, 2), 100)
    Fraction(100, 1)
    """
    if not 0 <= alpha < 1:
        raise BadParameter("alpha", "exponential_of_alpha", "in [0, 1)", alpha)
    return (1 + alpha * (threshold - 2)) / (1 - alpha)


def epsilon_of_alpha(alpha: Fraction, threshold: int) -> float:
    """The eps that belongs to an alpha."""
    return math.log(exponential_of_alpha(alpha, threshold))


def worst_variance(epsilon: float, levels: int) -> float:
    """The largest variance of one debiased answer over all sizes, as a share of the range squared.

    With a = alpha, z the distance of the size from the middle of the levels and f its
    distance from the level below, both in levels, the variance of the answer is

        a (1 - a) z^2 + a f (1 - f) + (1 - a) (g^2 - 1) / 12.

    z^2 grows towards the ends and f (1 - f) repeats, so the worst size is in the last
    interval, t levels from the end, where the sum is a parabola in t.
    """
    excess = math.expm1(epsilon)
    alpha = excess / (excess + levels)
    middle = (levels - 1) / 2
    t = max((1 - 2 * (1 - alpha) * middle) / (2 * alpha), 0.0)
    truth = ((1 - alpha) * (middle - t) ** 2 + t * (1 - t)) / alpha
    lies = (1 - alpha) * (levels**2 - 1) / (12 * alpha**2)
    return (truth + lies) / (levels - 1) ** 2


def _end_variance(epsilon: float, levels: int) -> float:
    """The variance at the ends of the range; it grows with g, so it tells when to stop looking."""
    excess = math.expm1(epsilon)
    truth = (excess + 1) * (2 * levels + 1 + 1 / (levels - 1)) / 6
    return (truth + levels * (levels - 2) / 12) / excess**2


@lru_cache(maxsize=256)
def best_levels(epsilon: float, threshold: int) -> int:
    """The g in 2..M-1 with the smallest worst-case variance: it needs eps and no data.

    >>> [best_levels(epsilon, 1000) for epsilon in (1.0, 2.0, 3.0, 5.0, 8.0)]
    [2, 3, 4, 7, 17]
    """
    best, smallest = 2, worst_variance(epsilon, 2)
    for levels in range(3, threshold):
        if _end_variance(epsilon, levels) >= smallest:
            break
        variance = worst_variance(epsilon, levels)
        if variance < smallest:
            best, smallest = levels, variance
    return best
