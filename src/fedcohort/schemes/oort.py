"""Oort: clients that have much to teach, and are fast enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import OneOf, Real, Whole, depending
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._groups import by_weight
from fedcohort.schemes._latency import assumed
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import KEPT, LARGEST, LOSS, Client, Signal
from fedcohort.selection._scheme import Claim, RoundContext, Scheme, cohort_size

CERTAIN = 0.1
"""How much the time since a client last trained counts for, in (2) of the paper."""


def mean_square(client: Client) -> float:
    """The mean squared loss of the samples."""
    losses = np.asarray(client.sample_losses(), dtype=np.float64)
    return math.fsum(losses**2) / max(1, len(losses))


SQUARED_LOSSES = Signal(
    "squared_losses",
    "the mean squared loss of the model on local samples",
    mean_square,
    needs_model=True,
    needs={"sample_losses"},
    shape=(),
    lowest=0,
)


@dataclass(frozen=True, eq=False)
class Utilities:
    """How useful clients were when they last trained, and what the pacer knows."""

    losses: Annotated[Floats, KEPT]  # root mean square; NaN: never trained
    last: Annotated[Ints, Shaped("n", low=0)]  # the round of it, from 1 on; 0 for never
    round: int  # the coming round
    relaxed: int  # how often the pacer has allowed for more time
    window: float  # the sum of utilities in this window of rounds
    before: float  # and in the one before

    def check_coherent(self) -> None:
        """Refuse numbers that no run comes to, of a file that somebody else wrote."""
        if not (0 <= self.round < 2**62 and 0 <= self.relaxed <= self.round):
            raise BadInput("'round' or 'relaxed' is outside its range")
        if np.any(np.isfinite(self.losses) & (self.last < 1)):
            raise BadInput("'last' lacks the round of a loss")


@dataclass(frozen=True)
class Oort(Scheme[Utilities]):
    """Clients with high losses on many samples train, less often if they are slow; some are new.

    A client of importance p_i (its samples, usually) whose root mean square loss was l_i when it
    last trained, in round L_i, and which takes t_i seconds has in round R the score

        (U_i + sqrt(0.1 ln R / L_i)) * (T / t_i)^penalty, the factor only if t_i > T,

    where U_i is p_i l_i, clipped and stretched to between 0 and 1.

    Of m places a share epsilon goes to clients that have never trained, drawn by speed; it falls
    from ``explore`` by ``decay`` a round to ``least``. The others are drawn by score among those
    with at least ``cut`` of the score that would just make it. T is a percentile of the
    latencies, ``pace`` at first; a pacer raises it by ``relax`` whenever the utility of a window
    of rounds was below that of the one before.

    Parameters
    ----------
    m
        How many clients train; each weighs 1/m. The paper invites 1.3 times as many and takes
        the first: ``--stragglers over-commit:factor=1.3``.
    losses
        ``"samples"``: clients tell their mean squared loss over samples. ``"mean"``: their mean
        loss, which every client has, takes its place.
    explore, decay, least
        The share of newcomers: at first, its factor from round to round, at least.
    cut
        Of the score at the edge, for those among whom is drawn.
    clip
        Utilities above this quantile count as much as the quantile.
    penalty
        The exponent alpha for slow clients.
    pace, relax, window
        The percentile of latencies that is fast enough, by how much it grows, and after how many
        rounds the pacer looks.

    Where we differ: only clients that are there are chosen, there are always m of them, nobody is
    new twice, and a client that is new has no score. T is a percentile of the latencies that are
    known. The paper's lists against clients that were chosen too often, and its share for
    fairness, are not here; guards of a hardened run bound both (`rate-cap`, `explore`).

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("oort", m=2), Federation.from_sizes([10] * 5), seed=0)
    >>> len(selector.select())
    2
    """

    m: Annotated[int, Whole(1)] = 10
    losses: Annotated[str, OneOf(("samples", "mean"))] = "samples"
    explore: Annotated[float, Real(0, 1)] = 0.9
    decay: Annotated[float, Real(0, 1, open_low=True)] = 0.98
    least: Annotated[float, Real(0, 1)] = 0.2
    cut: Annotated[float, Real(0, 1)] = 0.95
    clip: Annotated[float, Real(0, 1)] = 0.95
    penalty: Annotated[float, Real(0, 100)] = 2.0
    pace: Annotated[float, Real(0, 100)] = 30.0
    relax: Annotated[float, Real(0, 100)] = 5.0
    window: Annotated[int, Whole(1)] = 20

    name: ClassVar[str] = "oort"
    paper: ClassVar[Citation] = Citation(
        "Fan Lai, Xiangfeng Zhu, Harsha V. Madhyastha, Mosharaf Chowdhury",
        "Oort: Efficient Federated Learning via Guided Participant Selection",
        "OSDI",
        2021,
        "Algorithm 1, (1) and (2), in part from memory of the paper; arXiv:2010.06081",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE, Claim.EXACTLY_M})
    listens: ClassVar[frozenset[Signal]] = depending(
        frozenset({SQUARED_LOSSES}), lambda oort: frozenset({oort.signal})
    )
    State: ClassVar[type] = Utilities

    @property
    def signal(self) -> Signal:
        """What clients tell with their updates."""
        return SQUARED_LOSSES if self.losses == "samples" else LOSS

    def start(self, federation: Federation, rng: Any) -> Utilities:
        n = len(federation)
        return Utilities(np.full(n, np.nan), np.zeros(n, dtype=np.int64), 0, 0, 0.0, 0.0)

    def select(
        self, state: Utilities, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        m, here = cohort_size(self.m, federation, self.name), federation.present
        latency = assumed(context.latency, len(federation))
        tried = np.isfinite(state.losses[here])
        known, new = here[tried], here[~tried]
        share = max(self.explore * self.decay**state.round, self.least)
        exploit = min(m - math.floor(share * m), len(known))
        explore = min(m - exploit, len(new))
        exploit = m - explore
        scores = self.scores(state, federation, known, self._fast_enough(state, context), latency)
        speed = 1.0 / np.maximum(latency, _tiny(latency))
        old = by_weight(rng, scores)(self.pool(scores, known, exploit), exploit)
        fresh = by_weight(rng, speed / speed.max())(new, explore)
        ranks = np.concatenate([scores[known], -latency[new] - 1])  # the new come after the old
        cohort = Cohort.equal(np.concatenate([old, fresh]))
        return cohort.backed_by(np.concatenate([known, new]), ranks)

    def _fast_enough(self, state: Utilities, context: RoundContext) -> float:
        """T, within which nobody is punished for being slow."""
        percentile = self.pace + state.relaxed * self.relax
        measured = np.zeros(0) if context.latency is None else context.latency
        measured = measured[np.isfinite(measured)]
        if percentile >= 100 or not len(measured):
            return math.inf
        return float(np.quantile(measured, percentile / 100))

    def scores(
        self, state: Utilities, federation: Federation, known: Ints, T: float, latency: Floats
    ) -> Floats:
        """(n,) of those who have trained; 0 for others."""
        out = np.zeros(len(federation))
        if not len(known):
            return out
        utility = self.utility(state, federation)[known]
        utility = np.minimum(utility, np.quantile(utility, self.clip))
        low, high = float(utility.min()), float(utility.max())
        shares = (utility - low) / (high - low) if high > low else np.ones(len(known))
        doubt = np.sqrt(CERTAIN * math.log(state.round + 1) / state.last[known])
        takes = latency[known]
        slow = takes > T
        factor = np.where(slow, T / np.where(slow, takes, 1.0), 1.0) ** self.penalty
        out[known] = (shares + doubt) * np.where(slow, factor, 1.0)
        return out

    def utility(self, state: Utilities, federation: Federation) -> Floats:
        """(n,) p_i l_i; NaN for who has not trained."""
        return np.asarray(federation.importance * state.losses)

    def pool(self, scores: Floats, known: Ints, wanted: int) -> Ints:
        """Those who nearly make it, among whom is drawn."""
        if wanted == 0 or wanted >= len(known):
            return known
        edge = np.sort(scores[known])[-wanted]
        pool: Ints = known[scores[known] >= self.cut * edge]
        return pool

    def observe(
        self, state: Utilities, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Utilities:
        told = np.asarray(replies.signals[self.signal.name], dtype=np.float64)
        good = np.isfinite(told) & (np.abs(told) <= LARGEST)
        values = told[good] if self.losses == "mean" else np.sqrt(np.maximum(told[good], 0.0))
        who = replies.clients[good]
        losses, last = state.losses.copy(), state.last.copy()
        losses[who], last[who] = np.abs(values), state.round + 1
        state = replace(state, losses=losses, last=last, round=state.round + 1)
        mean = float(np.mean(self.utility(state, federation)[who])) if len(who) else 0.0
        state = replace(state, window=state.window + mean)
        return state if state.round % self.window else self._paced(state)

    def _paced(self, state: Utilities) -> Utilities:
        """After a window: more time is allowed if it brought less than the one before."""
        more = int(state.window < state.before)
        return replace(state, relaxed=state.relaxed + more, before=state.window, window=0.0)

    def adapt(
        self, state: Utilities, federation: Federation, came_from: Ints, rng: Any
    ) -> Utilities:
        known = came_from >= 0
        return replace(
            state,
            losses=np.where(known, state.losses[came_from], np.nan),
            last=np.where(known, state.last[came_from], 0),
        )


def _tiny(latency: Floats) -> float:
    """The shortest time that speeds tell apart."""
    return max(float(latency.max(initial=0.0)) * 1e-9, 1e-300)
