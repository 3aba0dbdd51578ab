"""The weighted sum of clipped answers, with Gaussian noise: client-level differential privacy."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from fedcohort._internal.errors import BudgetSpent, NoEntropy
from fedcohort._internal.parameters import Maybe, Real, Whole
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.maths._inclusion import lengths, shortening
from fedcohort.selection._citation import Citation
from fedcohort.selection._client_rows import LatestRows
from fedcohort.selection._cohort import Cohort, missing_from
from fedcohort.selection._scheme import Claim
from fedcohort.server._aggregators import Aggregator, weighted_sum
from fedcohort.server._dropouts import AsDrawn

COUNTED = 0.3
"""What "my answer was not shortened" weighs beside the answer itself, in clipping lengths."""
RATE = 0.2
"""How fast the clipping length follows the quantile; that of Andrew et al."""
SMALLEST, LARGEST = 1e-12, 1e12
"""Of a clipping length that follows."""


@dataclass(frozen=True)
class Released:
    """How many noisy sums have been released, and what answers are shortened to now."""

    number: int = 0
    away: int = 0
    """Of them, those of rounds in which not all clients of now could be chosen."""
    clip: float = 0.0
    """0: as it was set."""


@dataclass(frozen=True, eq=False)
class _Account:
    """The sum so far, and how often each client was drawn."""

    memory: Released
    clients: Ints
    draws: Ints
    away: bool
    total: Floats | None = None
    balance: float = 0.0
    """The weight of answers that were not shortened, minus that of those that were."""
    answered: int = 0
    noisy: bool = False
    """Whether clients have added the noise already."""
    run: int | None = None
    """The seed of the run: runs with other seeds have other noise."""


@dataclass(frozen=True)
class Gaussian(Aggregator):
    """sum_i omega_i clip(delta_i, C) + noise: no client moves the sum by more than is hidden.

    Every answer is shortened to the length C = ``clip``, every draw counts at most ``weight``, and
    every coordinate of the sum gets Gaussian noise of standard deviation noise * C * weight, in
    rounds that drew nobody too. What that costs is told by `fedcohort price` and depends on the
    scheme; a run tells it in its trace.

    Weights are as drawn: replacing or reweighing clients that do not answer lets a client weigh
    more than the noise is for, so the drop-out rule must be ``none``, or weights ``capped``.
    Whatever else clients send (control variates, losses, updates that a scheme listens to) is
    without noise, so what needs it is refused, as are guards that go by the lengths of answers:
    whom they let in, and what they cut others to, would tell of them without noise.

    Parameters
    ----------
    clip
        C, the longest answer that counts in full; with a ``quantile``, where it begins.
    noise
        The noise multiplier z of `fedcohort price`, under add-remove; under replace-one give
        twice as much. None: the least with which ``rounds`` rounds cost no more than ``epsilon``.
    weight
        The largest weight of one draw; draws that weigh more are cut to it. None: the largest that
        the law of the scheme has, or 1 if there is no law.
    rounds
        How many sums may be released; one more is refused. None for no limit.
    epsilon
        The budget: the run stops before a round with which a client would have paid more.
    delta
        Of the epsilon that a trace tells.
    quantile
        C follows this quantile of the lengths of answers (Andrew et al. 2021): after every round
        it is multiplied with exp(-0.2 (share of answers within C - quantile)). The share is
        released with noise, as one more coordinate of the sum, so epsilon stays what it is and
        the noise on the update grows by 4 %. None: C stays.
    capped
        Let drop-out rules that reweigh or replace be used: a client then counts at most ``weight``
        in a round, and no amplification is counted that they would spoil. A scheme without a law
        is always capped: it may draw a client any number of times.
    clients
        Clients add the noise, for secure sums: each so much that the answers of this many have
        it all. Fewer are not summed up. None: the server adds it.
    seed
        For simulations only: noise that can be repeated can be taken off again. None takes the
        randomness of the operating system.

    Reference: McMahan, Ramage, Talwar, Zhang (ICLR 2018), there for Poisson sampling; here for
    the weights of any design.

    >>> cohort = Cohort.of([0, 1], [0.5, 0.5])
    >>> private = Gaussian(clip=1.0, noise=1e-9, weight=0.5, seed=0)
    >>> answers = np.array([[3.0, 4.0], [0.1, 0.0]])
    >>> private.direction(Released(), cohort, cohort.clients, answers)[0].round(6)
    array([0.35, 0.4 ])
    """

    clip: Annotated[float, Real(0, open_low=True)] = 1.0
    noise: Annotated[float | None, Maybe(Real(0, open_low=True))] = 1.0
    weight: Annotated[float | None, Maybe(Real(0, open_low=True))] = None
    rounds: Annotated[int | None, Maybe(Whole(1))] = None
    epsilon: Annotated[float | None, Maybe(Real(0, open_low=True))] = None
    delta: Annotated[float, Real(0, 1, open_low=True)] = 1e-5
    quantile: Annotated[float | None, Maybe(Real(0, 1, open_low=True))] = None
    capped: bool = False
    clients: Annotated[int | None, Maybe(Whole(1))] = None
    seed: Annotated[int | None, Maybe(Whole(0))] = None

    name: ClassVar[str] = "gaussian"
    paper: ClassVar[Citation | None] = Citation(
        "H. Brendan McMahan, Daniel Ramage, Kunal Talwar, Li Zhang",
        "Learning Differentially Private Recurrent Language Models",
        "ICLR",
        2018,
        "Algorithm 1, with the weights of any design",
    )
    needs_rows: ClassVar[bool] = True
    withdraws: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EVEN_OVER_SAMPLES})

    @property
    def most(self) -> float:
        """What one draw counts at most."""
        return 1.0 if self.weight is None else self.weight

    @property
    def multiplier(self) -> float:
        """The noise multiplier; 1 until it is found."""
        return 1.0 if self.noise is None else self.noise

    @property
    def widened(self) -> float:
        """By how much the noise grows so that it also hides which answers were shortened."""
        return 1.0 if self.quantile is None else math.hypot(1.0, COUNTED)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on every coordinate, in the first round."""
        return self.deviation_at(self.clip)

    def deviation_at(self, clip: float) -> float:
        """The same where answers are shortened to another length."""
        return self.multiplier * clip * self.most * self.widened

    def longest(self, memory: Released) -> float:
        """What answers are shortened to now."""
        return memory.clip or self.clip

    def unfit(self, setup: Any) -> str:
        if self.noise is None and (self.epsilon is None or self.rounds is None):
            return (
                "The aggregator 'gaussian' finds its noise from 'epsilon' and 'rounds', both: give "
                "them, or 'noise'."
            )
        if setup.scheme.divides:
            return (
                "The aggregator 'gaussian' adds noise to a sum, but with these settings "
                f"{setup.scheme.name} divides by a number without noise; use step='expected' (of "
                "fedsampling) or weighting='uniform' (of fedsampling-naive)."
            )
        if self.quantile is not None and self.clients is not None:
            return (
                "The aggregator 'gaussian' cannot have both: 'quantile' needs the lengths of "
                "answers, and where clients add the noise ('clients') only they know them; leave "
                "one out."
            )
        if not isinstance(setup.dropouts, AsDrawn) and not self.capped:
            return (
                "The aggregator 'gaussian' needs weights as drawn, for only these are bounded; use "
                f"the drop-out rule 'none' instead of '{setup.dropouts.name}', or cut weights by "
                "'capped=true', which gives up amplification."
            )
        if self.clients is not None and not isinstance(setup.dropouts, AsDrawn):
            return (
                "Where clients add noise (gaussian:clients=...) each weighs its answer before "
                f"anybody knows who answers; use the drop-out rule 'none', not "
                f"'{setup.dropouts.name}'."
            )
        if setup.stragglers.competing:
            return (
                "The aggregator 'gaussian' hides one client in a sum, but by "
                f"'{setup.stragglers.name}' one that is fast keeps another out of it, too; use "
                "'deadline' or 'wait'."
            )
        if setup.quorum > 0:
            return (
                "The aggregator 'gaussian' needs a quorum of 0: that a round is void would tell, "
                f"without noise, who answered; got {setup.quorum:g}."
            )
        more = setup.algorithm.payloads or setup.algorithm.others
        if more:
            return (
                "The aggregator 'gaussian' adds noise to updates alone, but the local algorithm "
                f"'{setup.algorithm.name}' sends more; use 'sgd' or 'fedprox'."
            )
        if len(setup.statistics.positions):
            return (
                f"The aggregator 'gaussian' needs a model of weights alone, and this one has "
                f"{len(setup.statistics.positions)} running statistics, whose mean has no noise; "
                "take nn.GroupNorm or nn.LayerNorm in place of BatchNorm."
            )
        if setup.scheme.listens:
            told = ", ".join(sorted(signal.name for signal in setup.scheme.listens))
            return (
                f"The aggregator 'gaussian' hides single answers, but {setup.scheme.name} listens "
                f"to {told}; use a scheme that does not."
            )
        measuring = [guard.name for guard in setup.guards if guard.measures]
        if measuring:
            return (
                "The aggregator 'gaussian' hides how long single answers are, but hardening by "
                f"{' and '.join(measuring)} goes by that; it clips answers itself: harden the run "
                "by others, as in hardened='size-cap+rate-cap:step=false+losses+explore'."
            )
        return ""

    def start(self, importance: Floats, dimension: int) -> Released:
        return Released(clip=self.clip)

    def moved(
        self,
        memory: Released,
        importance: Floats,
        came_from: Ints,
        latest: LatestRows | None = None,
    ) -> Released:
        """Before others came, those who were there were likelier to be drawn."""
        return replace(memory, away=memory.number)

    def begin(self, memory: Released, cohort: Cohort, importance: Floats | None = None) -> _Account:
        if self.rounds is not None and memory.number >= self.rounds:
            raise BudgetSpent(
                f"The privacy budget is spent: the aggregator 'gaussian' may release {self.rounds} "
                "noisy sums, and all are; raise 'rounds' only if its price (fedcohort price) "
                "allows it."
            )
        draws = np.ones_like(cohort.draws) if self.capped else cohort.draws
        return _Account(memory, cohort.clients, draws, importance is not None)

    def add(self, account: _Account, clients: Ints, weights: Floats, updates: Array) -> _Account:
        counted = self.cut(account, clients, weights)
        rows = updates.astype(np.float64, copy=False)
        norms, longest = lengths(rows), self.longest(account.memory)
        moved = weighted_sum(counted * shortening(norms, longest), rows)
        return replace(
            account,
            total=moved if account.total is None else account.total + moved,
            balance=account.balance + float(counted @ np.where(norms <= longest, 1.0, -1.0)),
            answered=account.answered + len(clients),
        )

    def cut(self, account: _Account, clients: Ints, weights: Floats) -> Floats:
        if len(missing_from(account.clients, clients)):
            times = np.ones(len(clients), dtype=np.int64)
        else:
            times = account.draws[np.searchsorted(account.clients, clients)]
        return np.clip(weights, 0.0, self.most * times)

    def add_sum(self, account: _Account, clients: Ints, total: Floats) -> _Account:
        """Answers that clients have shortened, weighed and made noisy themselves."""
        moved = total if account.total is None else account.total + total
        answered = account.answered + len(clients)
        return replace(account, total=moved, answered=answered, noisy=True)

    def finish(self, account: _Account, dimension: int) -> tuple[Floats, Released]:
        total = np.zeros(dimension) if account.total is None else account.total
        memory, answered = account.memory, account.answered
        if self.clients is not None and 0 < answered < self.clients:
            return np.zeros(dimension), memory  # the sum is not opened: nothing is released
        after = replace(memory, number=memory.number + 1, away=memory.away + account.away)
        if account.noisy:
            return total, after
        share = 1.0 if self.clients is None or not answered else math.sqrt(answered / self.clients)
        wanted = dimension + (self.quantile is not None)
        noise = share * self._noise(memory.number, wanted, account.run)
        clip = self.longest(memory)
        if self.quantile is not None:
            per_bit = self.multiplier * self.most * self.widened / COUNTED
            told = account.balance + per_bit * noise[-1]
            step = math.exp(-RATE * ((1.0 + float(told)) / 2 - self.quantile))
            after = replace(after, clip=min(max(clip * step, SMALLEST), LARGEST))
        return total + self.deviation_at(clip) * noise[:dimension], after

    def seeded(self, account: _Account, seed: int) -> _Account:
        return replace(account, run=seed)

    def _noise(self, number: int, size: int, run: int | None) -> Floats:
        if self.seed is None:
            return from_the_system(size)
        return stream(self.seed, "privacy", number, run).standard_normal(size)


def noisy_part(row: Floats, weight: float, clip: float, deviation: float) -> Floats:
    """(d,) what one client sends for a secure sum: shortened, weighed, with its share of noise."""
    factor = weight * float(shortening(lengths(row[None]), clip)[0])
    return factor * row + deviation * from_the_system(len(row))


def from_the_system(dimension: int) -> Floats:
    """Standard normal numbers from the randomness of the operating system."""
    try:
        words = np.frombuffer(os.urandom(8 * dimension), dtype="<u8")
    except (OSError, NotImplementedError) as error:
        raise NoEntropy("The operating system gives no randomness; no noise is added.") from error
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    return np.asarray(ndtri(uniform), dtype=np.float64)
