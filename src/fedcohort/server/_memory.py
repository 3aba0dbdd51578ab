"""The memory aggregator: it keeps the latest update of every client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeGuard

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import OneOf, Real, depending
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.maths._distances import sketch
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import LatestRows, fits
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import LABEL_HISTOGRAM, Ask, Conversation, Signal
from fedcohort.server._aggregators import Aggregator, weighted_sum

# What the memory estimator supposes of clients that it has not seen yet.
#
# Ridge regression of the updates of those seen, Y, on something that is known of everybody, H: a
# client not seen yet is supposed to answer
#
#     h (H'H + alpha s I)^-1 H'Y,    s the mean squared length of a row of H.
#
# Who is seen, and so every guess, is known before the cohort is drawn: whatever the guess, the
# estimate stays unbiased.

NUMBERS = 64
"""What is kept of an update in a sketch."""
PROJECTION = 0
"""Which sketch: the same for all clients and all runs."""


def _sketched(updates: Array) -> Floats:
    """(k, numbers) sketches of updates (k, d); short ones as they are."""
    rows = np.asarray(updates, dtype=np.float64)
    return sketch(rows, NUMBERS, PROJECTION) if rows.shape[1] > NUMBERS else rows


UPDATE_SKETCH = Signal(
    "update_sketch",
    f"{NUMBERS} sums of the model update",
    lambda client: np.asarray(_sketched(client.update()[None])[0]),
    needs_model=True,
    secrecy="update",
    needs={"update"},
    shape=lambda sizes: (min(NUMBERS, int(sizes["parameters"])),),
    measure_all=lambda rows: _sketched(rows("update")),
)
TINY = 1e-300
"""So that nothing is divided by zero where all that is known are zeros."""
SIGNALS = {"labels": LABEL_HISTOGRAM, "sketches": UPDATE_SKETCH}
"""What every client is asked, by the word for it."""


@dataclass(frozen=True, eq=False)
class Guess:
    """What is known of all clients (f numbers each; none: a guess is zero), and who was seen."""

    known: Annotated[Floats, Shaped("n", "f")]  # H; zero where a client told nothing
    asked: Annotated[Bools, Shaped("n", kind="b")]
    seen: Annotated[Bools, Shaped("n", kind="b")]
    moments: Annotated[Floats, Shaped("f", "d")]  # H'Y over those seen, kept up to date

    @classmethod
    def nothing(cls, n: int, dimension: int, numbers: int = 0) -> Guess:
        """Of clients that told nothing, and of whom nobody was seen."""
        nobody = np.zeros(n, dtype=bool)
        return cls(np.zeros((n, numbers)), nobody, nobody, np.zeros((numbers, dimension)))

    def slopes(self, alpha: float) -> Floats:
        """(f, d) the coefficients of the regression on those seen."""
        rows, width = self.known[self.seen], self.known.shape[1]
        if not len(rows) or not width:
            return np.zeros_like(self.moments)
        some = self.known[self.known.any(axis=1)]
        unit = float((some**2).sum()) / max(1, len(some))
        gram = rows.T @ rows + max(alpha * unit, TINY) * np.eye(width)
        return np.asarray(np.linalg.solve(gram, self.moments))

    def expected(self, importance: Floats, slopes: Floats) -> Floats:
        """(d,) the part of those not seen in sum_i p_i y_i."""
        unseen = ~self.seen
        return np.asarray((importance[unseen] @ self.known[unseen]) @ slopes)

    def of(self, clients: Ints, slopes: Floats) -> Floats:
        """(k, d) what these clients are supposed to answer; zero for those that were seen."""
        return np.asarray((self.known[clients] * ~self.seen[clients, None]) @ slopes)

    def answered(self, clients: Ints, change: Array) -> Guess:
        """After an answer of these clients, by which their rows (k, d) changed."""
        seen = self.seen.copy()
        seen[clients] = True
        return replace(self, seen=seen, moments=self.moments + self.known[clients].T @ change)

    def moved(self, came_from: Ints, table: LatestRows | None) -> Guess:
        """Of other clients; ``table`` has their rows, None where all are forgotten."""
        old = came_from >= 0
        known = np.where(old[:, None], self.known[came_from], 0.0)
        asked, seen = old & self.asked[came_from], old & self.seen[came_from]
        if table is None:
            seen = np.zeros_like(seen)
        return Guess(known, asked, seen, self._summed(known, seen, table))

    def _summed(self, known: Floats, seen: Bools, table: LatestRows | None) -> Floats:
        moments = np.zeros((known.shape[1], self.moments.shape[1]))
        if table is not None:
            for number, column in enumerate((known * seen[:, None]).T):
                moments[number] = table.weighted_sum(column)
        return moments

    def strangers(self, federation: Federation) -> Ints:
        """Those who are there and were not asked."""
        return federation.present[~self.asked[federation.present]]

    def told(self, by: str, clients: Ints, answers: Any, table: LatestRows) -> Guess:
        """With what these clients answered."""
        rows, width = _usable(answers, by), self.known.shape[1]
        if width and rows.shape[1] != width:
            raise BadInput(
                f"Every client must describe its data alike: the memory estimator got "
                f"{rows.shape[1]} numbers for '{SIGNALS[by].name}' where there were {width}."
            )
        known = self.known.copy() if width else np.zeros((len(self.seen), rows.shape[1]))
        asked = self.asked.copy()
        known[clients], asked[clients] = rows, True
        return Guess(known, asked, self.seen, self._summed(known, self.seen, table))


def _usable(answers: Any, by: str) -> Floats:
    """(k, f) shares of labels, or sketches as they are; zero where an answer is none."""
    rows = np.asarray(answers, dtype=np.float64).reshape(len(answers), -1)
    rows = np.asarray(np.where(fits(rows)[:, None], rows, 0.0), dtype=np.float64)
    if by != "labels":
        return rows
    rows = np.maximum(rows, 0.0)
    total = rows.sum(axis=1, keepdims=True)
    out: Floats = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    return out


# The weighted sum, corrected by what every client answered last.


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
