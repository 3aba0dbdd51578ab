"""What the server does with the answers; the same in the simulator and in a deployment."""

from fedcohort.server._aggregators import Aggregator, Krum, Median, Plain, TrimmedMean, aggregator
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
from fedcohort.server._ledger import Ledger
from fedcohort.server._memory import Memory
from fedcohort.server._noise import Gaussian
from fedcohort.server._optimizers import Adagrad, Adam, Optimiser, Sgd, Yogi, optimiser
from fedcohort.server._reply_validation import Fault, Form, Gate
from fedcohort.server._selector import Selector
from fedcohort.server._stragglers import StragglerRule, straggler_rule
from fedcohort.server._trace import Trace

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
    "Gaussian",
    "Guard",
    "Hajek",
    "Krum",
    "Ledger",
    "Median",
    "Memory",
    "Optimiser",
    "Plain",
    "Redraw",
    "Selector",
    "Sgd",
    "StragglerRule",
    "Survivors",
    "Trace",
    "TrimmedMean",
    "Yogi",
    "aggregator",
    "dropout_rule",
    "guards",
    "optimiser",
    "straggler_rule",
]
