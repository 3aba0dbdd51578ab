"""The weighted sum, corrected by what every client answered last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypeGuard

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import OneOf, Real, depending
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import LatestRows
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Ask, Conversation, Signal
from fedcohort.server.aggregators._guess import SIGNALS, Guess
from fedcohort.server.aggregators.base import Aggregator, weighted_sum


@dataclass(frozen=True, eq=False)
class MemoryState:
    """What the memory estimator keeps: the last update of every client, and their average."""

    importance: Annotated[Floats, Shaped("n", low=0)]
    latest: LatestRows  # (n, d) the last update of every client; zero before it was seen
    average: Annotated[Floats, Shaped("d")]  # sum_i p_i y_i over those seen, kept up to date
    guess: Guess  # of those not seen


@dataclass(frozen=True, eq=False)
class _Account:
    """The memory estimator in the middle of a round."""

    memory: MemoryState
    expected: Floats  # (d,) sum_i p_i y_i over those who are there
    slopes: Floats  # (f, d) of the guesses, as they were before the round
    surprise: Floats | None = None  # (d,) sum_i omega_i (delta_i - y_i) so far


@dataclass(frozen=True)
class Memory(Aggregator):
    """sum_i p_i y_i + sum_{i in S} omega_i (delta_i - y_i), y_i = the last update of client i.

    Of a client not seen yet y_i is a guess: zero, or by ridge regression of the updates seen on
    what every client was asked before the first round, its label shares or a sketch of an update.

    Unbiased for the same target as the plain sum, because E omega_i = p_i; its variance is
    that of the *changes* delta_i - y_i only (`fedcohort.theory.memory_variance`), so it pays as
    soon as updates resemble the last ones. It costs no message, but an (n, d) table on the
    server, shared with a scheme that keeps the same (`clustered-similarity`). With clients
    away, p is that of the round. Weights that are biased leave it biased.

    Parameters
    ----------
    guess
        What the guess rests on: ``"zero"`` (nothing is asked), ``"labels"`` or ``"sketches"``
        (64 sums of an update, for which everybody trains once and sends no update).
    alpha
        The penalty of the regression, in mean squared lengths of what it rests on.

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

    guess: Annotated[str, OneOf(("zero", *SIGNALS))] = "zero"
    alpha: Annotated[float, Real(0, 1e6)] = 0.1

    name: ClassVar[str] = "memory"
    paper: ClassVar[Citation | None] = Citation(
        "Divyansh Jhunjhunwala, Pranay Sharma, Aushim Nagarkatti, Gauri Joshi",
        "FedVARP: Tackling the Variance Due to Partial Client Participation in Federated Learning",
        "UAI",
        2022,
        "with any importance and weights",
    )
    needs_rows: ClassVar[bool] = True
    asks: ClassVar[frozenset[Signal]] = depending(
        frozenset(SIGNALS.values()),
        lambda memory: frozenset({SIGNALS[memory.guess]} if memory.guess in SIGNALS else ()),
    )
    no_sums: ClassVar[str] = (
        "The memory estimator keeps the update of a client, but here a client sends the sum over "
        "its samples of the round; use the plain estimator."
    )

    def start(self, importance: Floats, dimension: int) -> MemoryState:
        n = len(importance)
        table, guess = LatestRows.nothing(n, dimension), Guess.nothing(n, dimension)
        return MemoryState(importance, table, np.zeros(dimension), guess)

    def told(
        self, memory: MemoryState, federation: Federation
    ) -> MemoryState | Conversation[MemoryState]:
        strangers = memory.guess.strangers(federation)
        if self.guess not in SIGNALS or not len(strangers):
            return memory
        return self._told(memory, strangers)

    def _told(self, memory: MemoryState, clients: Ints) -> Conversation[MemoryState]:
        answers = yield Ask(SIGNALS[self.guess], clients)
        guess = memory.guess.told(self.guess, clients, answers, memory.latest)
        return replace(memory, guess=guess)

    def sized(self, memory: MemoryState, told: MemoryState) -> MemoryState:
        known, asked = told.guess.known, told.guess.asked
        fresh = Guess.nothing(len(known), len(memory.average), known.shape[1])
        return replace(memory, guess=replace(fresh, known=known, asked=asked))

    def begin(
        self, memory: MemoryState, cohort: Cohort, importance: Floats | None = None
    ) -> _Account:
        if cohort.per_sample:
            raise BadInput(self.no_sums)
        p = memory.importance if importance is None else importance
        expected = memory.average if importance is None else memory.latest.weighted_sum(importance)
        slopes = memory.guess.slopes(self.alpha)
        return _Account(memory, expected + memory.guess.expected(p, slopes), slopes)

    def add(self, account: _Account, clients: Ints, weights: Floats, updates: Array) -> _Account:
        memory = account.memory
        last, p = memory.latest.rows(clients).astype(np.float64), memory.importance
        supposed = last + memory.guess.of(clients, account.slopes)
        surprise = weighted_sum(weights, updates - supposed)
        if account.surprise is not None:
            surprise = account.surprise + surprise
        # In the precision in which they are kept, so that the average never drifts from them.
        change = updates.astype(np.float32) - last
        average = memory.average + weighted_sum(p[clients], change)
        table = memory.latest.replaced(clients, updates)
        after = MemoryState(p, table, average, memory.guess.answered(clients, change))
        return replace(account, memory=after, surprise=surprise)

    def finish(self, account: _Account, dimension: int) -> tuple[Floats, MemoryState]:
        surprise = account.surprise
        step = account.expected if surprise is None else account.expected + surprise
        return step, account.memory

    def shared(self, memory: MemoryState, latest: LatestRows | None) -> MemoryState:
        if _fits(latest, len(memory.importance), memory):
            return replace(memory, latest=latest)
        if not _fits(memory.latest, len(memory.importance), memory):  # a file of somebody else's
            raise BadInput("'latest' has not a row for each client, and the scheme keeps none")
        return memory

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
        kept: LatestRows | None = None
        if _fits(latest, len(importance), memory):
            kept = latest
        elif len(memory.latest):  # not lean, or the scheme did not begin anew
            kept = memory.latest.moved(came_from)
        table = LatestRows.nothing(len(importance), len(memory.average)) if kept is None else kept
        guess = memory.guess.moved(came_from, kept)
        return MemoryState(importance, table, table.weighted_sum(importance), guess)


def _fits(latest: LatestRows | None, n: int, memory: MemoryState) -> TypeGuard[LatestRows]:
    """Whether a scheme keeps the updates themselves: not nothing, or not yet, or a sketch."""
    return latest is not None and latest.kept.shape == (n, len(memory.average))
