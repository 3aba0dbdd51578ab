"""What clients learn: tasks, models and local work; training is batched over the cohort."""

from fedcohort.learning.models.mlp import MLP
from fedcohort.learning.models.softmax import Softmax
from fedcohort.learning.quadratic import Quadratic
from fedcohort.learning.task import Evaluation, Task
from fedcohort.learning.work import LocalWork

__all__ = ["MLP", "Evaluation", "LocalWork", "Quadratic", "Softmax", "Task"]
