"""Which clients train in each round of federated learning, and how much each answer counts.

>>> import fedcohort
>>> federation = fedcohort.Federation.from_sizes([500, 300, 200, 100])
>>> selector = fedcohort.Selector(fedcohort.scheme("clustered-size", m=2), federation, seed=0)
>>> cohort = selector.select()
>>> float(cohort.weights.sum())
1.0
"""

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from fedcohort import adapters, data, recipes, report, testing, theory
    from fedcohort.simulation.problem import Problem

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
    "Problem",
    "Replies",
    "Scheme",
    "Selector",
    "Signal",
    "Trace",
    "adapters",
    "compare",
    "data",
    "recipes",
    "report",
    "scheme",
    "schemes",
    "simulate",
    "testing",
    "theory",
]

_LATER = {"Problem": "fedcohort.simulation.problem"}
"""What is looked up when it is first used, so that importing fedcohort stays quick; packages
of `__all__` likewise."""

if not TYPE_CHECKING:  # a type checker would take it to mean that any name exists

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            return getattr(importlib.import_module(_LATER[name]), name)
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
