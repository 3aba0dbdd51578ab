"""Schemes that select by latency: FedCS and TiFL."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Maybe, OneOf, Real, Whole, depending
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._draws import distinct, permutation
from fedcohort.maths._groups import by_weight, group_means
from fedcohort.schemes._latency import assumed
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import KEPT, LOSS, Signal, sound
from fedcohort.selection._scheme import (
    Claim,
    NoState,
    RoundContext,
    Scheme,
    candidate_number,
    cohort_size,
)


@dataclass(frozen=True)
class FedCS(Scheme[NoState]):
    """Candidates are drawn, and as many of them train as can be done by a deadline.

    Client i computes for u_i seconds, then uploads for a_i while nobody else does. Chosen one by
    one, always who adds least, the clients so far are done after Theta, and with i after

        Theta + a_i + max(0, u_i - Theta),

    which must not be later than the deadline. A client that would be is passed over.

    Parameters
    ----------
    m
        How many clients train at most; the paper sets no limit (m = d).
    d
        How many candidates are drawn, uniformly; twice m by default.
    deadline
        Seconds within which a round is to end, in the unit of the latencies.
    upload
        The share of a client's time that is its upload, in turn over one line that all share as in
        the paper; 0 where everybody has a line of its own, as in the simulator.

    Where we differ: times are what the server has measured (see `RoundContext`), the paper has
    clients tell their resources before every round. Who is not known counts as the fastest. Where
    nobody can be in time the fastest trains all the same. Weights are p_i over those chosen, so
    clients that are too slow never count: with unequal devices this is a biased average, and no
    weight repairs it.

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("fedcs", m=3, d=4, deadline=60),
    ...                     Federation.from_sizes([10] * 4), seed=0)
    >>> selector.select(latency=[10, 90, 50, 70]).clients
    array([0, 2])
    """

    m: Annotated[int, Whole(1)] = 10
    d: Annotated[int | None, Maybe(Whole(1))] = None
    deadline: Annotated[float, Real(0, open_low=True)] = 180.0
    upload: Annotated[float, Real(0, 1)] = 0.0

    name: ClassVar[str] = "fedcs"
    paper: ClassVar[Citation] = Citation(
        "Takayuki Nishio, Ryo Yonetani",
        "Client Selection for Federated Learning with Heterogeneous Resources in Mobile Edge",
        "ICC",
        2019,
        "Protocol 2, Algorithm 3, from memory of the paper; arXiv:1804.08333",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE})
    draws_once: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is not None and self.d < self.m:
            raise BadParameter("d", self.name, f"at least m ({self.m})", self.d)

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        most, here = cohort_size(self.m, federation, self.name), federation.present
        d = candidate_number(self.d, self.m, federation, self.name)
        candidates = here[distinct(rng, len(here), d)]
        candidates = candidates[permutation(rng, d)]  # of equals anybody comes first
        takes = assumed(context.latency, len(federation))[candidates]
        chosen = candidates[self.scheduled(takes, most)]
        weights = federation.importance[chosen]
        cohort = Cohort.of(chosen, weights / math.fsum(weights))
        return cohort.backed_by(candidates, -takes)

    def scheduled(self, takes: Floats, most: int) -> Ints:
        """Positions of those who are done in time, of candidates that take so long.

        >>> FedCS(m=3, deadline=10, upload=0.5).scheduled(np.array([8.0, 4.0, 6.0]), 3).tolist()
        [1, 2]
        """
        upload, compute = self.upload * takes, (1 - self.upload) * takes
        left = np.ones(len(takes), dtype=bool)
        chosen: list[int] = []
        done = 0.0
        while left.any() and len(chosen) < most:
            adds = np.where(left, upload + np.maximum(0.0, compute - done), np.inf)
            least = int(adds.argmin())
            left[least] = False
            if done + adds[least] <= self.deadline:
                chosen.append(least)
                done += float(adds[least])
        return np.array(chosen or [int(takes.argmin())], dtype=np.int64)


# TiFL: clients of one speed train together.


MOST_CREDITS = 10**9
"""More rounds than any run has."""


@dataclass(frozen=True, eq=False)
class TierHistory:
    """What clients told, and how often they trained."""

    losses: Annotated[Floats, KEPT]  # last told
    shown: Annotated[Floats, KEPT]  # those that chances go by
    trained: Annotated[Ints, Shaped("n", low=0)]  # in how many rounds
    round: int  # the coming round

    def check_coherent(self) -> None:
        """Refuse a round that no run comes to, of a file that somebody else wrote."""
        if not 0 <= self.round < 2**62:
            raise BadInput("'round' is outside its range")


@dataclass(frozen=True)
class TiFL(Scheme[TierHistory]):
    """Clients form tiers by speed; in a round a tier is drawn, and m of its clients train.

    So nobody waits for a slow client but slow clients. The tiers are equally large but for one
    client, whatever their number. Adaptive chances go by loss: of T tiers the one with the
    highest mean loss has the chance T / (1 + ... + T), the next T - 1 parts, the last one.
    They change every ``interval`` rounds, if the clients that trained last got no better since.

    Parameters
    ----------
    m
        How many clients train; each weighs 1/m.
    tiers
        How many there are; never more than clients that are there.
    policy
        ``"adaptive"``, ``"uniform"`` (all tiers alike) or ``"fast"`` (always the fastest).
    interval
        Rounds between two changes of the chances.
    credits
        How many rounds a tier may have until all have had as many, counted by how often its
        clients have trained; then they are given anew. None for any number.

    Where we differ: latencies are what the server has measured so far (see `RoundContext`), and
    tiers follow them from round to round; the paper measures all clients before the first round
    (in a simulation: ``--devices lognormal:profiled=true``). A client that is not known counts as
    the fastest, equals are in random order. Losses that come with training take the place of the
    accuracy of every tier on test data, which nobody here has to be asked for. A tier with fewer
    than m clients is filled up from the next faster ones, then from slower ones.

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("tifl", m=2, tiers=2), Federation.from_sizes([10] * 5), seed=0)
    >>> selector.select(latency=[1, 9, 8, 2, 3]).clients  # the fast ones are 0, 3 and 4
    array([0, 4])
    """

    m: Annotated[int, Whole(1)] = 10
    tiers: Annotated[int, Whole(1)] = 5
    policy: Annotated[str, OneOf(("adaptive", "uniform", "fast"))] = "adaptive"
    interval: Annotated[int, Whole(1)] = 10
    credits: Annotated[int | None, Maybe(Whole(1, MOST_CREDITS))] = None

    name: ClassVar[str] = "tifl"
    paper: ClassVar[Citation] = Citation(
        "Zheng Chai, Ahsan Ali, Syed Zawad, Stacey Truex, Ali Anwar, Nathalie Baracaldo, "
        "Yi Zhou, Heiko Ludwig, Feng Yan, Yue Cheng",
        "TiFL: A Tier-based Federated Learning System",
        "HPDC",
        2020,
        "Section 4, Algorithm 2, from memory of the paper; arXiv:2001.09249",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE, Claim.EXACTLY_M})
    listens: ClassVar[frozenset[Signal]] = depending(
        frozenset({LOSS}), lambda tifl: frozenset({LOSS} if tifl.policy == "adaptive" else ())
    )
    State: ClassVar[type] = TierHistory

    def start(self, federation: Federation, rng: Any) -> TierHistory:
        n = len(federation)
        nothing = np.full(n, np.nan)
        return TierHistory(nothing, nothing, np.zeros(n, dtype=np.int64), 0)

    def select(
        self, state: TierHistory, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        wanted, here = cohort_size(self.m, federation, self.name), federation.present
        latency = assumed(context.latency, len(federation))
        mixed = here[permutation(rng, len(here))]
        order = mixed[np.argsort(latency[mixed], kind="stable")]
        tiers = np.array_split(order, min(self.tiers, len(order)))  # the fastest first
        labels = np.zeros(len(federation), dtype=np.int64)
        for number, members in enumerate(tiers):
            labels[members] = number
        chances = self.chances(state, labels, here, len(tiers))
        drawn = int(by_weight(rng, chances)(np.arange(len(tiers)), 1)[0])
        chosen = [here[:0]]
        for number in [*range(drawn, -1, -1), *range(drawn + 1, len(tiers))]:
            members, open_ = np.sort(tiers[number]), wanted - sum(map(len, chosen))
            chosen.append(members[distinct(rng, len(members), min(open_, len(members)))])
        cohort = Cohort.equal(np.concatenate(chosen))
        return cohort.backed_by(here, -latency[here], labels)

    def chances(self, state: TierHistory, labels: Ints, here: Ints, count: int) -> Floats:
        """(count,) of every tier, up to a factor."""
        if self.policy == "fast":
            return np.asarray(np.eye(count)[0])
        chances: Floats = np.ones(count)
        known = np.isfinite(state.shown)
        if self.policy == "adaptive" and known.any():
            losses = np.where(known, state.shown, state.shown[known].max())
            means = group_means(losses, labels, here)
            chances = np.array([count - np.sum(means > mean) for mean in means], dtype=np.float64)
        if self.credits is not None:
            spent = np.bincount(labels[here], state.trained[here], minlength=count) / self.m
            given = self.credits * (1 + spent.min() // self.credits)  # one tier has some left
            chances = np.where(spent < given, chances, 0.0)
        return chances

    def observe(
        self, state: TierHistory, federation: Federation, cohort: Cohort, replies: Replies
    ) -> TierHistory:
        trained, clients = state.trained.copy(), replies.clients
        trained[cohort.clients] += 1
        state = replace(state, trained=trained, round=state.round + 1)
        if self.policy != "adaptive":
            return state
        told = sound(replies.signals[LOSS.name], self.name, negative=True)
        good = np.isfinite(told)
        losses = state.losses.copy()
        losses[clients[good]] = told[good]
        shown = state.shown
        if state.round % self.interval == 0:
            better = bool(np.mean(told[good]) < np.mean(shown[clients[good]])) if good.any() else 0
            shown = shown if better else losses  # NaN: nothing was shown of them, no better
        return replace(state, losses=losses, shown=shown)

    def adapt(
        self, state: TierHistory, federation: Federation, came_from: Ints, rng: Any
    ) -> TierHistory:
        known = came_from >= 0
        return replace(
            state,
            losses=np.where(known, state.losses[came_from], np.nan),
            shown=np.where(known, state.shown[came_from], np.nan),
            trained=np.where(known, state.trained[came_from], 0),
        )
