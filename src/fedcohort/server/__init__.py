"""What the server does with the answers; the same in the simulator and in a deployment."""

from fedcohort.server.aggregators import Aggregator, Memory, Plain, aggregator
from fedcohort.server.dropouts import (
    AsDrawn,
    Attendance,
    DropOutRule,
    Hajek,
    Redraw,
    Survivors,
    dropout_rule,
)
from fedcohort.server.gate import Fault, Form, Gate
from fedcohort.server.optimisers import Adagrad, Adam, Optimiser, Sgd, Yogi, optimiser

__all__ = [
    "Adagrad",
    "Adam",
    "Aggregator",
    "AsDrawn",
    "Attendance",
    "DropOutRule",
    "Fault",
    "Form",
    "Gate",
    "Hajek",
    "Memory",
    "Optimiser",
    "Plain",
    "Redraw",
    "Sgd",
    "Survivors",
    "Yogi",
    "aggregator",
    "dropout_rule",
    "optimiser",
]
