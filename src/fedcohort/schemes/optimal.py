"""Optimal sampling: clients train first, tell the lengths of their updates, and some send them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.types import Floats
from fedcohort.designs import Bernoulli, ConditionalPoisson, Sampford
from fedcohort.designs._sequential import ListSequential
from fedcohort.maths._inclusion import minimal_variance_inclusion
from fedcohort.selection import (
    UPDATE_NORM,
    Ask,
    Citation,
    Claim,
    Conversation,
    Federation,
    NoState,
    OneOf,
    RoundContext,
    Scheme,
    Shares,
    Signal,
    Whole,
    cohort_size,
)
from fedcohort.selection._design import Design
from fedcohort.selection._queries import usable

CHEN = Citation(
    "Wenlin Chen, Samuel Horváth, Peter Richtárik",
    "Optimal Client Sampling for Federated Learning",
    "TMLR",
    2022,
)


@dataclass(frozen=True)
class ByLength(Scheme[NoState]):
    """A scheme that hears the length of every update before it chooses."""

    m: Annotated[int | str, Whole(1, words=("all",))] = 10

    asks: ClassVar[frozenset[Signal]] = frozenset({UPDATE_NORM})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Design]:
        norms = yield Ask(UPDATE_NORM, federation.present)
        return self.given(norms, federation)

    @abstractmethod
    def given(self, norms: Floats, federation: Federation) -> Design:
        """The law of the cohort once the norms (aligned with ``federation.present``) are known."""

    @staticmethod
    def pull(norms: Floats, federation: Federation) -> Floats:
        """(n,) p_i ||U_i||; 0 where the norm is no finite number, and for who is not there."""
        finite = np.maximum(np.nan_to_num(usable(np.asarray(norms))), 0.0)
        pull = np.zeros(len(federation))
        pull[federation.present] = federation.importance[federation.present] * finite
        return pull


# Optimal client sampling: minimal variance for a budget of m clients.


@dataclass(frozen=True)
class Optimal(ByLength):
    """Every client trains and reports the length of its update; few are asked to send it.

    Independent inclusion with the probabilities q_i that minimise the variance of the
    aggregate, subject to sum q = m: q_i = min(1, c p_i ||U_i||), where c is found exactly by
    filling up (clients at 1 first). Weight p_i / q_i.

    A client whose update is zero is not needed and gets q_i = 0; a report that is not a finite
    number counts as zero. If all are zero, q_i = m/n.

    Parameters
    ----------
    m
        Expected number of clients that send their update; ``"all"`` for every one.

    Where we differ: nothing in the selection. The paper's secure-aggregation variant (AOCS)
    approximates the same q by a few sums; it is not needed where norms may be seen.

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("optimal", m=1), Federation.from_sizes([1, 1, 1]), seed=0)
    >>> cohort = selector.select(ask=lambda ask: [0.0, 2.0, 0.0])
    >>> cohort.clients, cohort.weights
    (array([1]), array([0.33333333]))
    """

    name: ClassVar[str] = "optimal"
    paper: ClassVar[Citation] = replace(CHEN, where="equation (7)")
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})
    draws_once: ClassVar[bool] = True

    def given(self, norms: Floats, federation: Federation) -> Bernoulli:
        m = cohort_size(self.m, federation, self.name)
        here, pull = federation.present, self.pull(norms, federation)
        inclusion = np.zeros(len(federation))
        inclusion[here] = minimal_variance_inclusion(pull[here], m) if pull.any() else m / len(here)
        return Bernoulli.of_floats(federation.shares, inclusion)


# Optimal client sampling with a fixed number of clients.


LAWS: dict[str, type[ListSequential]] = {
    "conditional-poisson": ConditionalPoisson,
    "sampford": Sampford,
}
FINE = 2**30
"""The longest update as an integer, so that the law does not hang on the last bits of lengths."""


@dataclass(frozen=True)
class OptimalFixed(ByLength):
    """Every client trains and reports the length of its update; exactly m are asked to send it.

    The chances are those of `optimal`, q_i = min(1, c p_i ||U_i||) with sum m, which for
    independent clients minimise the variance of the aggregate, and weights are p_i / q_i; but
    *exactly* m clients come, never none and never twice as many.

    **Weights do not sum to 1**: of two equal clients with lengths 1 and 3 the one that is sent
    weighs 2 or 2/3. Nor is the variance below that of `optimal` whatever the updates: of two
    opposite ones of equal length one is always sent, variance 1, where independent coins have
    1/2. It is not above where no two updates point against one another, since no two clients
    are positively correlated.

    A client whose update is zero is not needed; such clients come only to make up m. A report
    that is not a finite number counts as zero. If all are zero, q_i = m/n.

    Parameters
    ----------
    m
        How many clients send their update; ``"all"`` for every one.
    joint
        The joint law: ``"conditional-poisson"``, of most entropy, or ``"sampford"``. The
        covariances of both are exact.

    Where we differ: Chen et al. toss independent coins; the fixed size is ours.

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("optimal-fixed", m=1), Federation.from_sizes([1, 1]), seed=2)
    >>> cohort = selector.select(ask=lambda ask: [0.0, 3.0])
    >>> cohort.clients, cohort.weights
    (array([1]), array([0.5]))
    """

    joint: Annotated[str, OneOf(tuple(LAWS))] = "conditional-poisson"

    name: ClassVar[str] = "optimal-fixed"
    paper: ClassVar[Citation] = replace(
        CHEN, where="equation (7), with a fixed size: Hájek (1964), Sampford (1967)"
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EXACTLY_M})

    def given(self, norms: Floats, federation: Federation) -> ListSequential:
        m = cohort_size(self.m, federation, self.name)
        here, pull = federation.present, self.pull(norms, federation)
        if np.count_nonzero(pull) >= m:
            parts = np.rint(pull * (FINE / pull.max())).astype(np.int64)
            parts = np.where((pull > 0) & (parts == 0), 1, parts)
        else:  # all of these are sure, and the others equally likely to make up m
            parts = np.where(pull > 0, len(here) * m, 0)
            parts[here] = np.maximum(parts[here], 1)
        return LAWS[self.joint].proportional(Shares.of(parts), m, target=federation.shares)
