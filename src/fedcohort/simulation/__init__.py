"""A fast simulator: tasks, local work, availability, traces, comparisons."""

from fedcohort.server._trace import Trace
from fedcohort.simulation._availability import (
    Always,
    Availability,
    Cyclic,
    Devices,
    Random,
    availability,
)
from fedcohort.simulation._devices import DeviceModel, devices
from fedcohort.simulation.arms import Arm
from fedcohort.simulation.centralised import Centralised
from fedcohort.simulation.comparison import Comparison, compare
from fedcohort.simulation.engine import simulate
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
    "Evaluation",
    "LocalWork",
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
