"""What the server does with the answers; the same in the simulator and in a deployment."""

from fedcohort.server.dropouts import (
    Attendance,
    DropOutRule,
    Hajek,
    Nothing,
    Redraw,
    Survivors,
    dropout_rule,
)
from fedcohort.server.estimators import Estimator, Memory, Plain, estimator
from fedcohort.server.gate import Fault, Form, Gate
from fedcohort.server.optimisers import Adagrad, Adam, Optimiser, Sgd, Yogi, optimiser

__all__ = [
    "Adagrad",
    "Adam",
    "Attendance",
    "DropOutRule",
    "Estimator",
    "Fault",
    "Form",
    "Gate",
    "Hajek",
    "Memory",
    "Nothing",
    "Optimiser",
    "Plain",
    "Redraw",
    "Sgd",
    "Survivors",
    "Yogi",
    "dropout_rule",
    "estimator",
    "optimiser",
]
