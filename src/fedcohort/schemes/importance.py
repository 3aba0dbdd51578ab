"""Draws in proportion to the length of the updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core import Whole
from fedcohort.schemes._hcsfed import SimilarUpdates


@dataclass(frozen=True)
class Importance(SimilarUpdates):
    """m draws with probability proportional to importance times the length of the update.

    `hcsfed` with one stratum. A draw of client i weighs p_i / (m q_i) (Hansen-Hurwitz), so the
    aggregate is unbiased. The parameters are those of `hcsfed`.

    >>> from fedcohort import Federation, Selector, scheme
    >>> told = lambda ask: [[8.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> federation = Federation.from_sizes([1, 1, 1])
    >>> cohort = Selector(scheme("importance", m=2), federation, seed=0).select(ask=told)
    >>> cohort.clients, cohort.weights.round(3)
    (array([0]), array([0.442]))
    """

    strata: Annotated[int, Whole(1)] = 1

    name: ClassVar[str] = "importance"
