"""Strata of similar updates, draws where they differ, equal chances inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core import OneOf
from fedcohort.schemes._hcsfed import SimilarUpdates


@dataclass(frozen=True)
class ClusterNeyman(SimilarUpdates):
    """`hcsfed` without its last stage: strata and re-allocation, equal chances inside.

    m clients without replacement; a client of a stratum with N_h clients and m_h draws weighs
    p_i N_h / m_h. The parameters are those of `hcsfed`.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[0.0], [0.1], [5.0], [9.0]]
    >>> federation = Federation.from_sizes([1, 1, 1, 1])
    >>> stratified = scheme("cluster-neyman", m=3, strata=2)
    >>> Selector(stratified, federation, seed=0).select(ask=told).weights
    array([0.5 , 0.25, 0.25])
    """

    inside: Annotated[str, OneOf(("importance", "uniform"))] = "uniform"

    name: ClassVar[str] = "cluster-neyman"
