"""HACCS: every kind of data is represented, by its fastest devices."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.parameters import Maybe, Numbers, OneOf, Real, Whole, depending
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.maths._draws import as_integers, top
from fedcohort.maths._groups import by_weight, group_means
from fedcohort.schemes._data_groups import SUMMARIES, Grouping, Groups
from fedcohort.schemes._latency import assumed
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import KEPT, LOSS, Conversation, Signal, sound
from fedcohort.selection._scheme import Claim, RoundContext, Scheme, checked_latency, cohort_size


@dataclass(frozen=True, eq=False)
class GroupsAndLosses(Groups):
    """The groups, and the loss that each client told when it last trained."""

    losses: Annotated[Floats, KEPT]


@dataclass(frozen=True)
class Haccs(Scheme[GroupsAndLosses]):
    """Clients with similar data form clusters; clusters are drawn, their fastest devices train.

    Cluster c of mean latency L_c and mean squared loss F_c has the weight

        theta_c = rho (1 - L_c / max L) + (1 - rho) F_c / sum F.

    With shares theta_c / sum theta, floor(m share_c) places go to cluster c, and the rest one by
    one at random by theta. In a cluster the fastest devices come first. Who is missing does not
    matter much: the next device of the cluster takes the place.

    Parameters
    ----------
    m
        How many clients train; each weighs 1/m.
    rho
        What counts: 1 latency alone, 0 loss alone.
    clusters
        How clusters are found: ``"optics"``, ``"dbscan"``, ``"kmedoids"``.
    summary
        What clients tell about their data: ``"labels"`` P(y), ``"features"`` P(X|y).
    epsilon
        Privacy loss of one sample by the summary; None for no noise.
    bins
        Of a feature histogram.
    latencies
        How long a round takes each client; None takes what the round says: what the server has
        measured (in a simulation with devices, or on Flower), or ``select(latency=...)``. A client
        of which nothing is known, a newcomer say, is taken for as fast as the fastest until it
        has trained.

    Where we differ: distances are Hellinger's, as in the paper (the code has Euclid's for
    P(y)), and the clustering's settings are searched for instead of eps = 0.25. A loss comes
    with the training reply; a device that has not trained counts with the highest loss known.
    Means are over the devices that are there. Shares are exact, equal devices are drawn at
    random, and where every theta is 0 all clusters are alike.

    >>> from fedcohort import Federation, Selector, scheme
    >>> histograms = np.array([[9, 1], [8, 2], [1, 9], [2, 8]])
    >>> federation = Federation.from_sizes([10] * 4)
    >>> haccs = scheme("haccs", m=2, clusters="dbscan", latencies=(4, 1, 1, 4))
    >>> Selector(haccs, federation, seed=0).select(ask=lambda ask: histograms[ask.clients]).clients
    array([1, 2])
    """

    m: Annotated[int, Whole(1)] = 10
    rho: Annotated[float, Real(0, 1)] = 0.5
    clusters: Annotated[str, OneOf(("optics", "dbscan", "kmedoids"))] = "optics"
    summary: Annotated[str, OneOf(("labels", "features"))] = "labels"
    epsilon: Annotated[float | None, Maybe(Real(0, 20, open_low=True))] = None
    bins: Annotated[int, Whole(2, 1024)] = 16
    latencies: Annotated[tuple[float, ...] | None, Maybe(Numbers())] = None

    name: ClassVar[str] = "haccs"
    paper: ClassVar[Citation] = Citation(
        "Joel Wolfrath, Nikhil Sreekumar, Dhruv Kumar, Yuanli Wang, Abhishek Chandra",
        "HACCS: Heterogeneity-Aware Clustered Client Selection for Accelerated Federated Learning",
        "IPDPS",
        2022,
        "Section IV; quasi-random draws as in the authors' code",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE, Claim.EXACTLY_M})
    asks: ClassVar[frozenset[Signal]] = depending(
        frozenset(SUMMARIES.values()), lambda scheme: frozenset({scheme.grouping.signal})
    )
    listens: ClassVar[frozenset[Signal]] = frozenset({LOSS})
    State: ClassVar[type] = GroupsAndLosses

    @property
    def grouping(self) -> Grouping:
        """How clusters are formed."""
        return Grouping(self.summary, self.clusters, self.epsilon, self.bins, self.name)

    def start(self, federation: Federation, rng: Any) -> Conversation[GroupsAndLosses]:
        groups = yield from self.grouping.formed(federation)
        return _with_losses(groups, np.full(len(federation), np.nan))

    def adapt(
        self, state: GroupsAndLosses, federation: Federation, came_from: Ints, rng: Any
    ) -> Conversation[GroupsAndLosses]:
        groups = yield from self.grouping.renewed(state.summaries, federation, came_from)
        return _with_losses(groups, np.where(came_from >= 0, state.losses[came_from], np.nan))

    def picture(self, state: GroupsAndLosses) -> dict[str, Array]:
        return state.picture()

    def select(
        self, state: GroupsAndLosses, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        wanted, here = cohort_size(self.m, federation, self.name), federation.present
        latency = self._latency(context, len(federation))
        theta = self.theta(state, here, latency)
        numbers = np.unique(state.labels[here])
        members = np.bincount(state.labels[here], minlength=len(theta))
        places = _places(theta, numbers, members, wanted, rng)
        chosen = [here[:0]]
        for number in numbers[places[numbers] > 0].tolist():
            inside = here[state.labels[here] == number]
            chosen.append(inside[top(rng, -latency[inside], int(places[number]))])
        cohort = Cohort.equal(np.concatenate(chosen))
        return cohort.backed_by(here, -latency[here], state.labels)

    def _latency(self, context: RoundContext, n: int) -> Floats:
        told = context.latency
        if self.latencies is not None:  # clients that came later have none
            told = checked_latency([*self.latencies, *[np.nan] * (n - len(self.latencies))], n)
        return assumed(told, n)

    def theta(self, state: GroupsAndLosses, here: Ints, latency: Floats) -> Floats:
        """(clusters,) the weight of each cluster; 0 for one of which nobody is here."""
        known = np.isfinite(state.losses)
        highest = float(state.losses[known].max()) if known.any() else 1.0
        squares = np.where(known, state.losses, highest) ** 2
        slow = group_means(latency, state.labels, here)
        loss = group_means(squares, state.labels, here)
        gain = 1 - slow / slow.max() if slow.max() > 0 else np.zeros(len(slow))
        total = math.fsum(loss)
        share = loss / total if total > 0 else np.zeros(len(loss))
        present = np.zeros(len(loss))
        present[state.labels[here]] = 1.0
        out: Floats = present * (self.rho * gain + (1 - self.rho) * share)
        return out

    def observe(
        self, state: GroupsAndLosses, federation: Federation, cohort: Cohort, replies: Replies
    ) -> GroupsAndLosses:
        told = sound(replies.signals[LOSS.name], self.name)
        good = np.isfinite(told)
        losses = state.losses.copy()
        losses[replies.clients[good]] = told[good]
        return replace(state, losses=losses)


def _places(theta: Floats, numbers: Ints, members: Ints, wanted: int, rng: Any) -> Ints:
    """(clusters,) how many devices of each cluster train: the whole shares, then at random."""
    weights = as_integers(theta)
    whole = int(weights.sum())
    places = np.zeros(len(theta), dtype=np.int64)
    if whole:
        shares = [int(weight) * wanted // whole for weight in weights]
        places = np.minimum(shares, members)
    while places.sum() < wanted:
        open_ = numbers[places[numbers] < members[numbers]]
        places[by_weight(rng, theta)(open_, 1)] += 1
    return places


def _with_losses(groups: Groups, losses: Floats) -> GroupsAndLosses:
    kept = {field.name: getattr(groups, field.name) for field in fields(groups)}
    return GroupsAndLosses(**kept, losses=losses)
