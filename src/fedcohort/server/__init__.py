"""What the server does with the answers; the same in the simulator and in a deployment."""

from fedcohort.server._dropouts import (
    AsDrawn,
    Attendance,
    DropOutRule,
    Hajek,
    Redraw,
    Survivors,
    dropout_rule,
)
from fedcohort.server._guards import Guard, guards
from fedcohort.server._optimizers import Adagrad, Adam, Optimiser, Sgd, Yogi, optimiser
from fedcohort.server._stragglers import StragglerRule, straggler_rule
from fedcohort.server.aggregators import aggregator
from fedcohort.server.aggregators.base import Aggregator
from fedcohort.server.aggregators.memory import Memory
from fedcohort.server.aggregators.plain import Plain
from fedcohort.server.gate import Fault, Form, Gate

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
    "Guard",
    "Hajek",
    "Memory",
    "Optimiser",
    "Plain",
    "Redraw",
    "Sgd",
    "StragglerRule",
    "Survivors",
    "Yogi",
    "aggregator",
    "dropout_rule",
    "guards",
    "optimiser",
    "straggler_rule",
]
