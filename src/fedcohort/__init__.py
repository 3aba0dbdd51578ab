"""Which clients train in each round of federated learning, and how much each answer counts.

>>> import fedcohort
>>> federation = fedcohort.Federation.from_sizes([500, 300, 200, 100])
>>> selector = fedcohort.Selector(fedcohort.scheme("clustered-size", m=2), federation, seed=0)
>>> cohort = selector.select()
>>> float(cohort.weights.sum())
1.0
"""

from fedcohort.core import (
    Ask,
    Citation,
    Claim,
    Cohort,
    Design,
    Federation,
    Moment,
    Replies,
    Scheme,
    Signal,
)
from fedcohort.core.errors import FedcohortError, FedcohortWarning
from fedcohort.schemes import scheme, schemes
from fedcohort.selector import Selector
from fedcohort.simulation import Comparison, LocalWork, Trace, compare, simulate

__version__ = "0.1.0"

__all__ = [
    "Ask",
    "Citation",
    "Claim",
    "Cohort",
    "Comparison",
    "Design",
    "FedcohortError",
    "FedcohortWarning",
    "Federation",
    "LocalWork",
    "Moment",
    "Replies",
    "Scheme",
    "Selector",
    "Signal",
    "Trace",
    "compare",
    "scheme",
    "schemes",
    "simulate",
]
