"""From the answers of a cohort to the direction of the server's step. One aggregator per file.

All clients together would move the model by sum_i p_i delta_i. An estimator guesses this from
the cohort alone; it is unbiased whenever the weights are (E omega_i = p_i).

Nobody is an outcome like any other for designs that can draw nobody (`binomial`, `poisson`,
`optimal`): the estimate is then 0 for the plain sum and sum_i p_i y_i with memory, and to leave
these rounds out would bias the others. The optimiser gets that estimate as any other (with
momentum the model therefore moves on). A *void* round is another matter: too few of the chosen
answered, or nobody was available. It says nothing about the target, and no step is taken.

Other packages add theirs through the entry point group ``fedcohort.aggregators``.
"""

from __future__ import annotations

from typing import Any

from fedcohort._internal.registry import Kind
from fedcohort.server.aggregators.base import Aggregator, weighted_sum
from fedcohort.server.aggregators.gaussian import Gaussian, Released
from fedcohort.server.aggregators.krum import Krum
from fedcohort.server.aggregators.median import Median
from fedcohort.server.aggregators.memory import Memory, MemoryState
from fedcohort.server.aggregators.plain import Plain
from fedcohort.server.aggregators.trimmed_mean import TrimmedMean

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "Gaussian",
    "Krum",
    "Median",
    "Memory",
    "MemoryState",
    "Plain",
    "Released",
    "TrimmedMean",
    "aggregator",
    "weighted_sum",
]

AGGREGATORS: Kind[Aggregator] = Kind("aggregator", (__name__,), Aggregator, default="plain")


def aggregator(which: Aggregator | str | None = None, **parameters: Any) -> Aggregator:
    """The aggregator of that name; None is the plain one, and an aggregator is itself.

    >>> aggregator("memory")
    Memory(guess='zero', alpha=0.1)
    """
    return AGGREGATORS.build(which, **parameters)
