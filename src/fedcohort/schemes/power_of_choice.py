"""Power-of-Choice and its variants: candidates, and those of the highest loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Flag, Maybe, OneOf, Whole
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._draws import distinct, top, weighted_without_replacement
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import LARGEST, LOSS, Ask, Conversation, Signal, comparable, sound
from fedcohort.selection._scheme import (
    Claim,
    NoState,
    RoundContext,
    Scheme,
    candidate_number,
    cohort_size,
)

S = TypeVar("S")

CHO = Citation(
    "Yae Jee Cho, Jianyu Wang, Gauri Joshi",
    "Towards Understanding Biased Client Selection in Federated Learning",
    "AISTATS",
    2022,
    "Section 4, Algorithm 1; arXiv:2010.01243",
)


@dataclass(frozen=True)
class PowerOfChoice(Scheme[S]):
    """d candidates; the m with the highest loss train, then the next."""

    m: Annotated[int, Whole(1)] = 10
    d: Annotated[int | None, Maybe(Whole(1))] = None
    candidates: Annotated[str, OneOf(("importance", "uniform"))] = "importance"
    negative: Annotated[bool, Flag()] = True

    paper: ClassVar[Citation] = CHO
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE, Claim.EXACTLY_M})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is not None and self.d < self.m:
            raise BadParameter("d", self.name, f"at least m ({self.m})", self.d)

    def drawn(self, federation: Federation, rng: Any) -> Ints:
        """The candidates: d distinct clients, with probability p or uniformly."""
        cohort_size(self.m, federation, self.name)  # more than could ever be chosen is an error
        d = candidate_number(self.d, self.m, federation, self.name)
        if self.candidates == "importance":
            return weighted_without_replacement(rng, federation.shares.weights, d)
        return federation.present[distinct(rng, len(federation.present), d)]

    def best(self, candidates: Ints, losses: Floats, rng: Any) -> Cohort:
        """The m candidates with the highest loss, ties at random, 1/m each; then the next.

        Those whose report was rejected (NaN) come last: there are m wherever there can be.
        """
        values = np.where(np.isnan(losses), -LARGEST, losses)
        chosen = Cohort.equal(candidates[top(rng, values, self.m)])
        return chosen.backed_by(candidates, values)


# Power-of-Choice: of d candidates, the m with the highest loss.


@dataclass(frozen=True)
class PowD(PowerOfChoice[NoState]):
    """d candidates are drawn with probability p, tell their loss, and the m highest train.

    Biased on purpose: clients on which the model is bad are trained more, which is faster at
    first and ends elsewhere (`fedcohort.theory._skew`). The larger d, the more of both; d = m is
    sampling without replacement with probability p.

    Parameters
    ----------
    m
        How many clients train; each weighs 1/m.
    d
        How many candidates are asked, m <= d <= n; None: 2 m, or all. They download the model
        to answer.
    candidates
        ``"importance"``: drawn one after another with probability p; ``"uniform"``, as in some
        published implementations, which ask clients of one sample as often as any other.
    negative
        Whether a loss may be below 0; if not, such a report is rejected.
    loss
        ``"mean"``: clients are compared by the mean loss of their samples; ``"sum"``: by the sum,
        which favors large clients, as in early copies of FedLab 1.3.0.

    Where we differ: ties are broken at random, as the paper says (its code takes whoever was
    drawn first). A loss that is missing (None) counts as the median of the others; a candidate
    whose loss is no finite number comes after all others. For a client that was chosen and does
    not answer the next candidate trains, as if the first had not been one.

    >>> from fedcohort import Federation, Selector, scheme
    >>> losses = [0.4, 0.9, 0.1, 0.7]
    >>> selector = Selector(scheme("pow-d", m=2, d=4), Federation.from_sizes([1] * 4), seed=0)
    >>> selector.select(ask=lambda ask: [losses[i] for i in ask.clients]).clients
    array([1, 3])
    """

    loss: Annotated[str, OneOf(("mean", "sum"))] = "mean"

    name: ClassVar[str] = "pow-d"
    asks: ClassVar[frozenset[Signal]] = frozenset({LOSS})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        candidates = self.drawn(federation, rng)
        answers = yield Ask(LOSS, candidates)
        losses = comparable(answers, self.name, self.negative)
        if self.loss == "sum":
            losses = losses * federation.importance[candidates]
        return self.best(candidates, losses, rng)


# Power-of-Choice by the loss of one mini-batch.


BATCH_LOSS = Signal(
    "batch_loss",
    "the loss of the model on a few local samples",
    lambda client, batch: client.loss(batch),
    needs_model=True,
    needs={"loss"},
    shape=(),
)


@dataclass(frozen=True)
class CPowD(PowerOfChoice[NoState]):
    """As `pow-d`, with the loss of one mini-batch instead of all local data: less work to ask.

    Parameters
    ----------
    m, d, candidates, negative
        As for `pow-d`.
    batch
        How many samples a candidate looks at, drawn anew each time.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([1] * 4)
    >>> selector = Selector(scheme("cpow-d", m=1, d=4, batch=8), federation, seed=0)
    >>> selector.select(ask=lambda ask: [ask.settings["batch"] * i for i in ask.clients]).clients
    array([3])
    """

    batch: Annotated[int, Whole(1)] = 64

    name: ClassVar[str] = "cpow-d"
    asks: ClassVar[frozenset[Signal]] = frozenset({BATCH_LOSS})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        candidates = self.drawn(federation, rng)
        losses = yield Ask(BATCH_LOSS, candidates, {"batch": self.batch})
        return self.best(candidates, comparable(losses, self.name, self.negative), rng)


# Power-of-Choice by the loss that came with the last update: nobody is asked.


@dataclass(frozen=True)
class LastLosses:
    """The loss that each client told when it last trained."""

    losses: Annotated[Floats, Shaped("n", finite=False)]  # +inf where none is known
    rounds: Annotated[Ints, Shaped("n", low=-1)]  # when it was told; -1 for never
    round: int  # the coming round

    def check_coherent(self) -> None:
        """Refuse a round that no run comes to, of a file that somebody else wrote."""
        if not 0 <= self.round < 2**62:
            raise BadInput("'round' is outside its range")


@dataclass(frozen=True)
class RPowD(PowerOfChoice[LastLosses]):
    """As `pow-d`, with the loss that a client told when it last trained: nobody is asked.

    A client that never trained counts as infinitely bad, so every candidate has its turn first.

    Parameters
    ----------
    m, d, candidates, negative
        As for `pow-d`.
    stale
        After so many rounds a loss is forgotten, as if the client had never trained; None keeps
        it for ever, as in the paper.

    Where we differ: the paper's clients report the mean loss over their local steps; here it is
    the loss of the model they received, which comes with the update in the same way.

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("rpow-d", m=2, d=3), Federation.from_sizes([1] * 3), seed=0)
    >>> len(selector.select())  # without an `ask`
    2
    """

    stale: Annotated[int | None, Maybe(Whole(1))] = None

    name: ClassVar[str] = "rpow-d"
    listens: ClassVar[frozenset[Signal]] = frozenset({LOSS})
    State: ClassVar[type] = LastLosses

    def start(self, federation: Federation, rng: Any) -> LastLosses:
        n = len(federation)
        return LastLosses(np.full(n, np.inf), np.full(n, -1, dtype=np.int64), 0)

    def select(
        self, state: LastLosses, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        candidates = self.drawn(federation, rng)
        losses = state.losses[candidates]
        if self.stale is not None:
            losses[context.round - state.rounds[candidates] > self.stale] = np.inf
        return self.best(candidates, losses, rng)

    def observe(
        self, state: LastLosses, federation: Federation, cohort: Cohort, replies: Replies
    ) -> LastLosses:
        told = sound(replies.signals[LOSS.name], self.name, self.negative)
        good = np.isfinite(told)
        losses, rounds = state.losses.copy(), state.rounds.copy()
        losses[replies.clients[good]] = told[good]
        rounds[replies.clients[good]] = state.round
        return LastLosses(losses, rounds, state.round + 1)

    def adapt(
        self, state: LastLosses, federation: Federation, came_from: Ints, rng: Any
    ) -> LastLosses:
        known = came_from >= 0
        return replace(
            state,
            losses=np.where(known, state.losses[came_from], np.inf),
            rounds=np.where(known, state.rounds[came_from], -1),
        )
