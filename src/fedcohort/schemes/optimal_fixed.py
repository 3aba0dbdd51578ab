"""Optimal client sampling with a fixed number of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core import Citation, Claim, Federation, OneOf, Shares, cohort_size
from fedcohort.core.types import Floats
from fedcohort.designs import ConditionalPoisson, Sampford
from fedcohort.designs._sequential import ListSequential
from fedcohort.schemes._lengths import ByLength

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
    paper: ClassVar[Citation] = Citation(
        "Wenlin Chen, Samuel Horváth, Peter Richtárik",
        "Optimal Client Sampling for Federated Learning",
        "TMLR",
        2022,
        "equation (7), with a fixed size: Hájek (1964), Sampford (1967)",
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
