"""Optional stages of a round, fixed when the setup is built. A plain run has none of them.

A run is *plain* if it has no guards, plain SGD on clients, one model, no noise, and a scheme that
neither listens to updates nor counts samples. `Stages.of` puts what else a setup wants into three
tuples, and a round calls the members of each at one place:

==============  ===================================================================================
``selection``   `SelectionStage`: bars clients, rewrites queries and replies, amends a cohort
``accounts``    functions of the aggregator's account before the first update (seeded noise)
``updates``     `UpdateStage` classes, one object per round: see the order in `Stages.of`
==============  ===================================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput, FedcohortWarning
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._client_rows import fits
from fedcohort.selection._cohort import Cohort, Replies
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import UPDATE, Ask
from fedcohort.selection._scheme import RoundContext
from fedcohort.server._aggregators import Aggregator, weighted_sum
from fedcohort.server._guards import Guard, Outcome
from fedcohort.server._transport import UpdateBlock, UpdateSum
from fedcohort.training._algorithms import Algorithm

if TYPE_CHECKING:
    from fedcohort.server._state import Selection, Setup, State

Blocks: TypeAlias = Iterable[UpdateBlock | UpdateSum]


@dataclass
class RoundUpdate:
    """Everything that aggregation changes in a round; stages adjust it before it is stored."""

    account: Any  # of the aggregator, with all updates
    direction: Floats  # (d,) for the optimizer
    theta: Floats  # (d,) before the step, then after it
    vectors: Mapping[str, Floats]  # the server's vectors of the local algorithm
    guards: tuple[Any, ...]  # what each guard remembers
    cohort: Cohort  # with the weights of mean updates
    replies: Replies  # what the scheme observes
    extra_bytes: int = 0  # that each client sent beside its update
    extra_numbers: int = 0  # in the precision of the model, likewise


class UpdateStage:
    """One optional step of aggregation, as an object that lives for one round."""

    def __init__(self, setup: Setup, state: State, selection: Selection, cohort: Cohort) -> None:
        self.setup, self.state, self.selection, self.cohort = setup, state, selection, cohort
        self.arrived: list[Ints] = []  # clients, block by block

    def process(self, blocks: Blocks) -> Iterator[UpdateBlock | UpdateSum]:
        """Pass blocks on, changed or not, and note what is needed later."""
        for block in blocks:
            if isinstance(block, UpdateSum):
                self.add_sum(block)
                yield block
            else:
                self.arrived.append(block.clients)
                yield self.add(block)

    def add(self, block: UpdateBlock) -> UpdateBlock:
        """Note one block and return it, changed or not."""
        return block

    def add_sum(self, block: UpdateSum) -> None:
        """Note a sum of updates."""

    def finish(self, update: RoundUpdate) -> None:
        """Complete the update, in void rounds too."""

    def before_step(self, update: RoundUpdate) -> None:
        """Adjust the direction of a round that counts."""

    def after_step(self, update: RoundUpdate) -> None:
        """Adjust the model of a round that counts."""

    def in_cohort_order(self, parts: Sequence[Array]) -> Array:
        """Concatenate rows that came block by block, in the order of the cohort."""
        clients = np.concatenate(self.arrived)
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if np.array_equal(clients, self.cohort.clients):
            return rows
        return rows[np.argsort(clients, kind="stable")]


class Stages(NamedTuple):
    """The optional stages of a setup."""

    selection: tuple[SelectionStage, ...] = ()
    accounts: tuple[Callable[[Any], Any], ...] = ()
    updates: tuple[type[UpdateStage], ...] = ()
    asks_for_aggregator: bool = False
    """Whether the aggregator may query clients before a round."""
    shares_table: bool = False
    """Whether the aggregator may use the table of updates that a scheme keeps."""
    wide_rows: bool = False
    """Whether the aggregated rows are of another length than the model."""

    @classmethod
    def of(cls, setup: Setup) -> Stages:
        """Choose the stages of a setup.

        The updates pass through their stages in the order below, and results depend on it:
        payloads are summed before guards clip, the scheme sees clipped updates, and running
        statistics are taken from the model before its rows are spread over several models. The
        division by sample counts comes before the local algorithm adjusts the direction.
        """
        scheme, aggregator, algorithm = setup.scheme, setup.aggregator, setup.algorithm
        seeded = overrides(aggregator, Aggregator, "seeded")
        wanted = {
            CappedWeights: overrides(aggregator, Aggregator, "cut"),
            SampleCounts: scheme.counts_samples or scheme.divides or scheme.subsampling,
            PayloadSums: bool(algorithm.payloads)
            or overrides(algorithm, Algorithm, "step", "direct", "summed", "up"),
            GuardedUpdates: bool(setup.guards),
            SchemeReplies: bool(scheme.listens),
            RunningStatistics: len(setup.statistics.positions) > 0,
            ModelRows: algorithm.models > 1 or overrides(algorithm, Algorithm, "rows", "width"),
        }
        return cls(
            selection=tuple([SelectionStage(setup)] if setup.guards else []),
            accounts=(partial(aggregator.seeded, seed=setup.seed),) if seeded else (),
            updates=tuple(stage for stage, used in wanted.items() if used),
            asks_for_aggregator=overrides(aggregator, Aggregator, "told"),
            shares_table=overrides(aggregator, Aggregator, "shared"),
            wide_rows=wanted[ModelRows],
        )


def overrides(part: object, base: type, *names: str) -> bool:
    """Return whether the class of a part defines any of these methods itself."""
    return any(getattr(type(part), name) is not getattr(base, name) for name in names)


# -- before training -------------------------------------------------------------------------


@dataclass(frozen=True)
class SelectionStage:
    """The guards, at the points of a round before training."""

    setup: Setup

    def restrict(self, state: State, context: RoundContext) -> RoundContext:
        """Leave out clients that must sit this round out."""
        for guard, memory in self._guards(state):
            federation = state.federation.among(context.available)
            barred = guard.barred(memory, federation, self.setup.m)
            present = federation.present
            if barred is not None and barred[present].any():
                context = replace(context, available=present[~barred[present]])
        return context

    def rewrite_query(self, state: State, ask: Ask) -> Ask:
        """Return the query that clients get instead."""
        for guard, memory in self._guards(state):
            ask = guard.question(memory, ask)
        return ask

    def rewrite_replies(self, ask: Ask, rows: Array) -> Array:
        """Return the replies that the scheme sees; rows of a wrong shape are refused later."""
        if rows.ndim and len(rows) == len(ask.clients):
            for guard in self.setup.guards:
                rows = guard.answer(ask, rows)
        return rows

    def amend(self, state: State, cohort: Cohort, federation: Federation) -> Cohort:
        """Return the cohort of a scheme without a design, as the guards want it."""
        for guard in self.setup.guards:
            rng = stream(self.setup.seed, f"guard {guard.name}", state.round)
            cohort = guard.chosen(cohort, federation, rng)
        return cohort

    def _guards(self, state: State) -> Iterable[tuple[Guard, Any]]:
        return zip(self.setup.guards, state.guards, strict=True)


# -- after training --------------------------------------------------------------------------


class CappedWeights(UpdateStage):
    """An aggregator that caps weights: the record shows them capped."""

    def finish(self, update: RoundUpdate) -> None:
        cohort = self.cohort
        weights = self.setup.aggregator.cut(update.account, cohort.clients, cohort.weights)
        update.cohort = replace(cohort, weights=weights)


class SampleCounts(UpdateStage):
    """Updates that are sums over samples: weights of the means, and the division by their sum."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.counted: list[Floats] = []  # (b,) each

    def add(self, block: UpdateBlock) -> UpdateBlock:
        if block.counted is not None:
            self.counted.append(block.counted)
        return block

    def finish(self, update: RoundUpdate) -> None:
        if self.counted:
            weights = self.in_cohort_order(self.counted)
            update.cohort = replace(update.cohort, weights=weights, per_sample=False)
        if self.setup.scheme.divides:
            update.direction = self._divided(update.direction)

    def _divided(self, direction: Floats) -> Floats:
        if self.arrived and not self.counted:
            raise BadInput(
                f"{self.setup.scheme.name} divides by the number of samples that took part, which "
                "nobody told; leave step='counted' or weighting='counts' out."
            )
        total = float(sum(part.sum() for part in self.counted))
        return direction / total if total > 0 else np.zeros_like(direction)


class PayloadSums(UpdateStage):
    """Vectors of a local algorithm (SCAFFOLD, FedDyn): summed by role, then used by the server."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sums: dict[str, Floats] = {}

    def add(self, block: UpdateBlock) -> UpdateBlock:
        algorithm, importance = self.setup.algorithm, self.state.federation.importance
        rows = algorithm.summed(block.updates, block.payloads)
        weights = self.cohort.weights_of(block.clients)
        for name, role, *_ in algorithm.payloads:
            if role != "note":
                by = weights if role == "estimate" else importance[block.clients]
                self.sums[name] = self.sums.get(name, 0.0) + by @ rows[name].astype(np.float64)
        return block

    def finish(self, update: RoundUpdate) -> None:
        lengths = self.setup.algorithm.up(len(self.state.theta)).values()
        update.extra_numbers += sum(length for (length,) in lengths)

    def before_step(self, update: RoundUpdate) -> None:
        if self.sums:
            update.vectors = self.setup.algorithm.step(update.vectors, self.sums)
        update.direction = self.setup.algorithm.direct(update.direction, update.vectors)


class GuardedUpdates(UpdateStage):
    """The guards, on updates: clip them, and remember the round."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lengths: list[Floats] = []  # (b,) each, as updates came
        self.clipped: list[Floats] = []  # (b,) each, as they were aggregated
        self.guards = tuple(zip(self.setup.guards, self.state.guards, strict=True))

    def process(self, blocks: Blocks) -> Iterator[UpdateBlock | UpdateSum]:
        """Clip; where guards compare the clients of a round all blocks are held first."""
        if not any(guard.measures for guard, _ in self.guards):
            yield from super().process(blocks)
            return
        compares = any(guard.compares(memory) for guard, memory in self.guards)
        for group in [list(blocks)] if compares else ([block] for block in blocks):
            for block, factors in zip(group, self._factors(group), strict=True):
                if isinstance(block, UpdateBlock):
                    self.arrived.append(block.clients)
                    if factors is not None:
                        scale = factors[:, None].astype(block.updates.dtype)
                        block = replace(block, updates=block.updates * scale)
                yield block

    def _factors(self, group: Sequence[UpdateBlock | UpdateSum]) -> list[Floats | None]:
        """Factors (b,) for each block of a group; None: its updates stay."""
        by_block = [_lengths(block) for block in group]
        lengths, total = np.concatenate([np.empty(0), *by_block]), None
        for guard, memory in self.guards:
            factors = guard.factors(memory, lengths)
            if factors is not None:
                lengths = lengths * factors
                total = factors if total is None else total * factors
        ends = np.cumsum([len(part) for part in by_block])[:-1]
        self.lengths += [part for part in by_block if len(part)]
        self.clipped += [part for part in np.split(lengths, ends) if len(part)]
        return [None] * len(group) if total is None else [*np.split(total, ends)]

    def after_step(self, update: RoundUpdate) -> None:
        came = self.in_cohort_order(self.lengths) if self.lengths else None
        kept = self.in_cohort_order(self.clipped) if self.clipped else None
        update.guards = guards_after(
            self.setup, self.state, self.selection, self.cohort, (came, kept)
        )


def guards_after(
    setup: Setup,
    state: State,
    selection: Selection,
    cohort: Cohort,
    lengths: tuple[Floats | None, Floats | None] = (None, None),
) -> tuple[Any, ...]:
    """Return what the guards remember after a round that counted."""
    if not setup.guards:
        return ()
    queries = tuple((query.ask, query.rows) for query in selection.heard)
    outcome = Outcome(state.federation, selection.cohort, selection.law, cohort, queries, *lengths)
    pairs = zip(setup.guards, state.guards, strict=True)
    return tuple(guard.after(memory, outcome) for guard, memory in pairs)


def _lengths(block: UpdateBlock | UpdateSum) -> Floats:
    """Return the lengths (b,) of a block's updates; those of a sum are unknown."""
    if isinstance(block, UpdateSum):
        return np.empty(0)
    return np.asarray(np.linalg.norm(block.updates.astype(np.float64, copy=False), axis=1))


class SchemeReplies(UpdateStage):
    """The signals that the scheme listens to, as rows in the order of the cohort."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.rows: dict[str, list[Array]] = {s.name: [] for s in self.setup.scheme.listens}
        self.row_bytes = 0

    def add(self, block: UpdateBlock) -> UpdateBlock:
        for name, parts in self.rows.items():
            parts.append(block.updates if name == UPDATE.name else block.heard[name])
        beside = [block.heard[name] for name in self.rows if name != UPDATE.name]
        self.row_bytes = sum(rows[:1].nbytes for rows in beside)
        return block

    def finish(self, update: RoundUpdate) -> None:
        signals = {
            name: self.in_cohort_order(parts) if self.arrived else np.empty(0)
            for name, parts in self.rows.items()
        }
        update.replies = without_invalid(Replies(self.cohort.clients, signals))
        update.extra_bytes += self.row_bytes


def without_invalid(replies: Replies) -> Replies:
    """Return the first reply of each client without NaN or infinity, in ascending order."""
    clients, good = replies.clients, np.ones(len(replies.clients), dtype=bool)
    for name, rows in replies.signals.items():
        if rows.dtype.kind not in "biuf":
            raise BadInput(f"Replies must be real numbers; '{name}' is of type {rows.dtype}.")
        good &= fits(rows)
    if good.all() and np.all(np.diff(clients) > 0):
        return replies
    if not good.all():
        warnings.warn(
            f"{int((~good).sum())} of {len(good)} replies contain values that are not finite "
            "or huge, and are left out.",
            FedcohortWarning,
            stacklevel=5,
        )
    kept, first = np.unique(clients[good], return_index=True)
    return Replies(kept, {name: rows[good][first] for name, rows in replies.signals.items()})


class RunningStatistics(UpdateStage):
    """Entries of the model without gradient (BatchNorm's): averaged over clients, never stepped."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.summed = self.mass = np.zeros(0)  # (models d,) weighted sums of updates and of ones
        self.before = self.change = np.zeros((0, 0))  # (models, d)

    def add(self, block: UpdateBlock) -> UpdateBlock:
        algorithm, weights = self.setup.algorithm, self.cohort.weights_of(block.clients)
        rows = algorithm.rows(block.updates, block.payloads)
        ones = algorithm.rows(np.ones_like(block.updates), block.payloads)
        counted = block.counted if self.setup.scheme.divides else None
        mass = weighted_sum(weights if counted is None else counted, ones)
        self._include(weighted_sum(weights, rows), mass)
        return block

    def add_sum(self, block: UpdateSum) -> None:
        mass = self.cohort.weights_of(block.clients).sum()
        self._include(block.total, np.full_like(block.total, mass))

    def _include(self, summed: Floats, mass: Floats) -> None:
        empty = not len(self.mass)
        self.summed = summed if empty else self.summed + summed
        self.mass = mass if empty else self.mass + mass

    def mean_change(self, direction: Floats, vectors: Mapping[str, Floats]) -> Floats:
        """Return the mean change (models d,) of the clients, with weights divided by their sum.

        A robust aggregator has its own mean, the ``direction``. The mean is 0 without updates.
        """
        setup = self.setup
        if not len(self.mass):
            return np.zeros_like(direction)
        summed = direction
        if not setup.aggregator.compares:
            summed = setup.algorithm.direct(self.summed, vectors)
        if self.cohort.per_sample and not setup.scheme.divides:
            return summed  # the number of samples is hidden: it is the expected one
        mass = setup.algorithm.direct(self.mass, vectors)
        mean: Floats = np.divide(summed, mass, out=np.zeros_like(summed), where=mass > 0)
        return mean

    def before_step(self, update: RoundUpdate) -> None:
        self.before = self.state.models(self.setup)
        shape = self.before.shape
        self.change = self.mean_change(update.direction, update.vectors).reshape(shape)
        direction = update.direction.reshape(shape).copy()
        direction[:, self.setup.statistics.positions] = 0.0
        update.direction = direction.ravel()

    def after_step(self, update: RoundUpdate) -> None:
        positions, variances = self.setup.statistics
        theta = update.theta.reshape(self.before.shape).copy()
        theta[:, positions] = self.before[:, positions] + self.change[:, positions]
        theta[:, variances] = np.maximum(theta[:, variances], 0.0)
        update.theta = theta.ravel()


class ModelRows(UpdateStage):
    """Several models (IFCA): one wide row per client, one step for all models side by side."""

    def add(self, block: UpdateBlock) -> UpdateBlock:
        return replace(block, updates=self.setup.algorithm.rows(block.updates, block.payloads))

    def before_step(self, update: RoundUpdate) -> None:
        if self.setup.algorithm.others:
            update.theta = self.state.models(self.setup).ravel()

    def after_step(self, update: RoundUpdate) -> None:
        others = self.setup.algorithm.others
        if others:
            update.theta, *more = update.theta.reshape(1 + len(others), -1)
            update.vectors = {**update.vectors, **dict(zip(others, more, strict=True))}
