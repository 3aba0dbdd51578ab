"""What to write instead, where a task, a model or data is something else, or a call is."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import ParamSpec, TypeVar

from fedcohort._internal.errors import BadInput, brief
from fedcohort.training._client_data import ClientData
from fedcohort.training._local import LocalWork
from fedcohort.training._model import Model
from fedcohort.training._task import Task

P = ParamSpec("P")
R = TypeVar("R")
_DIVIDE = "ClientData.divide(x, y, x_test, y_test, clients=[rows of each client], classes=...)"
_MODULE = "torch.nn.modules.module.Module"
_WRAP = "fedcohort.training.TorchModel(module, loss)"


def check_task(task: object, owner: str) -> None:
    """Refuse what is no task, with the line that makes one of it."""
    if isinstance(task, Task):
        return
    remedy = f"write LearningTask(model, {_DIVIDE}) from fedcohort.training"
    if is_module(task) or is_module(task, of_class=True):
        remedy = f"write LearningTask({_WRAP}, {_DIVIDE})"
    elif type(task).__module__.split(".")[0] == "flwr":
        remedy = (
            "Flower runs its own apps, with a fedcohort.flower.CohortStrategy that chooses; to "
            f"compare schemes here, write LearningTask({_WRAP}, {_DIVIDE})"
        )
    elif any(kind.__module__.startswith("torch.utils.data") for kind in type(task).__mro__):
        remedy = f"take its samples as arrays and write LearningTask({_WRAP}, {_DIVIDE})"
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
            "LocalWork(epochs=1, batch=10, lr=0.1) from fedcohort.training."
        )


def check_model(model: object, owner: str) -> None:
    """Refuse what is no model."""
    if isinstance(model, Model):
        return
    remedy = "derive your class from fedcohort.training.Model"
    if is_module(model) or (inspect.isclass(model) and is_module(model, of_class=True)):
        remedy = f"write {_WRAP}"
    elif isinstance(model, str):
        remedy = "write fedcohort.Problem(data, partition, model=...).task()"
    elif isinstance(model, ClientData):
        remedy = "write LearningTask(model, data)"
    elif inspect.isclass(model):
        remedy = f"{model.__name__} is a class, so call it with its settings"
    raise BadInput(f"The model of {owner} must be a Model. Got {_kind(model)} instead: {remedy}.")


def check_parts(model: object, data: object) -> None:
    """Refuse what a `LearningTask` cannot be put together from."""
    check_model(model, "LearningTask")
    if not isinstance(data, ClientData):
        remedy = f"write {_DIVIDE}"
        if hasattr(data, "x_train"):
            remedy = "write ClientData.from_partition(dataset, partition)"
        elif any(kind.__module__.startswith("torch.utils.data") for kind in type(data).__mro__):
            remedy = f"take its samples as arrays and {remedy}"
        raise BadInput(
            f"The data of LearningTask must be ClientData. Got {_kind(data)} instead: {remedy}."
        )


def says_how(
    form: str, *passed_on: Callable[..., object], sets: tuple[str, ...] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a call that does not fit a function's parameters end in a sentence with its form.

    What the function does not know itself is ``passed_on`` to others, but for what it ``sets``.
    """

    def explained(function: Callable[P, R]) -> Callable[P, R]:
        name, signature = function.__name__, inspect.signature(function)
        known = set(signature.parameters)
        for other in passed_on:
            known |= set(inspect.signature(other).parameters) - set(sets)

        @wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> R:
            what = next((_unknown(each, known) for each in named if each not in known), "")
            try:
                signature.bind(*given, **named)
            except TypeError as error:
                what = what or f"Got {error}"
            if what:
                first = next(iter(given), None)
                if is_module(first) or is_module(first, of_class=True):
                    check_task(first, name)
                raise BadInput(f"Write {form}, all else by name. {what}.")
            return function(*given, **named)

        return call

    return explained


def _unknown(name: str, known: set[str]) -> str:
    """What to write for a setting that there is not."""
    said = f"There is no {brief(name)!r}"
    if name in {field.name for field in fields(LocalWork)}:
        return f"{said}, which is a setting of local work: write work=LocalWork({name}=...)"
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"{said}; the nearest is {near[0]!r}" if near else said


def is_module(value: object, of_class: bool = False) -> bool:
    """Whether it is one of torch's modules; torch is not imported for that."""
    kinds = value.__mro__ if of_class and isinstance(value, type) else type(value).__mro__
    return any(f"{kind.__module__}.{kind.__name__}" == _MODULE for kind in kinds)


def _kind(value: object) -> str:
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    return f"the torch module {type(value).__name__}" if is_module(value) else type(value).__name__
