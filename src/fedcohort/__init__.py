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

if TYPE_CHECKING:
    from fedcohort import adapters, advice, data, report, schemes, testing, theory
    from fedcohort._internal.errors import FedcohortError, FedcohortWarning
    from fedcohort.schemes import scheme
    from fedcohort.selection import (
        Ask,
        Citation,
        Claim,
        Cohort,
        Design,
        Federation,
        Replies,
        RoundContext,
        Scheme,
        Signal,
    )
    from fedcohort.server import aggregator, dropout_rule, optimiser
    from fedcohort.server._selector import Selector
    from fedcohort.simulation import Comparison, Trace, compare, simulate
    from fedcohort.simulation._availability import availability
    from fedcohort.simulation._problem import Problem
    from fedcohort.simulation._trials import Tuning
    from fedcohort.simulation._tuning import tune
    from fedcohort.training import LocalWork
    from fedcohort.training._algorithms import algorithm

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
    "Problem",
    "Replies",
    "RoundContext",
    "Scheme",
    "Selector",
    "Signal",
    "Trace",
    "Tuning",
    "adapters",
    "advice",
    "aggregator",
    "algorithm",
    "availability",
    "compare",
    "data",
    "dropout_rule",
    "optimiser",
    "report",
    "scheme",
    "schemes",
    "simulate",
    "testing",
    "theory",
    "tune",
]

_HOMES = {
    "fedcohort.training._algorithms": "algorithm",
    "fedcohort.selection": (
        "Ask Citation Claim Cohort Design Federation Replies RoundContext Scheme Signal"
    ),
    "fedcohort._internal.errors": "FedcohortError FedcohortWarning",
    "fedcohort.training": "LocalWork",
    "fedcohort.schemes": "scheme",
    "fedcohort.server._selector": "Selector",
    "fedcohort.server": "aggregator dropout_rule optimiser",
    "fedcohort.simulation": "Comparison Trace availability compare simulate",
    "fedcohort.simulation._problem": "Problem",
    "fedcohort.simulation._trials": "Tuning",
    "fedcohort.simulation._tuning": "tune",
}
"""Where each name comes from. It is looked up when it is first used, so that importing fedcohort
is quick; the other names of `__all__` are packages."""

if not TYPE_CHECKING:  # a type checker would take it to mean that any name exists

    def __getattr__(name: str) -> Any:
        home = next((module for module, names in _HOMES.items() if name in names.split()), None)
        if home is not None:
            globals()[name] = getattr(importlib.import_module(home), name)
            return globals()[name]
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
