"""Aggregators: plain, median, trimmed mean and Krum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Checked, Maybe, Real, Whole
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import LatestRows
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Conversation, Signal
from fedcohort.selection._scheme import Claim

# What aggregators share.


class Aggregator(Checked, ABC):
    """Configuration only; what it remembers goes in and comes out.

    Answers come block by block, so that no table of all updates need ever be held: `begin`,
    `add` for each block, `finish`.
    """

    name: ClassVar[str]
    paper: ClassVar[Citation | None] = None
    """Where it was published, for a bibliography."""
    needs_rows: ClassVar[bool] = False
    """Whether single updates must be seen, so that a secure sum does not do."""
    withdraws: ClassVar[frozenset[Claim]] = frozenset()
    """The claims of a scheme that do not hold for what it makes of the answers."""
    compares: ClassVar[bool] = False
    """Whether it holds updates against one another, so that all must be of one model."""
    no_sums: ClassVar[str] = ""
    """Why it cannot use answers that are sums over samples; "" where it can."""
    asks: ClassVar[frozenset[Signal]] = frozenset()
    """What it must know of clients before their first round."""

    def unfit(self, setup: Any) -> str:
        """Why it cannot be used with the rest of a `Setup`; "" where it can."""
        return ""

    @abstractmethod
    def start(self, importance: Floats, dimension: int) -> Any:
        """The memory before the first round."""

    def told(self, memory: Any, federation: Federation) -> Any | Conversation[Any]:
        """The memory with what it must know of clients, each of which is asked once.

        Called before every round; the memory itself where there is nothing to ask.
        """
        return memory

    def sized(self, memory: Any, told: Any) -> Any:
        """A memory that starts, for another model, with what was ``told`` to the one before."""
        return memory

    @abstractmethod
    def begin(self, memory: Any, cohort: Cohort, importance: Floats | None = None) -> Any:
        """An account of nobody's answers yet.

        ``importance`` (n,) is that of the round, where not everyone was available. An empty
        cohort is a draw like any other: see the package.
        """

    @abstractmethod
    def add(self, account: Any, clients: Ints, weights: Floats, updates: Array) -> Any:
        """The account with the answers (b, d) of some clients, each once."""

    def cut(self, account: Any, clients: Ints, weights: Floats) -> Floats:
        """Return the weights by which the updates of the clients count, shape (b,)."""
        return weights

    def seeded(self, account: Any, seed: int) -> Any:
        """The account of a run with this seed, for those that draw."""
        return account

    def add_sum(self, account: Any, clients: Ints, total: Floats) -> Any:
        """The account with the answers of some clients, weighed by themselves and added up."""
        return self.add(account, clients, np.ones(1), total[None])

    @abstractmethod
    def finish(self, account: Any, dimension: int) -> tuple[Floats, Any]:
        """The estimate of sum_i p_i delta_i, and the memory afterwards."""

    def direction(
        self,
        memory: Any,
        cohort: Cohort,
        clients: Ints,
        updates: Array,
        importance: Floats | None = None,
    ) -> tuple[Floats, Any]:
        """All in one: ``updates`` (k, d) are the answers of ``clients`` (k,).

        All are members of the cohort; who did not answer counts as unchanged.
        """
        account = self.begin(memory, cohort, importance)
        if len(clients):
            account = self.add(account, clients, cohort.weights_of(clients), updates)
        return self.finish(account, updates.shape[1])

    def shared(self, memory: Any, latest: LatestRows | None) -> Any:
        """The same memory with the table of a scheme that keeps the same updates, if it does."""
        return memory

    def lean(self, memory: Any, latest: LatestRows | None) -> Any:
        """The same memory without that table, to be saved; `shared` or `moved` put it back."""
        return memory

    def moved(
        self, memory: Any, importance: Floats, came_from: Ints, latest: LatestRows | None = None
    ) -> Any:
        """The memory of other clients: ``came_from[j]`` is the old position of j, or -1.

        ``latest`` is the table of the scheme, which has moved already.
        """
        return memory


def weighted_sum(weights: Floats, rows: Array) -> Floats:
    """sum_i weights_i rows_i in float64; never divided by the sum of the weights."""
    return np.asarray(weights @ rows.astype(np.float64), dtype=np.float64)


# The weighted sum of the answers.


@dataclass(frozen=True)
class Plain(Aggregator):
    """sum_{i in S} omega_i delta_i: what every paper writes."""

    name: ClassVar[str] = "plain"

    def start(self, importance: Floats, dimension: int) -> None:
        return None

    def begin(self, memory: None, cohort: Cohort, importance: Floats | None = None) -> None:
        return None

    def add(self, account: Floats | None, clients: Ints, weights: Floats, updates: Array) -> Floats:
        moved = weighted_sum(weights, updates)
        return moved if account is None else account + moved

    def finish(self, account: Floats | None, dimension: int) -> tuple[Floats, None]:
        return np.zeros(dimension) if account is None else account, None


# What robust aggregators share: they look at all answers of a round at once.
#
# A robust centre of the answers takes the place of their average; it is multiplied with the sum of
# the weights, so that where all answers are alike the step is that of the plain sum. Less than half
# of the weight, or of a declared part, can say what it likes. The price: it is biased wherever
# clients differ, the more the less their data is alike; and the updates of one whole cohort are
# held in memory, where the plain sum holds a block of them.

YIN = Citation(
    "Dong Yin, Yudong Chen, Kannan Ramchandran, Peter Bartlett",
    "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates",
    "ICML",
    2018,
)
ROUNDING = 1e-12
"""A weight of so little, of all, is a rounding error."""
NUMBERS_AT_ONCE = 2**22
"""A table is sorted so many numbers at a time."""

Answers = tuple[tuple[Floats, Array], ...]
"""Weights (b,) and updates (b, d) of each block."""


@dataclass(frozen=True)
class Robust(Aggregator):
    """The robust centre of all answers of a round, times the sum of their weights."""

    needs_rows: ClassVar[bool] = True
    compares: ClassVar[bool] = True
    withdraws: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EVEN_OVER_SAMPLES})
    no_sums: ClassVar[str] = (
        "A robust aggregator compares updates, but here a client sends the sum over its samples of "
        "the round, so that the number of samples would decide; use the plain aggregator, with "
        "hardened='clip'."
    )

    def start(self, importance: Floats, dimension: int) -> None:
        return None

    def begin(self, memory: None, cohort: Cohort, importance: Floats | None = None) -> Answers:
        if cohort.per_sample:
            raise BadInput(self.no_sums)
        return ()

    def add(self, account: Answers, clients: Ints, weights: Floats, updates: Array) -> Answers:
        return (*account, (weights, updates))

    def finish(self, account: Answers, dimension: int) -> tuple[Floats, None]:
        if not account:
            return np.zeros(dimension), None
        weights = np.concatenate([part for part, _ in account]).astype(np.float64)
        total = float(weights.sum())
        if not total > 0:
            return np.zeros(dimension), None
        rows = np.concatenate([part for _, part in account]).astype(np.float64, copy=False)
        return total * self.centre(weights / total, rows), None

    @abstractmethod
    def centre(self, weights: Floats, rows: Floats) -> Floats:
        """(d,) the centre of rows (k, d) with weights (k,) that sum to 1."""


def by_value(weights: Floats, rows: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Some coordinates at a time: which, their values (k, c) ascending, and the weight up to each.

    The weight up to the last is exactly 1.
    """
    step = max(1, NUMBERS_AT_ONCE // len(rows))
    for start in range(0, rows.shape[1], step):
        part = rows[:, start : start + step]
        order = np.argsort(part, axis=0, kind="stable")
        reached = np.cumsum(weights[order], axis=0)
        reached[-1] = 1.0
        yield slice(start, start + step), np.take_along_axis(part, order, axis=0), reached


# The weighted mean of the answers that have near neighbours.


@dataclass(frozen=True)
class Krum(Robust):
    """The answers whose nearest neighbours are nearest, and their weighted mean.

    The score of an answer is the sum of its squared distances to the k - f - 2 nearest of the
    others; those with the lowest scores are kept. Blanchard, El Mhamdi, Guerraoui, Stainer,
    "Machine Learning with Adversaries" (NeurIPS 2017), Section 4 (Multi-Krum), whose guarantee
    needs k > 2 f + 2 answers; with fewer at least one neighbour is looked at. Weights do not
    enter the scores, so that they buy nothing there.

    Parameters
    ----------
    f
        How many of the answers may be attacks.
    keep
        How many answers are kept: 1 is Krum as first published; None keeps k - f.

    >>> from fedcohort.selection._cohort import Cohort
    >>> updates, cohort = np.array([[0.9], [1.0], [1.1], [1.2], [1e9]]), Cohort.equal(range(5))
    >>> Krum(f=1).direction(None, cohort, cohort.clients, updates)[0].round(3)
    array([1.05])
    """

    f: Annotated[int, Whole(0)] = 1
    keep: Annotated[int | None, Maybe(Whole(1))] = None

    name: ClassVar[str] = "krum"
    paper: ClassVar[Citation | None] = Citation(
        "Peva Blanchard, El Mahdi El~Mhamdi, Rachid Guerraoui, Julien Stainer",
        "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent",
        "NeurIPS",
        2017,
        "Section 4, Multi-Krum",
    )

    def centre(self, weights: Floats, rows: Floats) -> Floats:
        k = len(rows)
        scaled = rows / max(float(np.abs(rows).max(initial=0.0)), 1e-300)  # squares stay finite
        squares = np.einsum("ij,ij->i", scaled, scaled)
        apart = np.maximum(0.0, squares[:, None] + squares - 2.0 * scaled @ scaled.T)
        np.fill_diagonal(apart, np.inf)
        near = min(max(1, k - self.f - 2), k - 1)
        scores = np.sort(apart, axis=1)[:, :near].sum(axis=1)
        number = max(1, k - self.f) if self.keep is None else min(self.keep, k)
        kept = np.argsort(scores, kind="stable")[:number]
        total = float(weights[kept].sum())
        by = weights[kept] / total if total > 0 else np.full(number, 1.0 / number)
        return np.asarray(by @ rows[kept])


# The weighted median of the answers, coordinate by coordinate.


@dataclass(frozen=True)
class Median(Robust):
    """In every coordinate, the value with half of the weight on either side.

    Less than half of the weight cannot move it beyond what the others say. Yin, Chen, Ramchandran,
    Bartlett, "Byzantine-Robust Distributed Learning" (ICML 2018), Definition 1, with weights.

    >>> from fedcohort.selection._cohort import Cohort
    >>> updates = np.array([[1.0], [2.0], [1e9]])
    >>> cohort = Cohort.equal([0, 1, 2])
    >>> Median().direction(None, cohort, cohort.clients, updates)[0]
    array([2.])
    """

    name: ClassVar[str] = "median"
    paper: ClassVar[Citation | None] = replace(YIN, where="Definition 1")

    def centre(self, weights: Floats, rows: Floats) -> Floats:
        out = np.empty(rows.shape[1])
        for where, values, reached in by_value(weights, rows):
            low = np.argmax(reached >= 0.5 - ROUNDING, axis=0)[None]
            high = np.argmax(reached > 0.5 + ROUNDING, axis=0)[None]
            ends = [np.take_along_axis(values, end, axis=0)[0] for end in (low, high)]
            out[where] = (ends[0] + ends[1]) / 2
        return out


# The weighted mean of the answers without the extremes, coordinate by coordinate.


@dataclass(frozen=True)
class TrimmedMean(Robust):
    """In every coordinate, the mean without the largest and smallest values.

    Yin et al. (ICML 2018), Definition 2, with weights: a share of the *weight* is cut off at either
    end, in the middle of an answer if need be. With 0 it is the plain sum.

    Parameters
    ----------
    share
        Of the weight, cut off at either end; below 1/2. It should be above the share of attackers.

    >>> from fedcohort.selection._cohort import Cohort
    >>> updates, cohort = np.array([[0.0], [1.0], [2.0], [1e9]]), Cohort.equal(range(4))
    >>> TrimmedMean(share=0.25).direction(None, cohort, cohort.clients, updates)[0]
    array([1.5])
    """

    share: Annotated[float, Real(0, 0.5)] = 0.1

    name: ClassVar[str] = "trimmed-mean"
    paper: ClassVar[Citation | None] = replace(YIN, where="Definition 2")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share == 0.5:
            raise BadParameter("share", self.name, "below 0.5", self.share, "Use 'median'.")

    def centre(self, weights: Floats, rows: Floats) -> Floats:
        out = np.empty(rows.shape[1])
        for where, values, reached in by_value(weights, rows):
            inside = np.clip(reached, self.share, 1.0 - self.share)
            kept = np.diff(inside, axis=0, prepend=self.share)  # (k, c) what is left of each
            kept[kept < ROUNDING] = (
                0.0  # or a rounding error of the weights would count, times 1e200
            )
            out[where] = (kept * values).sum(axis=0) / kept.sum(axis=0)
        return out


# From the answers of a cohort to the direction of the server's step.
#
# All clients together would move the model by sum_i p_i delta_i. An estimator guesses this from
# the cohort alone; it is unbiased whenever the weights are (E omega_i = p_i).
#
# Nobody is an outcome like any other for designs that can draw nobody (`binomial`, `poisson`,
# `optimal`): the estimate is then 0 for the plain sum and sum_i p_i y_i with memory, and to leave
# these rounds out would bias the others. The optimiser gets that estimate as any other (with
# momentum the model therefore moves on). A *void* round is another matter: too few of the chosen
# answered, or nobody was available. It says nothing about the target, and no step is taken.
#
# Other packages add theirs through the entry point group ``fedcohort.aggregators``.

AGGREGATORS: Kind[Aggregator] = Kind(
    "aggregator",
    ("fedcohort.server._aggregators", "fedcohort.server._memory", "fedcohort.server._noise"),
    Aggregator,
    default="plain",
)


def aggregator(which: Aggregator | str | None = None, **parameters: Any) -> Aggregator:
    """The aggregator of that name; None is the plain one, and an aggregator is itself.

    >>> aggregator("memory")
    Memory(guess='zero', alpha=0.1)
    """
    return AGGREGATORS.build(which, **parameters)
