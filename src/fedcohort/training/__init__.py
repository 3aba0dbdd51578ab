"""Tasks, models, local training and local algorithms."""

import importlib
from typing import TYPE_CHECKING, Any

from fedcohort._internal.errors import MissingExtra
from fedcohort.training._algorithms import (
    IFCA,
    Algorithm,
    FedDyn,
    FedNova,
    FedProx,
    LocalRule,
    LocalSgd,
    Payload,
    Scaffold,
    algorithm,
)
from fedcohort.training._client_data import ClientData
from fedcohort.training._learning_task import LearningTask
from fedcohort.training._local import LocalWork
from fedcohort.training._model import Computation, Dense, Model, Trainer, cut
from fedcohort.training._models_dense import MLP, Softmax
from fedcohort.training._quadratic import Quadratic
from fedcohort.training._task import Evaluation, Task
from fedcohort.training.trainers._batched import Batched
from fedcohort.training.trainers._plain import PlainLoop

if TYPE_CHECKING:
    from fedcohort.training._models_torch import Images, Tokens
    from fedcohort.training._torch_model import Network, TorchModel
    from fedcohort.training.trainers._torch import TorchCohort, TorchLoop

__all__ = [
    "IFCA",
    "MLP",
    "Algorithm",
    "Batched",
    "ClientData",
    "Computation",
    "Dense",
    "Evaluation",
    "FedDyn",
    "FedNova",
    "FedProx",
    "Images",
    "LearningTask",
    "LocalRule",
    "LocalSgd",
    "LocalWork",
    "Model",
    "Network",
    "Payload",
    "PlainLoop",
    "Quadratic",
    "Scaffold",
    "Softmax",
    "Task",
    "Tokens",
    "TorchCohort",
    "TorchLoop",
    "TorchModel",
    "Trainer",
    "algorithm",
    "cut",
]

_OF_TORCH = {
    "Images": "_models_torch",
    "Network": "_torch_model",
    "Tokens": "_models_torch",
    "TorchCohort": "trainers._torch",
    "TorchLoop": "trainers._torch",
    "TorchModel": "_torch_model",
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
            raise MissingExtra(f"fedcohort.training.{name}", "torch") from None
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
