"""From the answers of a cohort to the direction of the server's step.

All clients together would move the model by sum_i p_i delta_i. An estimator guesses this from
the cohort alone; it is unbiased whenever the weights are (E omega_i = p_i).

Nobody is an outcome like any other for designs that can draw nobody (`binomial`, `poisson`,
`optimal`): the estimate is then 0 for the plain sum and sum_i p_i y_i with memory, and to leave
these rounds out would bias the others. The optimiser gets that estimate as any other (with
momentum the model therefore moves on). A *void* round is another matter: too few of the chosen
answered, or nobody was available. It says nothing about the target, and no step is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeGuard

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.errors import BadInput
from fedcohort.core.latest import LatestRows
from fedcohort.core.parameters import Checked
from fedcohort.core.positions import missing_from
from fedcohort.core.registry import Kind
from fedcohort.core.types import Array, Floats, Ints


class Aggregator(Checked, ABC):
    """Configuration only; what it remembers goes in and comes out.

    Answers come block by block, so that no table of all updates need ever be held: `begin`,
    `add` for each block, `finish`.
    """

    name: ClassVar[str]
    needs_rows: ClassVar[bool] = False
    """Whether single updates must be seen, so that a secure sum does not do."""

    @abstractmethod
    def start(self, importance: Floats, dimension: int) -> Any:
        """The memory before the first round."""

    @abstractmethod
    def begin(self, memory: Any, cohort: Cohort, importance: Floats | None = None) -> Any:
        """An account of nobody's answers yet.

        ``importance`` (n,) is that of the round, where not everyone was available. An empty
        cohort is a draw like any other: see the module.
        """

    @abstractmethod
    def add(self, account: Any, clients: Ints, weights: Floats, updates: Array) -> Any:
        """The account with the answers (b, d) of some clients, each once."""

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
            account = self.add(account, clients, weights_of(cohort, clients), updates)
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


@dataclass(frozen=True, eq=False)
class MemoryState:
    """What the memory estimator keeps: the last update of every client, and their average."""

    importance: Floats  # (n,)
    latest: LatestRows  # (n, d) the last update of every client; zero before it was seen
    average: Floats  # (d,) sum_i p_i y_i, kept up to date


@dataclass(frozen=True, eq=False)
class _Account:
    """The memory estimator in the middle of a round."""

    memory: MemoryState
    expected: Floats  # (d,) sum_i p_i y_i over those who are there
    surprise: Floats | None = None  # (d,) sum_i omega_i (delta_i - y_i) so far


NO_MEMORY = (
    "The memory estimator keeps the update of a client, but here a client sends the sum over its "
    "samples of the round; use the plain estimator."
)


@dataclass(frozen=True)
class Memory(Aggregator):
    """sum_i p_i y_i + sum_{i in S} omega_i (delta_i - y_i), y_i = the last update of client i.

    Unbiased for the same target as the plain sum, because E omega_i = p_i; its variance is
    that of the *changes* delta_i - y_i only (`fedcohort.theory.memory_variance`), so it pays as
    soon as updates resemble the last ones. It costs no message, but an (n, d) table on the
    server, shared with a scheme that keeps the same (`clustered-similarity`). With clients
    away, p is that of the round. Weights that are biased leave it biased.

    It remembers what a client does, so it is of no use where answers count per sample.

    Reference: Jhunjhunwala et al., "FedVARP" (UAI 2022), which takes the correction from
    SAGA (Defazio et al. 2014); there p_i = 1/n and m clients are drawn uniformly, here p
    and the weights are any. MIFA (Gu et al., NeurIPS 2021) keeps the same table but steps by its
    mean *after* the answers are entered, with no correction: less variance, and a bias towards
    what clients did long ago. The average over all clients is kept up to date, O(k d) a round,
    rather than summed anew.

    >>> cohort = Cohort.of([0], 0.5)
    >>> memory = Memory().start(np.array([0.5, 0.5]), 1)
    >>> for _ in range(2):
    ...     step, memory = Memory().direction(memory, cohort, cohort.clients, np.array([[4.0]]))
    ...     print(step)
    [2.]
    [2.]
    """

    name: ClassVar[str] = "memory"
    needs_rows: ClassVar[bool] = True

    def start(self, importance: Floats, dimension: int) -> MemoryState:
        table = LatestRows.nothing(len(importance), dimension)
        return MemoryState(importance, table, np.zeros(dimension))

    def begin(
        self, memory: MemoryState, cohort: Cohort, importance: Floats | None = None
    ) -> _Account:
        if cohort.per_sample:
            raise BadInput(NO_MEMORY)
        expected = memory.average if importance is None else memory.latest.weighted_sum(importance)
        return _Account(memory, expected)

    def add(self, account: _Account, clients: Ints, weights: Floats, updates: Array) -> _Account:
        memory = account.memory
        last, p = memory.latest.rows(clients).astype(np.float64), memory.importance
        surprise = weighted_sum(weights, updates - last)
        if account.surprise is not None:
            surprise = account.surprise + surprise
        # In the precision in which they are kept, so that the average never drifts from them.
        moved = weighted_sum(p[clients], updates.astype(np.float32) - last)
        table = memory.latest.replaced(clients, updates)
        after = MemoryState(p, table, memory.average + moved)
        return _Account(after, account.expected, surprise)

    def finish(self, account: _Account, dimension: int) -> tuple[Floats, MemoryState]:
        surprise = account.surprise
        step = account.expected if surprise is None else account.expected + surprise
        return step, account.memory

    def shared(self, memory: MemoryState, latest: LatestRows | None) -> MemoryState:
        if not _fits(latest, len(memory.importance), memory):
            return memory
        return replace(memory, latest=latest)

    def lean(self, memory: MemoryState, latest: LatestRows | None) -> MemoryState:
        if latest is not memory.latest:
            return memory
        return replace(memory, latest=LatestRows.nothing(0, latest.dimension))

    def moved(
        self,
        memory: MemoryState,
        importance: Floats,
        came_from: Ints,
        latest: LatestRows | None = None,
    ) -> MemoryState:
        if _fits(latest, len(importance), memory):
            table = latest
        elif len(memory.latest) == 0:  # lean, and the scheme began anew
            table = LatestRows.nothing(len(importance), len(memory.average))
        else:
            table = memory.latest.moved(came_from)
        return MemoryState(importance, table, table.weighted_sum(importance))


def _fits(latest: LatestRows | None, n: int, memory: MemoryState) -> TypeGuard[LatestRows]:
    """Whether a scheme keeps the updates themselves: not nothing, or not yet, or a sketch."""
    return latest is not None and latest.kept.shape == (n, len(memory.average))


def weights_of(cohort: Cohort, clients: Ints) -> Floats:
    """The weights of those members of the cohort that answered.

    >>> weights_of(Cohort.of([2, 5], [0.25, 0.75]), np.array([5]))
    array([0.75])
    """
    strangers = missing_from(cohort.clients, clients).tolist()
    if strangers:  # they would get the weight of another client
        raise BadInput(
            f"Only members of a cohort have a weight in it; {strangers[:5]} are not among its "
            f"{len(cohort)} clients."
        )
    return cohort.weights[np.searchsorted(cohort.clients, clients)]


def weighted_sum(weights: Floats, rows: Array) -> Floats:
    """sum_i weights_i rows_i in float64; never divided by the sum of the weights."""
    return np.asarray(weights @ rows.astype(np.float64), dtype=np.float64)


AGGREGATORS: Kind[Aggregator] = Kind("aggregator", __name__, Aggregator, default="plain")


def aggregator(which: Aggregator | str | None = None, **parameters: Any) -> Aggregator:
    """The aggregator of that name; None is the plain one, and an aggregator is itself.

    >>> aggregator("memory")
    Memory()
    """
    return AGGREGATORS.build(which, **parameters)
