"""A fast simulator: tasks, local work, availability, traces, comparisons."""

from fedcohort.server._trace import Trace
from fedcohort.simulation._arms import Arm
from fedcohort.simulation._availability import (
    Always,
    Availability,
    Cyclic,
    Devices,
    Random,
    availability,
)
from fedcohort.simulation._centralized import Centralised
from fedcohort.simulation._comparison import Comparison, compare
from fedcohort.simulation._devices import DeviceModel, devices
from fedcohort.simulation._engine import simulate
from fedcohort.simulation._environment import DropOuts
from fedcohort.simulation._problem import Problem
from fedcohort.training import MLP, Evaluation, LocalWork, Quadratic, Softmax, Task

__all__ = [
    "MLP",
    "Always",
    "Arm",
    "Availability",
    "Centralised",
    "Comparison",
    "Cyclic",
    "DeviceModel",
    "Devices",
    "DropOuts",
    "Evaluation",
    "LocalWork",
    "Problem",
    "Quadratic",
    "Random",
    "Softmax",
    "Task",
    "Trace",
    "availability",
    "compare",
    "devices",
    "simulate",
]
