"""What clients learn: tasks, models and local work; training is batched over the cohort."""

from fedcohort.learning.data import ClientData
from fedcohort.learning.dense import Dense
from fedcohort.learning.learning_task import LearningTask
from fedcohort.learning.model import Model, cut
from fedcohort.learning.models.mlp import MLP
from fedcohort.learning.models.softmax import Softmax
from fedcohort.learning.quadratic import Quadratic
from fedcohort.learning.task import Evaluation, Task
from fedcohort.learning.trainer import Computation, Trainer
from fedcohort.learning.trainers import Batched, PlainLoop
from fedcohort.learning.work import LocalWork

__all__ = [
    "MLP",
    "Batched",
    "ClientData",
    "Computation",
    "Dense",
    "Evaluation",
    "LearningTask",
    "LocalWork",
    "Model",
    "PlainLoop",
    "Quadratic",
    "Softmax",
    "Task",
    "Trainer",
    "cut",
]
