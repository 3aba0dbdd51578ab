"""Power-of-Choice over groups of clients with similar labels: the strategies of the thesis.

All of them form groups once (`fedcohort.schemes._data_groups`), take w = m groups in a round and
z = ceil(d / w) candidates from each, and train one client of each list of candidates:

================  ==================  ======================  ====================  ===========
strategy          groups              candidates in a group   fill a short list     trains
================  ==================  ======================  ====================  ===========
static-uniform    uniformly           with probability p      outside, with p       m largest
static-data       ~ mean size         with p                  outside, with p       m largest
static-client     ~ clients           with p                  outside, with p       m largest
data-loss         ~ mean size         with p                  outside, with p       worst of each
average-loss      ~ mean loss         ~ loss                  outside, ~ loss       worst of each
best-loss         highest mean loss   highest loss            outside, highest      worst of each
================  ==================  ======================  ====================  ===========

``average-loss-x`` and ``best-loss-x`` begin with x rounds of the strategy they are named after
and go on with data-loss.

What the thesis leaves open is decided as follows.

* Groups are drawn without replacement. With fewer groups than m all are taken, each has
  z = ceil(d / groups) candidates, and the remaining places go to the next best candidates.
* A filler comes from outside the groups taken, and stands in one list only, so that nobody is
  chosen twice. Lists are filled in random order (best-loss: the worst group first). If nobody
  is left outside, a list stays short.
* Fewer candidates than m: more are taken among all others, in the way candidates are.
* Losses as in `fedcohort.selection._queries`. Whoever sent no usable loss is no candidate, and
  trains only where there are fewer than m others. average-loss draws by losses, so that it cannot
  a negative one; the others can. Where all losses to draw by are zero, the draw is uniform.
* Every client that trains weighs 1/m.
* For a client that does not answer the next candidate of its list trains, then of any list.
* A client that is not available is not there: it counts in no mean.

With ``version=printed`` the strategies that compare losses follow Algorithms 6 to 10 to the
letter, see `LossStrategy`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import Maybe, OneOf, Real, Whole, depending
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.maths._draws import distinct, top
from fedcohort.maths._groups import (
    Take,
    by_rank,
    by_weight,
    candidate_lists,
    draw_groups,
    group_mean_weights,
    group_means,
    without,
)
from fedcohort.schemes._data_groups import SUMMARIES, Grouping, Groups
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import LOSS, Ask, Conversation, Signal, comparable
from fedcohort.selection._scheme import Claim, RoundContext, Scheme, candidate_number, cohort_size

GIUNTA = Citation(
    "Giovanni Giunta",
    "Optimal Client Selection in Federated Learning based on the Power-Of-Choice Strategy",
    "Master's thesis, Sapienza University of Rome",
    2024,
)


def asked_with(*more: Signal) -> frozenset[Signal]:
    """What a class asks for: any summary, and more; a scheme asks for its own summary only."""
    return depending(
        frozenset({*SUMMARIES.values(), *more}),
        lambda scheme: frozenset({scheme.grouping.signal, *more}),
    )


@dataclass(frozen=True)
class Clustered(Scheme[Groups]):
    """What the eight share: the groups, and the lists of candidates."""

    m: Annotated[int, Whole(1)] = 10
    d: Annotated[int | None, Maybe(Whole(1))] = None
    clusters: Annotated[str, OneOf(("optics", "dbscan", "kmedoids"))] = "optics"
    summary: Annotated[str, OneOf(("labels", "features"))] = "labels"
    epsilon: Annotated[float | None, Maybe(Real(0, 20, open_low=True))] = None
    bins: Annotated[int, Whole(2, 1024)] = 16

    paper: ClassVar[Citation] = GIUNTA
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE, Claim.EXACTLY_M})
    asks: ClassVar[frozenset[Signal]] = asked_with(LOSS)
    State: ClassVar[type] = Groups

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is not None and self.d < self.m:
            raise BadParameter("d", self.name, f"at least m ({self.m})", self.d)

    @property
    def grouping(self) -> Grouping:
        """How groups are formed."""
        return Grouping(self.summary, self.clusters, self.epsilon, self.bins, self.name)

    def start(self, federation: Federation, rng: Any) -> Conversation[Groups]:
        return self.grouping.formed(federation)

    def adapt(
        self, state: Groups, federation: Federation, came_from: Ints, rng: Any
    ) -> Conversation[Groups]:
        return self.grouping.renewed(state.summaries, federation, came_from)

    def picture(self, state: Groups) -> dict[str, Array]:
        return state.picture()

    def wanted(self, federation: Federation) -> int:
        """How many clients train: m, or as many as are there."""
        candidate_number(self.d, self.m, federation, self.name)
        return cohort_size(self.m, federation, self.name)

    def lists(self, taken: Ints, here: Ints, groups: Groups, take: Take, **how: Any) -> list[Ints]:
        """List z candidates for each of the groups ``taken``, at least m in all."""
        z = math.ceil((self.d or 2 * self.m) / max(1, len(taken)))
        return candidate_lists(taken, groups.labels, here, z, self.m, take, **how)


@dataclass(frozen=True)
class LossStrategy(Clustered):
    """What the five have in common that compare losses; by itself it chooses as data-loss does.

    ``version="printed"`` follows Algorithms 6 to 10 to the letter. A client that fills a short
    list stays available to the next list, so it can win several lists; it then trains once, with
    the weight of all of them. data-loss draws candidates uniformly in a group, for which the
    algorithms print no law, and fillers by size. best-loss-x is data-loss in every round
    (Algorithm 10).
    """

    loss: Annotated[str, OneOf(("mean", "sum"))] = "mean"
    version: Annotated[str, OneOf(("corrected", "printed"))] = "corrected"

    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset({Claim.SUMS_TO_ONE, Claim.EXACTLY_M}),
        lambda scheme: frozenset(
            {Claim.SUMS_TO_ONE} if scheme.printed else {Claim.SUMS_TO_ONE, Claim.EXACTLY_M}
        ),
    )

    @property
    def printed(self) -> bool:
        """Whether the algorithms are followed to the letter."""
        return self.version == "printed"

    def asked(self, clients: Ints, federation: Federation, negative: bool) -> Conversation[Floats]:
        """(n,) the losses of some clients, NaN for the others."""
        answers = yield Ask(LOSS, clients)
        losses = np.full(len(federation), np.nan)
        losses[clients] = comparable(answers, self.name, negative)
        return losses if self.loss == "mean" else losses * federation.importance

    def worst_of_each(
        self, lists: list[Ints], losses: Floats, federation: Federation, rng: Any
    ) -> Cohort:
        """The highest loss of each list, then of the others, then anybody, until there are m.

        ``losses`` (n,), NaN where there is none that counts.
        """
        wanted = self.wanted(federation)
        firsts = [one[top(rng, losses[one], 1)] for one in lists]
        chosen = np.concatenate(firsts)
        if len(chosen) < wanted:
            others = without(np.unique(np.concatenate(lists)), chosen)
            more = others[top(rng, losses[others], wanted - len(chosen))]
            chosen = np.concatenate([chosen, more])
        if len(chosen) < wanted:
            rest = without(federation.present, chosen)
            chosen = np.concatenate([chosen, rest[distinct(rng, len(rest), wanted - len(chosen))]])
        candidates, listed = np.concatenate(lists), np.zeros(len(losses), dtype=np.int64)
        listed[candidates] = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
        _, first = np.unique(candidates, return_index=True)
        candidates = candidates[np.sort(first)]
        who, draws = np.unique(chosen, return_counts=True)
        cohort = Cohort.of(who, draws / len(chosen), draws)
        return cohort.backed_by(candidates, losses[candidates], listed)

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        """Groups by mean size, candidates by size; only these tell their loss."""
        here, shares = federation.present, federation.shares.weights
        self.wanted(federation)  # before anybody is asked
        mean_size = group_mean_weights(shares, state.labels, here)
        taken = draw_groups(rng, state.labels, here, mean_size, self.m)
        by_size = by_weight(rng, shares)
        inside = by_weight(rng, np.ones_like(shares)) if self.printed else by_size
        lists = self.lists(taken, here, state, inside, fill=by_size, once=not self.printed)
        candidates = np.unique(np.concatenate(lists))
        losses = yield from self.asked(candidates, federation, negative=True)
        return self.worst_of_each(lists, losses, federation, rng)

    def all_losses(self, federation: Federation, negative: bool) -> Conversation[Floats]:
        """(n,) the losses of everybody who is there, NaN for the others."""
        self.wanted(federation)  # before anybody is asked
        return self.asked(federation.present, federation, negative)


@dataclass(frozen=True)
class Static(Clustered):
    """Nobody is asked in a round: of all candidates the m largest train."""

    asks: ClassVar[frozenset[Signal]] = asked_with()

    @abstractmethod
    def weights(self, federation: Federation, groups: Groups) -> Array:
        """(groups,) by which groups are drawn."""

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        wanted, here = self.wanted(federation), federation.present
        shares = federation.shares
        taken = draw_groups(rng, state.labels, here, self.weights(federation, state), self.m)
        by_share = by_weight(rng, shares.weights)
        candidates = np.concatenate(self.lists(taken, here, state, by_share))
        # The largest by exact integers: the rank among the candidates stands for the size.
        _, rank = np.unique(shares.parts[candidates], return_inverse=True)
        return Cohort.equal(candidates[top(rng, rank, wanted)]).backed_by(candidates, rank)


# Groups of similar data by mean loss, the worst candidate of each.


@dataclass(frozen=True)
class AverageLoss(LossStrategy):
    """Groups by mean loss, candidates by loss, both at random; the worst of each list trains.

    Parameters as for `static-uniform`, and

    loss
        As for `data-loss`.
    version
        ``"printed"`` is Algorithm 7 to the letter: a client outside can fill several lists and
        win all of them.

    Every client is asked for its loss in every round.

    >>> from fedcohort import scheme
    >>> scheme("average-loss", m=3, d=6).paper.where
    'Algorithm 7'
    """

    name: ClassVar[str] = "average-loss"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 7")

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        losses = yield from self.all_losses(federation, negative=False)
        here = np.flatnonzero(np.isfinite(losses))
        means = group_means(losses, state.labels, here)
        taken = draw_groups(rng, state.labels, here, means, self.m)
        lists = self.lists(taken, here, state, by_weight(rng, losses), once=not self.printed)
        return self.worst_of_each(lists, losses, federation, rng)


# Average-loss for a while, then data-loss.


@dataclass(frozen=True)
class AverageLossX(AverageLoss):
    """`average-loss` for the first x rounds, then `data-loss`, which asks far less.

    Parameters as for `static-uniform`, and

    loss
        As for `data-loss`.
    version
        ``"printed"`` is Algorithm 9 to the letter, as for `average-loss` and `data-loss`.
    x
        How many rounds; 25 in the thesis.

    >>> from fedcohort import scheme
    >>> scheme("average-loss-x", m=3, d=6).x
    25
    """

    x: Annotated[int, Whole(0)] = 25

    name: ClassVar[str] = "average-loss-x"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 9")

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        strategy = AverageLoss if context.round < self.x else LossStrategy
        return strategy.select(self, state, federation, context, rng)


# The groups of similar data with the highest loss, the worst client of each.


@dataclass(frozen=True)
class BestLoss(LossStrategy):
    """The groups with the highest mean loss; the worst client of each list trains.

    Parameters as for `static-uniform`, and

    loss
        As for `data-loss`.
    version
        ``"printed"`` is Algorithm 8 to the letter: a client outside can fill several lists and
        win all of them.

    Every client is asked for its loss in every round. The best of the z best is the best of all,
    so d matters through the fill rule alone: a group of fewer than z clients competes with the
    worst clients outside.

    >>> import numpy as np
    >>> from fedcohort import Federation, Selector, scheme
    >>> told = {"label_histogram": np.array([[9, 1], [8, 2], [1, 9], [2, 8]]),
    ...         "loss": np.array([0.1, 0.9, 0.8, 0.7])}
    >>> federation = Federation.from_sizes([10] * 4)
    >>> selector = Selector(scheme("best-loss", m=1, d=2, clusters="dbscan"), federation, seed=0)
    >>> selector.select(ask=lambda ask: told[ask.signal.name][ask.clients]).clients
    array([2])
    """

    name: ClassVar[str] = "best-loss"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 8")

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        losses = yield from self.all_losses(federation, negative=True)
        here = np.flatnonzero(np.isfinite(losses))
        means = group_means(losses, state.labels, here)
        taken = by_rank(rng, means)(np.unique(state.labels[here]), self.m)
        lists = self.lists(taken, here, state, by_rank(rng, losses), once=not self.printed)
        return self.worst_of_each(lists, losses, federation, rng)


# Best-loss for a while, then data-loss.


@dataclass(frozen=True)
class BestLossX(BestLoss):
    """`best-loss` for the first x rounds, then `data-loss`, which asks far less.

    Parameters as for `average-loss-x`, and

    version
        ``"printed"`` is Algorithm 10 to the letter, which is `data-loss` in every round.

    Where we differ: Algorithm 10 is misprinted, with data-loss in both branches; the prose, and
    Table 4.2, say best-loss first.

    >>> from fedcohort import scheme
    >>> scheme("best-loss-x", m=3, d=6, x=10).x
    10
    """

    x: Annotated[int, Whole(0)] = 25

    name: ClassVar[str] = "best-loss-x"
    paper: ClassVar[Citation] = replace(
        GIUNTA, where="Section 3.3.2, item 5 (Algorithm 10 is misprinted)"
    )

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        begins = context.round < self.x and not self.printed
        strategy = BestLoss if begins else LossStrategy
        return strategy.select(self, state, federation, context, rng)


# Groups of similar data by mean size, the worst candidate of each.


@dataclass(frozen=True)
class DataLoss(LossStrategy):
    """Groups by mean size, candidates by size; the worst of each list trains.

    Parameters as for `static-uniform`, and

    loss
        ``"mean"``: clients are compared by the mean loss of their samples; ``"sum"``: by the sum.
    version
        ``"printed"`` is Algorithm 6 to the letter: candidates are drawn uniformly in a group, and
        a client outside can fill several lists and win all of them.

    Only the candidates are asked for their loss: about d.

    >>> import numpy as np
    >>> from fedcohort import Federation, Selector, scheme
    >>> told = {"label_histogram": np.array([[9, 1], [8, 2], [1, 9], [2, 8]]),
    ...         "loss": np.array([0.1, 0.9, 0.3, 0.2])}
    >>> federation = Federation.from_sizes([10] * 4)
    >>> selector = Selector(scheme("data-loss", m=2, d=4, clusters="dbscan"), federation, seed=0)
    >>> selector.select(ask=lambda ask: told[ask.signal.name][ask.clients]).clients
    array([1, 2])
    """

    name: ClassVar[str] = "data-loss"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 6")


# Groups of similar data by the number of their clients, the largest of their candidates.


@dataclass(frozen=True)
class StaticClient(Static):
    """As `static-uniform`, with groups in proportion to the number of their clients.

    >>> from fedcohort import scheme
    >>> scheme("static-client", m=3, d=6, epsilon=1.0).grouping.signal
    <signal private_label_histogram>
    """

    name: ClassVar[str] = "static-client"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Section 3.3.1, item 3")

    def weights(self, federation: Federation, groups: Groups) -> Array:
        here = groups.labels[federation.present]
        return np.bincount(here, minlength=int(groups.labels.max()) + 1)


# Groups of similar data by the mean size of their clients, the largest of their candidates.


@dataclass(frozen=True)
class StaticData(Static):
    """As `static-uniform`, with groups in proportion to the mean size of their clients.

    >>> from fedcohort import scheme
    >>> scheme("static-data", m=3, d=6).grouping.method
    'optics'
    """

    name: ClassVar[str] = "static-data"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Section 3.3.1, item 2")

    def weights(self, federation: Federation, groups: Groups) -> Array:
        shares = federation.shares.weights
        return group_mean_weights(shares, groups.labels, federation.present)


# Groups of similar data uniformly, the largest of their candidates.


@dataclass(frozen=True)
class StaticUniform(Static):
    """Groups uniformly at random, candidates by size, the m largest train.

    Parameters
    ----------
    m
        Clients that train, and groups that are looked at (w in the thesis).
    d
        Candidates in all, ceil(d / m) from each group; None: 2 m.
    clusters
        How groups are found: ``"optics"``, ``"dbscan"``, ``"kmedoids"``.
    summary
        What clients tell about their data: ``"labels"`` P(y), ``"features"`` P(X|y).
    epsilon
        Privacy loss of one sample by the summary; None for no noise.
    bins
        Of a feature histogram.

    >>> from fedcohort import Federation, Selector, scheme
    >>> histograms = np.array([[9, 1], [8, 2], [1, 9], [2, 8]])
    >>> federation = Federation.from_sizes([10] * 4)
    >>> selector = Selector(scheme("static-uniform", m=2, d=4, clusters="dbscan"), federation, 0)
    >>> selector.select(ask=lambda ask: histograms[ask.clients]).weights
    array([0.5, 0.5])
    >>> selector.picture()["labels"]
    array([0, 0, 1, 1])
    """

    name: ClassVar[str] = "static-uniform"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Section 3.3.1, item 1")

    def weights(self, federation: Federation, groups: Groups) -> Array:
        return np.ones(int(groups.labels.max()) + 1, dtype=np.int64)
