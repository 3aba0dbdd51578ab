"""The weighted sum of clipped answers, with Gaussian noise: client-level differential privacy."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from fedcohort.core.citation import Citation
from fedcohort.core.cohort import Cohort
from fedcohort.core.errors import BudgetSpent, NoEntropy
from fedcohort.core.parameters import Maybe, Real, Whole
from fedcohort.core.positions import missing_from
from fedcohort.core.scheme import Claim
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.maths.lengths import lengths, shortening
from fedcohort.server.aggregators.base import Aggregator, weighted_sum
from fedcohort.server.dropouts.none import AsDrawn


@dataclass(frozen=True)
class Released:
    """How many noisy sums have been released."""

    number: int = 0


@dataclass(frozen=True, eq=False)
class _Account:
    """The sum so far, and how often each client was drawn."""

    memory: Released
    clients: Ints
    draws: Ints
    total: Floats | None = None


@dataclass(frozen=True)
class Gaussian(Aggregator):
    """sum_i omega_i clip(delta_i, C) + noise: no client moves the sum by more than is hidden.

    Every answer is shortened to the length C = ``clip``, every draw counts at most ``weight``, and
    every coordinate of the sum gets Gaussian noise of standard deviation noise * C * weight, in
    rounds that drew nobody too. What that costs is told by `fedcohort price` and depends on the
    scheme: give it the same noise, and here the largest weight that it prints.

    Weights are as drawn: replacing or reweighing clients that do not answer would let a client
    weigh more than the noise is for, so the drop-out rule must be ``none``. Whatever else clients
    send (control variates, losses, updates that a scheme listens to) is without noise, so what
    needs it is refused, as are guards that go by the lengths of answers: whom they let in, and what
    they cut others to, would tell of them without noise.

    Parameters
    ----------
    clip
        C, the longest answer that counts in full.
    noise
        The noise multiplier z of `fedcohort price`, under add-remove; under replace-one give
        twice as much.
    weight
        The largest weight of one draw; draws that weigh more are cut to it. 1 is enough for
        weights that sum to 1, and mostly far too much noise.
    rounds
        How many sums may be released; one more is refused. None for no limit.
    delta
        Of the epsilon that a trace tells.
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
    noise: Annotated[float, Real(0, open_low=True)] = 1.0
    weight: Annotated[float, Real(0, open_low=True)] = 1.0
    rounds: Annotated[int | None, Maybe(Whole(1))] = None
    delta: Annotated[float, Real(0, 1, open_low=True)] = 1e-5
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
    def deviation(self) -> float:
        """The standard deviation of the noise on every coordinate."""
        return self.noise * self.clip * self.weight

    def unfit(self, setup: Any) -> str:
        if not isinstance(setup.dropouts, AsDrawn):
            return (
                "The aggregator 'gaussian' needs weights as drawn, for only these are bounded; use "
                f"the drop-out rule 'none' instead of '{setup.dropouts.name}'."
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
        return Released()

    def begin(self, memory: Released, cohort: Cohort, importance: Floats | None = None) -> _Account:
        if self.rounds is not None and memory.number >= self.rounds:
            raise BudgetSpent(
                f"The privacy budget is spent: the aggregator 'gaussian' may release {self.rounds} "
                "noisy sums, and all are; raise 'rounds' only if its price (fedcohort price) "
                "allows it."
            )
        return _Account(memory, cohort.clients, cohort.draws)

    def add(self, account: _Account, clients: Ints, weights: Floats, updates: Array) -> _Account:
        if len(missing_from(account.clients, clients)):
            times = np.ones(len(clients), dtype=np.int64)
        else:
            times = account.draws[np.searchsorted(account.clients, clients)]
        counted = np.clip(weights, 0.0, self.weight * times)
        rows = updates.astype(np.float64, copy=False)
        moved = weighted_sum(counted * shortening(lengths(rows), self.clip), rows)
        return replace(account, total=moved if account.total is None else account.total + moved)

    def finish(self, account: _Account, dimension: int) -> tuple[Floats, Released]:
        total = np.zeros(dimension) if account.total is None else account.total
        number = account.memory.number
        if self.seed is None:
            noise = from_the_system(dimension)
        else:
            noise = stream(self.seed, "privacy", number).standard_normal(dimension)
        return total + self.deviation * noise, Released(number + 1)


def from_the_system(dimension: int) -> Floats:
    """Standard normal numbers from the randomness of the operating system."""
    try:
        words = np.frombuffer(os.urandom(8 * dimension), dtype="<u8")
    except (OSError, NotImplementedError) as error:
        raise NoEntropy("The operating system gives no randomness; no noise is added.") from error
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    return np.asarray(ndtri(uniform), dtype=np.float64)
