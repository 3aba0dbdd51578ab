"""Estimates from private replies: the total size, its error, the data rate, and secure sums.

The rule. An answer is, in levels, l with probability alpha and uniform otherwise, so
(l - (1 - alpha)(g - 1)/2) / alpha is unbiased for the position of the clipped size between
the levels (paper: equation (2), N~ = (sum r - (1 - alpha) M |C| / 2) / alpha). The variance
of one answer of a size at distance z from the middle level and f above the level below is

    alpha (1 - alpha) z^2 + alpha f (1 - f) + (1 - alpha)(g^2 - 1)/12,

over alpha^2 for the debiased one; f = 0 in the paper's mechanism, which has no rounding.

What the server can know of it: the mean square of the answers gives the rest without bias,
but no answer tells how far a size lies from its level. There f (1 - f) is taken as 1/6 (sizes
spread evenly between levels), or as the mean distance from the end where that is smaller (all
sizes near 1). The truth is in [0, 1/4]: if *all* clients have one size half-way between two
levels, the standard error is too small by 7 % at eps = 3, by 11 % at eps = 8.
``cautious=True`` takes 1/4, and errs on the safe side only.

Where we differ from the paper: N~ always comes with its standard error, and is refused when
that is above 25 %. At the paper's own setting (eps = 3, M = 300, 53,000 clients of mean size
2.4) the relative standard error is 270 % and N~ <= 0 in four runs of ten. K / N~ gets a
floor (the authors' code has it, the paper has not) and is capped at 1. "Unbiased" is meant
for the *clipped* sizes; `clipping` says what is lost.

>>> report = SizeReport(threshold=100, epsilon=5.0)
>>> estimate = estimate_total([0] * 700 + [1] * 200 + [6] * 100, report)
>>> print(estimate)
N = 12360 +- 449 (95 % interval 11481 to 13240; 1000 of 1000 clients answered)
>>> round(estimate.rate(500).value, 4)
0.0405
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Literal, cast, get_args

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning, TooImprecise
from fedcohort._internal.parameters import is_real, is_whole
from fedcohort._internal.types import Array, Ints
from fedcohort.maths._noise import Source, variance
from fedcohort.privacy._mechanisms import (
    LARGEST_EPSILON,
    LARGEST_THRESHOLD,
    SMALLEST_EPSILON,
    SizeReport,
    entropy_below,
    whole_size,
)

WhenImprecise = Literal["refuse", "warn", "accept"]


@dataclass(frozen=True)
class Rate:
    """The probability with which every sample takes part, and whether it had to be bounded."""

    value: float
    floored: bool  # the estimate was below its floor
    capped: bool  # more samples were wanted than there are: everything takes part


@dataclass(frozen=True)
class TotalEstimate:
    """The estimated number of samples of all clients that were asked.

    ``total`` is unbiased and may be negative; ``usable`` is never below ``floor``.
    """

    total: float
    standard_error: float
    low: float
    high: float
    confidence: float
    asked: int
    answered: int
    rejected: int
    floor: float

    @property
    def floored(self) -> bool:
        """Whether the floor had to be used."""
        return self.total < self.floor

    @property
    def usable(self) -> float:
        """The estimate, or the floor if that is larger."""
        return max(self.total, self.floor)

    @property
    def relative_error(self) -> float:
        """The standard error as a share of the estimate; infinite at or below zero."""
        return self.standard_error / self.total if self.total > 0 else math.inf

    def rate(self, samples: float) -> Rate:
        """The rate at which ``samples`` samples are expected to take part."""
        return data_rate(samples, self.total, self.floor)

    def __str__(self) -> str:
        floored = f"; below its floor {self.floor:.0f}" if self.floored else ""
        return (
            f"N = {self.total:.0f} +- {self.standard_error:.0f} ({self.confidence:.0%} interval "
            f"{self.low:.0f} to {self.high:.0f}; {self.answered} of {self.asked} clients "
            f"answered{floored})"
        ).replace("%", " %")


def data_rate(samples: float, total: float, floor: float) -> Rate:
    """The rule p = min(1, K / max(N~, floor)), with a warning when it is capped.

    >>> data_rate(2048, -500.0, 53520)
    Rate(value=0.038266068759342305, floored=True, capped=False)
    """
    if not is_real(samples) or samples <= 0:
        raise BadParameter("samples", "data_rate", "a number above 0", samples)
    if not is_real(total):
        raise BadParameter("total", "data_rate", "a number", total)
    if not is_real(floor) or floor <= 0:
        raise BadParameter("floor", "data_rate", "a number above 0", floor)
    usable = max(total, floor)
    capped = samples > usable
    if capped:
        warnings.warn(
            f"{samples:g} samples are wanted of about {usable:g}: every sample takes part.",
            FedcohortWarning,
            stacklevel=2,
        )
    return Rate(min(1.0, samples / usable), floored=total < floor, capped=capped)


# -- from answers ------------------------------------------------------------------------------


def estimate_total(
    answers: Sequence[object] | Array,
    report: SizeReport,
    *,
    asked: int | None = None,
    floor: float | None = None,
    confidence: float = 0.95,
    cautious: bool = False,
    tolerance: float = 0.25,
    when_imprecise: WhenImprecise = "refuse",
) -> TotalEstimate:
    """The total over all clients that were asked, from the answers of those who did.

    Parameters
    ----------
    answers
        One per client. Whatever is outside the answer set is rejected and counted; ``None``
        stands for no answer.
    report
        The law the clients were asked to follow.
    asked
        The number of clients asked; as many as there are answers by default. The estimate is
        scaled up to them, as if those who answered were a random sample, and the standard
        error widened by what the others may have.
    floor
        A known lower bound of N; the number of clients that answered by default.
    cautious
        Take the largest possible rounding error instead of the usual one.
    tolerance, when_imprecise
        What happens when the relative standard error is above ``tolerance``.
    """
    _check_options(floor, confidence, tolerance, when_imprecise)
    if isinstance(answers, str | bytes) or not hasattr(answers, "__len__") or _is_scalar(answers):
        raise BadParameter("answers", "estimate_total", "one answer per client", answers)
    valid, rejected = _inside(answers, report.answers)
    if valid.size == 0:
        raise BadInput(
            f"No client gave an answer in {report.answers} ({rejected} were rejected), so nothing "
            "is known about the number of samples; ask again or pass the sizes."
        )
    asked = len(answers) if asked is None else asked
    if not is_whole(asked) or asked < valid.size:
        must = f"an int of at least the number of answers ({valid.size})"
        raise BadParameter("asked", "estimate_total", must, asked)
    levels = valid - report.lowest
    total = float(
        unbiased_total(int(levels.sum()), valid.size, report) * Fraction(asked, valid.size)
    )
    error = math.sqrt(_variance_from_levels(levels, report, asked, 1 / 4 if cautious else 1 / 6))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    estimate = TotalEstimate(
        total=total,
        standard_error=error,
        low=total - reach,
        high=total + reach,
        confidence=confidence,
        asked=asked,
        answered=valid.size,
        rejected=rejected,
        floor=float(valid.size if floor is None else floor),
    )
    refuse_imprecise(estimate, tolerance, when_imprecise)
    return estimate


def _check_options(
    floor: float | None, confidence: float, tolerance: float, when_imprecise: WhenImprecise
) -> None:
    owner, words = "estimate_total", get_args(WhenImprecise)
    if floor is not None and not (is_real(floor) and floor > 0):
        raise BadParameter("floor", owner, "a number above 0, or left out", floor)
    if not is_real(confidence) or not 0 < confidence < 1:
        raise BadParameter("confidence", owner, "a number in (0, 1)", confidence)
    if not is_real(tolerance) or tolerance <= 0:
        raise BadParameter("tolerance", owner, "a number above 0", tolerance)
    if when_imprecise not in words:
        raise BadParameter("when_imprecise", owner, f"one of {words}", when_imprecise)


def first_answers(pairs: Iterable[tuple[Hashable, object]]) -> dict[Hashable, object]:
    """One answer per client, the first: whoever answers twice does not count twice.

    >>> first_answers([("a", 3), ("b", 1), ("a", 0)])
    {'a': 3, 'b': 1}
    """
    kept: dict[Hashable, object] = {}
    for client, answer in pairs:
        kept.setdefault(client, answer)
    return kept


def _is_scalar(answers: object) -> bool:
    return isinstance(answers, np.ndarray | np.generic) and answers.ndim != 1


def _inside(answers: Sequence[object] | Array, allowed: range) -> tuple[Ints, int]:
    """The answers that an honest client can give, and how many others there were."""
    if isinstance(answers, np.ndarray) and answers.dtype.kind in "iu":
        fits = (answers >= allowed.start) & (answers < allowed.stop)
        return answers[fits].astype(np.int64), int(answers.size - fits.sum())
    given = [answer for answer in answers if answer is not None]
    kept = [int(cast("int", answer)) for answer in given if is_real(answer) and answer in allowed]
    return np.array(kept, dtype=np.int64), len(given) - len(kept)


def unbiased_total(
    level_sum: int, clients: int, report: SizeReport, alpha: Fraction | None = None
) -> Fraction:
    """N~ exactly, from the sum of the answers in levels (answers minus the lowest)."""
    alpha = report.alpha if alpha is None else alpha
    middle = clients * Fraction(report.levels - 1, 2)
    spacing = Fraction(report.threshold - 2, report.levels - 1)
    return clients + spacing * ((level_sum - middle) / alpha + middle)


def _variance_from_levels(levels: Ints, report: SizeReport, asked: int, rounding: float) -> float:
    """Var(N~) as the server can estimate it; the module's docstring has the reasoning."""
    alpha, count, last = float(report.alpha), levels.size, report.levels - 1
    spread = (report.levels**2 - 1) / 12  # the variance of a uniform level
    centred = levels - last / 2
    mean = float(centred.mean()) / alpha + last / 2  # of the positions, in levels
    # f (1 - f) <= f and <= 1 - f, so its mean is below the mean distance from either end.
    rounding = max(0.0, min(rounding, mean, last - mean))
    if report.levels == report.threshold - 1:  # every size has its own level: nothing is rounded
        rounding = 0.0
    # Mean variance of one answer: E[y^2] - alpha^2 z^2, with z^2 = E[l^2] - f (1 - f).
    noise = (1 - alpha) * (np.mean(centred**2) + alpha * spread) + alpha**2 * rounding
    variance = noise / count
    if asked > count:
        # Whom we did not hear may differ: the variance of a mean of `count` out of `asked`.
        between = (last / 2) ** 2 * alpha**2  # the largest possible, if there is one answer only
        if count > 1:
            between = min(between, max(0.0, float(np.var(levels, ddof=1)) - noise))
        variance += (1 - count / asked) * between / count
    spacing = (report.threshold - 2) / last
    return float(variance * (asked * spacing / alpha) ** 2)


def refuse_imprecise(
    estimate: TotalEstimate, tolerance: float, when_imprecise: WhenImprecise
) -> None:
    """Refuse an estimate that is too uncertain, or warn of it."""
    error = estimate.relative_error
    if error <= tolerance or when_imprecise == "accept":
        return
    size, needed = "beyond measure, for N is not above 0", "more"
    if error < math.inf:
        size = f"{error:.0%} of N"
        needed = f"about {math.ceil(estimate.answered * (error / tolerance) ** 2)}"
    message = (
        f"The total is too uncertain: its relative standard error is {size}; {tolerance:.0%} is "
        f"allowed ({estimate.total:.0f} +- {estimate.standard_error:.0f}). Ask {needed} clients, "
        "with a larger epsilon or a smaller threshold M"
    )
    if when_imprecise == "refuse":
        raise TooImprecise(f"{message}, or pass when_imprecise='warn'.")
    warnings.warn(f"{message}.", FedcohortWarning, stacklevel=3)


# -- from known sizes: theory ------------------------------------------------------------------


def variance_of_total(
    sizes: Iterable[int], report: SizeReport, alpha: Fraction | None = None
) -> Fraction:
    """Var(N~) exactly, for known sizes."""
    alpha = report.alpha if alpha is None else alpha
    last, step = report.levels - 1, report.threshold - 2
    spread = Fraction(report.levels**2 - 1, 12)
    values, counts = np.unique([_clipped(size, report) for size in sizes], return_counts=True)
    variance = Fraction(0)
    for size, count in zip(values.tolist(), counts.tolist(), strict=True):
        position = Fraction((size - 1) * last, step)
        z, f = position - Fraction(last, 2), position % 1
        truth = alpha * (1 - alpha) * z**2 + alpha * f * (1 - f)
        variance += count * (truth + (1 - alpha) * spread)
    return variance * (Fraction(step, last) / alpha) ** 2


def standard_error(sizes: Iterable[int], report: SizeReport) -> float:
    """The standard error of N~ for known sizes.

    >>> sizes = [24] * 10_000
    >>> paper = standard_error(sizes, SizeReport(100, 3.0, mechanism="paper"))
    >>> round(paper / standard_error(sizes, SizeReport(100, 3.0)), 1)
    6.3
    """
    return math.sqrt(variance_of_total(sizes, report))


def _clipped(size: object, report: SizeReport) -> int:
    return report.clip(whole_size(size, "variance_of_total"))


@dataclass(frozen=True)
class Clipping:
    """What clipping to 1..M-1 does to the total: N~ estimates ``total + bias``."""

    clients: int
    clipped: int  # clients with more than M - 1 samples
    empty: int  # clients with no sample, which count as one
    bias: float
    total: float  # the true number of samples

    @property
    def relative(self) -> float:
        """The bias as a share of the true total."""
        return self.bias / self.total if self.total else 0.0


def clipping(sizes: Iterable[int], report: SizeReport) -> Clipping:
    """The clipping bias for known sizes: -sum (n_c - (M-1))_+ + (number of empty clients).

    >>> clipping([0, 5, 12], SizeReport(threshold=11, epsilon=3.0))
    Clipping(clients=3, clipped=1, empty=1, bias=-1.0, total=17.0)
    """
    known = [whole_size(size, "clipping") for size in sizes]
    bias = sum(report.clip(size) - size for size in known)
    clipped = sum(size > report.threshold - 1 for size in known)
    return Clipping(len(known), clipped, known.count(0), float(bias), float(sum(known)))


def clipping_from_rate(estimate: TotalEstimate, clip_rate: float, mean_excess: float) -> Clipping:
    """The clipping bias when only a rate is known, from elsewhere or from an earlier study.

    ``clip_rate`` is the share of clients above M - 1, ``mean_excess`` by how many samples
    they are above it on average. No client reports either here: they would cost eps as well.
    """
    if not is_real(clip_rate) or not 0 <= clip_rate <= 1:
        raise BadParameter("clip_rate", "clipping_from_rate", "a number in [0, 1]", clip_rate)
    if not is_real(mean_excess) or mean_excess < 0:
        raise BadParameter("mean_excess", "clipping_from_rate", "a number >= 0", mean_excess)
    lost = clip_rate * estimate.asked * mean_excess
    clipped = round(clip_rate * estimate.asked)
    return Clipping(estimate.asked, clipped, 0, -lost, estimate.usable + lost)


# The sum of all sizes with noise that the clients share: for secure aggregation.
#
# The problem. Under local privacy every size is hidden by itself, and the total N has the noise of
# all clients. Where secure aggregation shows nothing but a *sum*, noise is needed once: each client
# adds a small share of it, and only the sum has enough.
#
# The rule. Sizes are clipped to 1..M-1. The sum is to have discrete Laplace noise,
# P(x) ~ q^|x| with q = exp(-eps / (M - 2)): the difference of two geometric numbers. A geometric
# number is the sum of t numbers of Pólya's law (negative binomial with 1/t successes), so each
# client adds the difference of two of these: the answers of any t clients have all the noise. More
# answers have more, and the sum of the rest is as private as before; of fewer none may be opened.
#
# *Replacing the size of one client by any other changes the chance of any sum by at most e^eps.* A
# single share hides next to nothing: it must never be seen, so a client agrees to it by name
# (``ClientPolicy(mechanisms=(..., "sum"))``).
#
# Noise is in whole numbers, so it has no holes; its chances are exact but for the rounding of
# double precision, where `fedcohort.privacy._mechanisms` is exact in integers.


MECHANISM = "sum"
NO_SHARE = -(2**62)
"""Stands for no answer: no share comes near it."""
DIGITS = 2**53


@dataclass(frozen=True)
class SizeShare:
    """The law of one client's share of the noisy sum of sizes.

    Parameters
    ----------
    threshold
        M: sizes are clipped to 1..M-1.
    epsilon
        Of the sum of at least ``least`` shares.
    least
        t, how many shares have all the noise; fewer are not summed up.

    >>> share = SizeShare(threshold=300, epsilon=3.0, least=80)
    >>> round(share.deviation(100))  # of the sum of a hundred shares
    157
    """

    threshold: int
    epsilon: float
    least: int

    def __post_init__(self) -> None:
        owner = "SizeShare"
        if not is_whole(self.threshold) or not 3 <= self.threshold <= LARGEST_THRESHOLD:
            must = f"an int in [3, {LARGEST_THRESHOLD}]"
            raise BadParameter("threshold", owner, must, self.threshold)
        if not is_real(self.epsilon) or not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            must = f"a number in [{SMALLEST_EPSILON}, {LARGEST_EPSILON:g}]"
            raise BadParameter("epsilon", owner, must, self.epsilon)
        if not is_whole(self.least) or not 1 <= self.least <= 10**9:
            raise BadParameter("least", owner, "an int in [1, 10**9]", self.least)

    @property
    def scale(self) -> float:
        """How far one client moves the sum, over epsilon."""
        return (self.threshold - 2) / self.epsilon

    def deviation(self, shares: int) -> float:
        """The standard deviation of the noise in the sum of so many shares."""
        return math.sqrt(variance(self.scale) * shares / self.least)

    def clip(self, size: int) -> int:
        """The size inside 1..M-1."""
        return min(max(size, 1), self.threshold - 1)

    def noise(self, source: Source) -> int:
        """One share of the noise."""
        return self._polya(source) - self._polya(source)

    def _polya(self, source: Source) -> int:
        """A Poisson number of logarithmic ones: Pólya's law with 1/t successes."""
        log_rest = math.log(-math.expm1(-1 / self.scale))  # of 1 - q
        limit, product, total = math.exp(log_rest / self.least), 1.0, 0
        while True:
            product *= _uniform(source)
            if product <= limit:
                return total
            total += _logarithmic(source, log_rest)


def _logarithmic(source: Source, log_rest: float) -> int:
    """P(k) ~ q^k / k, by Kemp's algorithm (1981)."""
    first = _uniform(source)
    x = -math.expm1(_uniform(source) * log_rest)
    if first > x:
        return 1
    if first > x * x:
        return 2
    return max(1, math.floor(1 + math.log(first) / math.log(x)))


def _uniform(source: Source) -> float:
    return (source.below(DIGITS) + 0.5) / DIGITS


class _Entropy:
    """Whole numbers of the operating system."""

    def below(self, bound: int) -> int:
        return entropy_below(bound)


def draw_share(share: SizeShare, size: int) -> int:
    """What a client puts into the sum; from the operating system, and booked elsewhere."""
    return share.clip(whole_size(size, "draw_share")) + share.noise(_Entropy())


def possible(rows: Array) -> Ints:
    """Shares as they came; what cannot be one is none."""
    told = np.asarray(rows, dtype=np.float64)
    good = np.isfinite(told) & (np.abs(told) < 2.0**53) & (told == np.rint(told))
    out = np.full(len(told), NO_SHARE, dtype=np.int64)
    out[good] = told[good].astype(np.int64)
    return out


def estimate_sum(
    shares: Sequence[int] | Ints,
    share: SizeShare,
    asked: int | None = None,
    confidence: float = 0.95,
    tolerance: float = 0.25,
    when_imprecise: WhenImprecise = "refuse",
) -> TotalEstimate:
    """N with its standard error, from the sum of shares; nothing else is looked at.

    >>> estimate_sum([40] * 100, SizeShare(300, 3.0, 80)).total
    4000.0
    """
    told = np.asarray(shares, dtype=np.int64)
    told = told[told != NO_SHARE]
    number, wanted = len(told), len(shares) if asked is None else asked
    if number < share.least:
        raise BadInput(
            f"A sum of sizes is opened only with the shares of {share.least} clients, whose noise "
            f"hides each of them; {number} of {wanted} answered. Ask more, or lower 'quorum'."
        )
    factor = wanted / number
    total, error = factor * float(told.sum()), factor * share.deviation(number)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    estimate = TotalEstimate(
        total, error, total - reach, total + reach, confidence, wanted, number, 0, float(number)
    )
    refuse_imprecise(estimate, tolerance, when_imprecise)
    return estimate
