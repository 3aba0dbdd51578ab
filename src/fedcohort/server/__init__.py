"""What the server does with the answers; the same in the simulator and in a deployment."""

from fedcohort.server.estimators import Estimator, Memory, Plain, estimator
from fedcohort.server.optimisers import Adagrad, Adam, Optimiser, Sgd, Yogi, optimiser

__all__ = [
    "Adagrad",
    "Adam",
    "Estimator",
    "Memory",
    "Optimiser",
    "Plain",
    "Sgd",
    "Yogi",
    "estimator",
    "optimiser",
]
