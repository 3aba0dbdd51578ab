"""Optimal client sampling: minimal variance for a budget of m clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedcohort.core import Citation, Claim, Federation, cohort_size
from fedcohort.core.types import Floats
from fedcohort.designs import Bernoulli
from fedcohort.maths._inclusion import minimal_variance_inclusion
from fedcohort.schemes._lengths import ByLength


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
    paper: ClassVar[Citation] = Citation(
        "Wenlin Chen, Samuel Horváth, Peter Richtárik",
        "Optimal Client Sampling for Federated Learning",
        "TMLR",
        2022,
        "equation (7)",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})
    draws_once: ClassVar[bool] = True

    def given(self, norms: Floats, federation: Federation) -> Bernoulli:
        m = cohort_size(self.m, federation, self.name)
        here, pull = federation.present, self.pull(norms, federation)
        inclusion = np.zeros(len(federation))
        inclusion[here] = minimal_variance_inclusion(pull[here], m) if pull.any() else m / len(here)
        return Bernoulli.of_floats(federation.shares, inclusion)
