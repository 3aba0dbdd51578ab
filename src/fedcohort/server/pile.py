"""The answers of a round as they are folded, block by block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedcohort.algorithms.base import Vectors
from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import UPDATE
from fedcohort.core.errors import BadInput
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.server import protection
from fedcohort.server.aggregators import weighted_sum
from fedcohort.server.state import Setup, State
from fedcohort.server.transport import UpdateBlock, UpdateSum


class Pile:
    """Sums of what came so far, and rows only where the scheme must see them."""

    def __init__(
        self,
        setup: Setup,
        state: State,
        cohort: Cohort,
        importance: Floats | None,
        listens: frozenset[str],
    ) -> None:
        self.setup, self.cohort, self.listens = setup, cohort, listens
        self.shortening = protection.Shortening(setup, state)
        self.importance = state.federation.importance
        account = setup.aggregator.begin(state.aggregator, cohort, importance)
        self.account = setup.aggregator.seeded(account, setup.seed)
        self.sums: dict[str, Floats] = {}
        self.heard: dict[str, list[Array]] = {name: [] for name in listens}
        self.row_bytes = 0  # what a client tells the scheme beside its update
        self.clients: list[Ints] = []
        self.counted: list[Floats] = []
        self.summed = self.mass = np.zeros(0)  # (width,) of updates and of ones, for statistics

    def add(self, block: UpdateBlock | UpdateSum, factors: Floats | None = None) -> None:
        """One more block, its updates to be multiplied with (b,) factors, or a sum."""
        if isinstance(block, UpdateSum):
            aggregator = self.setup.aggregator
            self.account = aggregator.add_sum(self.account, block.clients, block.total)
            inside = np.searchsorted(self.cohort.clients, block.clients)
            mass = self.cohort.weights[inside].sum()
            self._average(block.total, np.full_like(block.total, mass))
            return
        algorithm = self.setup.algorithm
        inside = np.searchsorted(self.cohort.clients, block.clients)
        weights = self.cohort.weights[inside]
        told = algorithm.summed(block.updates, block.payloads)
        for name, role, *_ in algorithm.payloads:
            if role != "note":
                by = weights if role == "estimate" else self.importance[block.clients]
                part = by @ told[name].astype(np.float64)
                self.sums[name] = self.sums.get(name, 0.0) + part
        block = protection.scaled(block, factors)
        rows = algorithm.rows(block.updates, block.payloads)
        self.account = self.setup.aggregator.add(self.account, block.clients, weights, rows)
        if len(self.setup.statistics.positions):
            ones = algorithm.rows(np.ones_like(block.updates), block.payloads)
            counted = block.counted if self.setup.scheme.divides else None
            mass = weighted_sum(weights if counted is None else counted, ones)
            self._average(weighted_sum(weights, rows), mass)
        self.clients.append(block.clients)
        for name in self.listens:
            rows = block.updates if name == UPDATE.name else block.heard[name]
            self.heard[name].append(rows)
        others = [block.heard[name] for name in self.listens if name != UPDATE.name]
        self.row_bytes = sum(rows[:1].nbytes for rows in others)
        if block.counted is not None:
            self.counted.append(block.counted)

    def _average(self, summed: Floats, mass: Floats) -> None:
        if len(self.setup.statistics.positions):
            empty = not len(self.mass)
            self.summed = summed if empty else self.summed + summed
            self.mass = mass if empty else self.mass + mass

    def averaged(self, direction: Floats, server: Vectors) -> Floats | None:
        """Return the mean change of the clients, (models d,), for the running statistics.

        A robust aggregator has its own mean, the ``direction``. The mean is 0 without replies.
        Return None if the model has no running statistics.
        """
        setup = self.setup
        if not len(setup.statistics.positions):
            return None
        if not len(self.mass):
            return np.zeros_like(direction)
        summed = direction
        if not setup.aggregator.compares:
            summed = setup.algorithm.direct(self.summed, server)
        if self.cohort.per_sample and not setup.scheme.divides:
            return summed  # the number of samples is hidden: it is the expected one
        mass = setup.algorithm.direct(self.mass, server)
        mean: Floats = np.divide(summed, mass, out=np.zeros_like(summed), where=mass > 0)
        return mean

    def replies(self) -> dict[str, Array]:
        """What the scheme observes, in the order of the cohort."""
        if not self.clients:
            return {name: np.empty(0) for name in self.listens}
        return {name: self._ordered(parts) for name, parts in self.heard.items()}

    def weighed(self) -> Cohort:
        """Return the cohort with the weight by which the mean update of each client counted."""
        if not self.counted:
            cohort = self.cohort
            weights = self.setup.aggregator.cut(self.account, cohort.clients, cohort.weights)
            return replace(cohort, weights=weights)
        return replace(self.cohort, weights=self._ordered(self.counted), per_sample=False)

    def divided(self, direction: Floats) -> Floats:
        """A sum over samples, divided by what they counted for together; zero if none took part."""
        if self.clients and not self.counted:
            raise BadInput(
                f"{self.setup.scheme.name} divides by the number of samples that took part, which "
                "nobody told; leave step='counted' or weighting='counts' out."
            )
        total = float(sum(part.sum() for part in self.counted))
        return direction / total if total > 0 else np.zeros_like(direction)

    def measured(self) -> tuple[Floats | None, Floats | None]:
        """The lengths of the updates, as they came and as they were folded; None: not known."""
        came, folded = self.shortening.came, self.shortening.folded
        return (self._ordered(came), self._ordered(folded)) if came else (None, None)

    def _ordered(self, parts: list[Array]) -> Array:
        if len(parts) == 1:  # in the order in which they were asked for
            return parts[0]
        return np.concatenate(parts)[np.argsort(np.concatenate(self.clients), kind="stable")]
