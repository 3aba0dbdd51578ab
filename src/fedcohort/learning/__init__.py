"""What clients learn: tasks, models and local work; training is batched over the cohort."""

import importlib
from typing import TYPE_CHECKING, Any

from fedcohort._internal.errors import MissingExtra
from fedcohort.learning._local import LocalWork
from fedcohort.learning.data import ClientData
from fedcohort.learning.dense import Dense
from fedcohort.learning.learning_task import LearningTask
from fedcohort.learning.model import Model, cut
from fedcohort.learning.models.mlp import MLP
from fedcohort.learning.models.softmax import Softmax
from fedcohort.learning.quadratic import Quadratic
from fedcohort.learning.task import Evaluation, Task
from fedcohort.learning.trainer import Computation, Trainer
from fedcohort.learning.trainers._batched import Batched
from fedcohort.learning.trainers._plain import PlainLoop

if TYPE_CHECKING:
    from fedcohort.learning.models._images import Images
    from fedcohort.learning.models._tokens import Tokens
    from fedcohort.learning.network import Network
    from fedcohort.learning.torch_model import TorchModel
    from fedcohort.learning.trainers._torch import TorchCohort, TorchLoop

__all__ = [
    "MLP",
    "Batched",
    "ClientData",
    "Computation",
    "Dense",
    "Evaluation",
    "Images",
    "LearningTask",
    "LocalWork",
    "Model",
    "Network",
    "PlainLoop",
    "Quadratic",
    "Softmax",
    "Task",
    "Tokens",
    "TorchCohort",
    "TorchLoop",
    "TorchModel",
    "Trainer",
    "cut",
]

_OF_TORCH = {
    "Images": "models._images",
    "Network": "network",
    "Tokens": "models._tokens",
    "TorchCohort": "trainers._torch",
    "TorchLoop": "trainers._torch",
    "TorchModel": "torch_model",
}
"""What needs torch, and where it is: torch takes seconds to import, and need not be installed."""

if not TYPE_CHECKING:  # a type checker would take it to mean that any name exists

    def __getattr__(name: str) -> Any:
        if name not in _OF_TORCH:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        try:
            found = getattr(importlib.import_module(f"{__name__}.{_OF_TORCH[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtra(f"fedcohort.learning.{name}", "torch") from None
        globals()[name] = found
        return found
