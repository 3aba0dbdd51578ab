"""FedCS: as many clients as can be done by a deadline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core import (
    Citation,
    Claim,
    Cohort,
    Federation,
    Maybe,
    NoState,
    Real,
    RoundContext,
    Scheme,
    Whole,
    candidate_number,
    cohort_size,
)
from fedcohort.core.errors import BadParameter
from fedcohort.core.types import Floats, Ints
from fedcohort.maths._draws import distinct, permutation
from fedcohort.schemes._latency import assumed


@dataclass(frozen=True)
class FedCS(Scheme[NoState]):
    """Candidates are drawn, and as many of them train as can be done by a deadline.

    Client i computes for u_i seconds, then uploads for a_i while nobody else does. Chosen one by
    one, always who adds least, the clients so far are done after Theta, and with i after

        Theta + a_i + max(0, u_i - Theta),

    which must not be later than the deadline. A client that would be is passed over.

    Parameters
    ----------
    m
        How many clients train at most; the paper sets no limit (m = d).
    d
        How many candidates are drawn, uniformly; twice m by default.
    deadline
        Seconds within which a round is to end, in the unit of the latencies.
    upload
        The share of a client's time that is its upload, in turn over one line that all share as in
        the paper; 0 where everybody has a line of its own, as in the simulator.

    Where we differ: times are what the server has measured (see `RoundContext`), the paper has
    clients tell their resources before every round. Who is not known counts as the fastest. Where
    nobody can be in time the fastest trains all the same. Weights are p_i over those chosen, so
    clients that are too slow never count: with unequal devices this is a biased average, and no
    weight repairs it.

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("fedcs", m=3, d=4, deadline=60),
    ...                     Federation.from_sizes([10] * 4), seed=0)
    >>> selector.select(latency=[10, 90, 50, 70]).clients
    array([0, 2])
    """

    m: Annotated[int, Whole(1)] = 10
    d: Annotated[int | None, Maybe(Whole(1))] = None
    deadline: Annotated[float, Real(0, open_low=True)] = 180.0
    upload: Annotated[float, Real(0, 1)] = 0.0

    name: ClassVar[str] = "fedcs"
    paper: ClassVar[Citation] = Citation(
        "Takayuki Nishio, Ryo Yonetani",
        "Client Selection for Federated Learning with Heterogeneous Resources in Mobile Edge",
        "ICC",
        2019,
        "Protocol 2, Algorithm 3, from memory of the paper; arXiv:1804.08333",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE})
    draws_once: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is not None and self.d < self.m:
            raise BadParameter("d", self.name, f"at least m ({self.m})", self.d)

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        most, here = cohort_size(self.m, federation, self.name), federation.present
        d = candidate_number(self.d, self.m, federation, self.name)
        candidates = here[distinct(rng, len(here), d)]
        candidates = candidates[permutation(rng, d)]  # of equals anybody comes first
        takes = assumed(context.latency, len(federation))[candidates]
        chosen = candidates[self.scheduled(takes, most)]
        weights = federation.importance[chosen]
        cohort = Cohort.of(chosen, weights / math.fsum(weights))
        return cohort.backed_by(candidates, -takes)

    def scheduled(self, takes: Floats, most: int) -> Ints:
        """Positions of those who are done in time, of candidates that take so long.

        >>> FedCS(m=3, deadline=10, upload=0.5).scheduled(np.array([8.0, 4.0, 6.0]), 3).tolist()
        [1, 2]
        """
        upload, compute = self.upload * takes, (1 - self.upload) * takes
        left = np.ones(len(takes), dtype=bool)
        chosen: list[int] = []
        done = 0.0
        while left.any() and len(chosen) < most:
            adds = np.where(left, upload + np.maximum(0.0, compute - done), np.inf)
            least = int(adds.argmin())
            left[least] = False
            if done + adds[least] <= self.deadline:
                chosen.append(least)
                done += float(adds[least])
        return np.array(chosen or [int(takes.argmin())], dtype=np.int64)
