"""Strata of similar updates, each with its share of the draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core import OneOf
from fedcohort.schemes._hcsfed import SimilarUpdates


@dataclass(frozen=True)
class Cluster(SimilarUpdates):
    """Strata of similar updates, each with its share of the m draws.

    `cluster-neyman` without re-allocation: m_h ~ N_h. The parameters are those of `hcsfed`.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[0.0], [0.1], [5.0], [5.1]]
    >>> federation = Federation.from_sizes([1, 1, 1, 1])
    >>> Selector(scheme("cluster", m=2, strata=2), federation, seed=0).select(ask=told).clients
    array([0, 2])
    """

    allocation: Annotated[str, OneOf(("neyman", "proportional", "paper"))] = "proportional"
    inside: Annotated[str, OneOf(("importance", "uniform"))] = "uniform"

    name: ClassVar[str] = "cluster"
