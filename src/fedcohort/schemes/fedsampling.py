"""FedSampling: choose samples, not clients."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np

from fedcohort._internal.errors import BadParameter, FedcohortWarning, shown
from fedcohort._internal.parameters import Maybe, OneOf, Real, Whole, depending, is_real
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Ints
from fedcohort.privacy import SizeReport, TotalEstimate, estimate_total
from fedcohort.privacy._size_estimate import NO_SHARE, SizeShare, estimate_sum, possible
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation, exact_sum
from fedcohort.selection._queries import Ask, Conversation, Signal
from fedcohort.selection._scheme import (
    EVERYONE,
    SHARES,
    SIZES,
    TRAINING,
    Claim,
    Disclosure,
    NoState,
    RoundContext,
    Scheme,
)

QI = Citation(
    "Tao Qi, Fangzhao Wu, Lingjuan Lyu, Yongfeng Huang, Xing Xie",
    "FedSampling: A Better Sampling Strategy for Federated Learning",
    "IJCAI",
    2023,
)

NO_ANSWER = -1


@lru_cache(maxsize=64)  # its weights come from 60-digit arithmetic
def _law(threshold: int, epsilon: float, levels: int, mechanism: Any) -> SizeReport:
    return SizeReport(threshold, epsilon, levels, mechanism)


PRIVATE_SIZE = Signal(
    "private_size",
    "a randomised answer about the number of samples",
    lambda client, round, **law: client.private_size(_law(**law), round),
    needs={"size", "private_size"},
    shape=(),
    whole=True,
)


PRIVATE_SHARE = Signal(
    "private_share",
    "a share of the noisy sum of all sizes, which alone is to be seen (secure aggregation)",
    lambda client, round, **law: client.private_share(SizeShare(**law), round),
    secrecy="summed",
    needs={"size", "private_share"},
    shape=(),
    whole=True,
)


@dataclass(frozen=True)
class Answers:
    """What clients said about their size."""

    private: Annotated[Ints, Shaped("n")]  # NO_ANSWER where none is kept: none came, or none fits


@dataclass(frozen=True)
class FedSampling(Scheme[Answers]):
    """All clients take part, each sample with probability K/N~; answers are sums of gradients.

    The server estimates the total N of all samples from randomised answers (N~, eps-LDP), has
    every client draw its samples with p = min(1, K/N~), and divides the *sum* of what they
    send by K: E[step | N~] = (N/N~) grad F, whoever holds which samples. An error in N~ is an
    error of the step length and of nothing else. A client without a drawn sample sends zero,
    so that its silence does not tell its size.

    With one local step on all drawn data (``LocalWork(steps=1, batch=None)``) this is the
    paper. More local steps go beyond it: a client's update then counts once per drawn sample.

    Parameters
    ----------
    K
        Samples wanted per round.
    epsilon, M
        Privacy of one answer; sizes are clipped to 1..M-1 first.
    mechanism
        ``"levels"``: few levels, then randomised response; ``"paper"``: randomised response on
        the size itself, whose error is 17 times larger at M = 300, eps = 3; ``"sum"``: clipped
        sizes are added up under secure aggregation, with discrete noise that the clients share,
        whose error is that of one client; ``"exact"``: the sizes are known to the server and
        nobody is asked.
    levels
        Of the mechanism of that name; None: chosen from eps. Two are best where nearly all clients
        are small.
    quorum
        The share of the clients whose noise is enough for a ``"sum"``; fewer are not added up.
    step
        ``"expected"``: the sum of gradients is divided by K. ``"counted"``: by the number of
        samples that took part, one more coordinate of the sum, so that an error of N~ changes the
        length of no step (self-normalised; biased a little, as ratios are).
    fresh
        ``"never"``: a client answers once, and its answer is used in every round it is
        available. ``"every-round"``: as in the paper; the epsilons of all rounds add up.
    when_imprecise
        What happens if the standard error of N~ is above 25 %: ``"refuse"``, ``"warn"`` or
        ``"accept"`` (which is silent about floors and caps, too).
    version
        ``"corrected"``, or ``"printed"``: the scheme of the paper. It sets ``mechanism=paper``
        and ``fresh=every-round``, and refuses no estimate.

    Where we differ: ``version=printed`` answers with a size out of 1..M-1 (an empty client with
    0, for which epsilon does not hold), asks in every round, takes any estimate, and divides the
    sum by K even where fewer than K samples are estimated. The corrected version clips sizes from
    below, too, asks once by levels, refuses an estimate that is too uncertain, and divides by N~
    where K > N~ (then p = 1), so that the formula above always holds. Two things are never as
    printed, as they cannot be run: N~ has a floor of one sample per client, as in the authors'
    code, since K/N~ is no probability for N~ <= 0; and the server subtracts gradients where
    Algorithm 1, line 18, adds them.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([60, 30, 10])
    >>> cohort = Selector(scheme("fedsampling", K=20, mechanism="exact"), federation).select()
    >>> cohort.data_rate, cohort.weights, cohort.per_sample
    (0.2, array([0.05, 0.05, 0.05]), True)
    """

    K: Annotated[int, Whole(1)] = 100
    epsilon: Annotated[float, Real(1e-6, 20.0)] = 3.0
    M: Annotated[int, Whole(3, 2**31)] = 300
    mechanism: Annotated[str, OneOf(("levels", "paper", "sum", "exact"))] = "levels"
    fresh: Annotated[str, OneOf(("never", "every-round"))] = "never"
    when_imprecise: Annotated[str, OneOf(("refuse", "warn", "accept"))] = "refuse"
    levels: Annotated[int | None, Maybe(Whole(2, 2**31))] = None
    quorum: Annotated[float, Real(0, 1, open_low=True)] = 0.8
    step: Annotated[str, OneOf(("expected", "counted"))] = "expected"
    version: Annotated[str, OneOf(("corrected", "printed"))] = "corrected"

    name: ClassVar[str] = "fedsampling"
    draws_once: ClassVar[bool] = True
    subsampling: ClassVar[bool] = True
    counts_samples: ClassVar[bool] = True
    paper: ClassVar[Citation] = replace(QI, where="Algorithm 1, equations (1) and (2)")
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.EVEN_OVER_SAMPLES})
    asks: ClassVar[frozenset[Signal]] = depending(
        frozenset({PRIVATE_SIZE, PRIVATE_SHARE}),
        lambda scheme: {
            "exact": frozenset[Signal](),
            "sum": frozenset({PRIVATE_SHARE}),
        }.get(scheme.mechanism, frozenset({PRIVATE_SIZE})),
    )
    divides: ClassVar[bool] = depending(False, lambda scheme: scheme.step == "counted")
    State: ClassVar[type] = Answers

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.version == "corrected":
            return
        own = {"mechanism": ("levels", "paper"), "levels": (None,), "step": ("expected",)}
        for name, fits in own.items():  # the first is the default, which says nothing
            if getattr(self, name) not in fits:
                must = f"{fits[-1]!r}, or left out, with version='printed'"
                raise BadParameter(name, self.name, must, getattr(self, name))
        object.__setattr__(self, "mechanism", "paper")
        object.__setattr__(self, "fresh", "every-round")
        if self.when_imprecise == "refuse":
            object.__setattr__(self, "when_imprecise", "accept")

    @property
    def report(self) -> SizeReport:
        """The law of one private answer."""
        mechanism = "printed" if self.version == "printed" else self.mechanism
        return _law(self.M, self.epsilon, self.levels or 0, mechanism)

    def share(self, clients: int) -> SizeShare:
        """The law of one share of the sum over so many clients."""
        return SizeShare(self.M, self.epsilon, max(1, math.ceil(self.quorum * clients)))

    @property
    def _nothing(self) -> int:
        return NO_SHARE if self.mechanism == "sum" else NO_ANSWER

    def _heard(self, rows: Array) -> Ints:
        return possible(rows) if self.mechanism == "sum" else _possible(rows, self.report)

    def start(self, federation: Federation, rng: Any) -> Conversation[Answers]:
        kept = np.full(len(federation), self._nothing, dtype=np.int64)
        return (yield from self._ask_once(kept, federation))

    def adapt(
        self, state: Answers, federation: Federation, came_from: Ints, rng: Any
    ) -> Conversation[Answers]:
        """Who was asked before is not asked again."""
        known = np.append(state.private, self._nothing)  # position -1: new here
        return (yield from self._ask_once(known[came_from], federation))

    def _ask_once(self, known: Ints, federation: Federation) -> Conversation[Answers]:
        """Ask those whose answer is missing; refuse now rather than in the middle of a run."""
        if self.mechanism == "exact" or self.fresh == "every-round":
            return Answers(known)  # nobody's answer is kept
        everyone = federation.present
        missing = everyone[known[everyone] == self._nothing]
        if self.mechanism == "sum" and len(missing) < len(everyone):
            missing = missing[:0]  # a sum of a few newcomers would show them: they count as usual
        if len(missing):
            known[missing] = self._heard((yield self._question(missing, 0)))
        if self.mechanism != "sum" or len(missing):
            self._estimate(known[everyone], self.when_imprecise)
        return Answers(known)

    def _question(self, clients: Ints, round: int) -> Ask:
        if self.mechanism == "sum":
            share = self.share(len(clients))
            told = {"threshold": share.threshold, "epsilon": share.epsilon, "least": share.least}
            return Ask(PRIVATE_SHARE, clients, {**told, "round": round})
        law = self.report
        words = {"threshold": law.threshold, "epsilon": law.epsilon, "levels": law.levels}
        return Ask(PRIVATE_SIZE, clients, {**words, "mechanism": law.mechanism, "round": round})

    def _estimate(self, answers: Array, when_imprecise: str) -> TotalEstimate:
        choice = cast('Literal["refuse", "warn", "accept"]', when_imprecise)
        if self.mechanism == "sum":
            return estimate_sum(answers, self.share(len(answers)), when_imprecise=choice)
        return estimate_total(answers, self.report, when_imprecise=choice)

    def select(
        self, state: Answers, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        everyone = federation.present
        if self.mechanism == "exact":
            return self.given(self._known_total(federation), 1.0, everyone)
        if self.fresh == "every-round":
            rows = yield self._question(everyone, context.round)
            estimate = self._estimate(self._heard(rows), self.when_imprecise)
        elif self.mechanism == "sum":  # it was opened once, for all who answered then
            told = state.private[state.private != NO_SHARE]
            share = SizeShare(self.M, self.epsilon, 1)
            estimate = estimate_sum(told, share, len(everyone), when_imprecise="accept")
        else:  # judged when the answers came; that fewer are available now is no reason to stop
            estimate = self._estimate(state.private[everyone], "accept")
        if estimate.floored:
            self._warn(f"the floor stands in for an impossible estimate: {estimate}.")
        return self.given(estimate.total, estimate.floor, everyone)

    def given(self, total: float, floor: float, clients: Ints) -> Cohort:
        """The cohort of these clients once N~ is known."""
        usable = max(total, floor)
        if usable < self.K:
            wanted = f"K = {shown(self.K)} samples are wanted"
            self._warn(f"{wanted} of about {usable:.0f}; all take part.")
        taking_part = float(min(self.K, usable))
        divisor = self.K if self.version == "printed" else taking_part
        rate = taking_part / usable
        return Cohort.of(clients, 1.0 / divisor, data_rate=rate, per_sample=True)

    def _warn(self, what: str) -> None:
        if self.when_imprecise != "accept":
            warnings.warn(f"{self.name}: {what}", FedcohortWarning, stacklevel=2)

    def _known_total(self, federation: Federation) -> float:
        if federation.sizes is None:
            raise BadParameter(
                "mechanism", self.name, "'levels' or 'paper' where sizes are private", "exact"
            )
        return float(exact_sum(federation.sizes))

    def disclosures(self, rounds: int) -> tuple[Disclosure, ...]:
        if self.mechanism == "exact":
            return (SIZES, EVERYONE, TRAINING)
        often = self.fresh == "every-round"
        when, spent = ("every round", rounds * self.epsilon) if often else ("once", self.epsilon)
        signal = PRIVATE_SHARE if self.mechanism == "sum" else PRIVATE_SIZE
        asked = Disclosure(signal.name, when, signal.discloses, spent)
        return (asked, EVERYONE, TRAINING, SHARES)


def _possible(rows: Array, report: SizeReport) -> Ints:
    """The answers that an honest client can give; all else is no answer."""
    allowed = report.answers
    if rows.dtype.kind == "i":
        return np.where((rows >= allowed.start) & (rows < allowed.stop), rows, NO_ANSWER)
    given = [int(row) if is_real(row) and row in allowed else NO_ANSWER for row in rows]
    return np.array(given, dtype=np.int64)


# A fixed share of everybody's samples: what one may do without knowing how many there are.


COUNTS = Disclosure(
    "size", "every round", "how many of its samples take part, unless securely aggregated"
)


@dataclass(frozen=True)
class FedSamplingNaive(Scheme[NoState]):
    """All clients take part with a fixed share of their samples.

    What one may do without knowing N (the paper's Section 3.3): the rate is fixed, each client
    averages over the samples it drew, and the server averages the clients. There are two forms.
    If all clients count the same, nobody says anything about sizes; but a sample of a small client
    counts for more than one of a large client, so the step is biased wherever sizes go with the
    data. If clients count by the number of samples that they drew, every sample counts the same;
    but these numbers give the sizes away.

    Parameters
    ----------
    rate
        The probability with which each sample takes part.
    weighting
        ``"uniform"``: all clients count the same; ``"counts"``: by the number of samples drawn.
    answering
        The share of clients that is expected to have drawn a sample. The others send zero, and
        the average is meant over those who did not: the weight is 1 / (n answering). Must be 1
        with ``weighting=counts``.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([60, 30, 10])
    >>> Selector(scheme("fedsampling-naive", rate=0.5), federation).select().weights
    array([0.33333333, 0.33333333, 0.33333333])
    """

    rate: Annotated[float, Real(0, 1, open_low=True)] = 0.01
    answering: Annotated[float, Real(0, 1, open_low=True)] = 1.0
    weighting: Annotated[str, OneOf(("uniform", "counts"))] = "uniform"

    name: ClassVar[str] = "fedsampling-naive"
    draws_once: ClassVar[bool] = True
    subsampling: ClassVar[bool] = True
    counts_samples: ClassVar[bool] = depending(False, lambda scheme: scheme.divides)
    divides: ClassVar[bool] = depending(False, lambda scheme: scheme.weighting == "counts")
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset[Claim](),
        lambda scheme: frozenset({Claim.EVEN_OVER_SAMPLES} if scheme.divides else ()),
    )
    paper: ClassVar[Citation] = replace(QI, where="Section 3.3, the naive method")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.divides and self.answering != 1:
            raise BadParameter("answering", self.name, "1 with weighting='counts'", self.answering)

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        everyone = federation.present
        if self.divides:  # the sum is divided by the number of samples that took part
            return Cohort.of(everyone, 1.0, data_rate=self.rate, per_sample=True)
        return Cohort.of(everyone, 1.0 / (len(everyone) * self.answering), data_rate=self.rate)

    def disclosures(self, rounds: int) -> tuple[Disclosure, ...]:
        if self.divides:
            return (EVERYONE, TRAINING, COUNTS)
        return (EVERYONE, TRAINING, SHARES)
