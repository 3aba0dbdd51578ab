"""Learning problems to simulate on, in numpy, with local training batched over the cohort."""

from fedcohort.simulation.tasks.base import Evaluation, Task
from fedcohort.simulation.tasks.mlp import MLP
from fedcohort.simulation.tasks.quadratic import Quadratic
from fedcohort.simulation.tasks.softmax import Softmax

__all__ = ["MLP", "Evaluation", "Quadratic", "Softmax", "Task"]
