"""What aggregators share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from fedcohort._internal.parameters import Checked
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import LatestRows
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Conversation, Signal
from fedcohort.selection._scheme import Claim


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
