"""What to write instead, where a task, a model or data is something else."""

from __future__ import annotations

import inspect

from fedcohort.core.errors import BadInput
from fedcohort.learning.data import ClientData
from fedcohort.learning.model import Model
from fedcohort.learning.task import Task
from fedcohort.learning.work import LocalWork

_DIVIDE = "ClientData.divide(x, y, x_test, y_test, clients=[rows of each client], classes=...)"
_MODULE = "torch.nn.modules.module.Module"
_WRAP = "fedcohort.learning.TorchModel(module, loss)"


def check_task(task: object, owner: str) -> None:
    """Refuse what is no task, with the line that makes one of it."""
    if isinstance(task, Task):
        return
    remedy = f"write LearningTask(model, {_DIVIDE}) from fedcohort.learning"
    if is_module(task):
        remedy = f"write LearningTask({_WRAP}, {_DIVIDE})"
    elif inspect.isclass(task) and issubclass(task, Task):
        remedy = f"{task.__name__} is a class, so call it with its data"
    elif isinstance(task, Model):
        remedy = f"write LearningTask(model, {_DIVIDE})"
    elif isinstance(task, ClientData):
        remedy = "write LearningTask(model, data)"
    elif isinstance(task, str):
        remedy = "write fedcohort.Problem(data, partition, model=...).task()"
    elif callable(getattr(task, "task", None)):
        remedy = "call its method task()"
    elif hasattr(task, "x_train"):
        remedy = "write Softmax.from_partition(dataset, partition), or another model's"
    raise BadInput(f"The task of {owner} must be a Task. Got {_kind(task)} instead: {remedy}.")


def check_work(work: object, owner: str) -> None:
    """Refuse what is no local work; None is the default."""
    if work is not None and not isinstance(work, LocalWork):
        raise BadInput(
            f"The work of {owner} must be a LocalWork. Got {_kind(work)} instead: write "
            "LocalWork(epochs=1, batch=10, lr=0.1) from fedcohort.learning."
        )


def check_parts(model: object, data: object) -> None:
    """Refuse what a `LearningTask` cannot be put together from."""
    if not isinstance(model, Model):
        remedy = "derive your class from fedcohort.learning.Model"
        if is_module(model) or (inspect.isclass(model) and is_module(model, of_class=True)):
            remedy = f"write {_WRAP}"
        elif isinstance(model, str):
            remedy = "write fedcohort.Problem(data, partition, model=...).task()"
        elif inspect.isclass(model):
            remedy = f"{model.__name__} is a class, so call it with its settings"
        raise BadInput(
            f"The model of LearningTask must be a Model. Got {_kind(model)} instead: {remedy}."
        )
    if not isinstance(data, ClientData):
        remedy = f"write {_DIVIDE}"
        if hasattr(data, "x_train"):
            remedy = "write ClientData.from_partition(dataset, partition)"
        raise BadInput(
            f"The data of LearningTask must be ClientData. Got {_kind(data)} instead: {remedy}."
        )


def is_module(value: object, of_class: bool = False) -> bool:
    """Whether it is one of torch's modules; torch is not imported for that."""
    kinds = value.__mro__ if of_class and isinstance(value, type) else type(value).__mro__
    return any(f"{kind.__module__}.{kind.__name__}" == _MODULE for kind in kinds)


def _kind(value: object) -> str:
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    return f"the torch module {type(value).__name__}" if is_module(value) else type(value).__name__
