"""Any torch module as a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort._internal.errors import BadInput
from fedcohort._internal.fingerprint import Digest
from fedcohort._internal.types import Ints
from fedcohort.learning.network import Network
from fedcohort.learning.tryout import first_line

Loss = Callable[[Tensor, Tensor], Tensor]
_SUMS = ("sum", "batchmean")


@dataclass(frozen=True, eq=False)
class TorchModel(Network):
    """A torch module with a loss, for `LearningTask`.

    Parameters
    ----------
    net
        The module: it is copied, and every run starts from its weights. Or a function without
        arguments that makes one, such as its class: then each seed draws weights of its own.
    loss
        What torch has (``torch.nn.MSELoss()``, ``torch.nn.functional.cross_entropy``), or a
        function of outputs and targets that gives *one loss per sample*. Clients minimise the
        mean over samples, whatever torch's is set to; one that sums does so over one sample.
    name
        What a report calls it.
    device, threads
        See `fedcohort.learning.network.Network`.

    Examples
    --------
    >>> import numpy as np
    >>> from fedcohort.learning import ClientData, LearningTask
    >>> x, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    >>> data = ClientData.divide(x, y, x, y, clients=[[0, 1], [2, 3]], classes=2)
    >>> task = LearningTask(TorchModel(nn.Linear(4, 2)), data)
    >>> dict(task.layers)
    {'weight': (2, 4), 'bias': (2,)}
    """

    net: nn.Module | Callable[[], nn.Module]
    loss: Loss = functional.cross_entropy
    name: str = "torch"

    def __post_init__(self) -> None:
        super().__post_init__()
        loss: object = self.loss
        if inspect.isclass(loss) or not callable(loss):
            got = type(loss).__name__
            if inspect.isclass(loss):
                got = f"the class {loss.__name__}: call it, {loss.__name__}(),"
            raise BadInput(
                "The 'loss' of TorchModel must be a function of outputs and targets, as "
                f"torch.nn.functional.cross_entropy is. Got {got} instead."
            )
        if isinstance(loss, nn.Module) and any(each.requires_grad for each in loss.parameters()):
            raise BadInput(
                "The 'loss' of TorchModel must have no parameters to train: nobody would send "
                f"them. Got {type(loss).__name__}, which has: move them to the module."
            )
        made = self.module()
        if any(nn.parameter.is_lazy(each) for each in made.parameters()):
            raise BadInput(
                "The 'net' of TorchModel must know its shapes. Got lazy layers: run the module on "
                "a sample once before."
            )
        self.dtype  # noqa: B018  # it says which parameters cannot be trained

    def module(self) -> nn.Module:
        """A copy of the module, or a new one."""
        if isinstance(self.net, nn.Module):
            return deepcopy(self.net)
        make: Any = self.net
        try:
            made = make() if callable(make) else make
        except TypeError as error:
            raise BadInput(
                "The 'net' of TorchModel must be a module, or a function without arguments that "
                f"makes one. Called, it says: {first_line(error)}; write lambda: Net(...), with "
                "your arguments."
            ) from error
        if not isinstance(made, nn.Module):
            raise BadInput(
                "The 'net' of TorchModel must be a torch.nn.Module, or a function that makes one. "
                f"Got {type(made).__name__} instead."
            )
        return made

    def loss_of(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The mean over all of a sample but its first axis, as torch's losses have it."""
        if outputs.shape == (*y.shape, 1) and (self._reduces or y.is_floating_point()):
            outputs = outputs[..., 0]
        if self._reduces and outputs.shape == y.shape and not self._takes_integers:
            y = y.to(outputs.dtype)  # torch's losses of numbers take no integers
        losses = self._loss(outputs, y)
        if not isinstance(losses, Tensor):
            raise TypeError(f"it must give a tensor, and gives a {type(losses).__name__}")
        if losses.ndim < 2:
            return losses
        each = losses.flatten(1)
        return each.sum(dim=1) if self._reduces in _SUMS else each.mean(dim=1)

    def classes_of(self, scores: Tensor) -> Ints:
        """As every network does; one score alone may be a probability."""
        return super().classes_of(scores - 0.5 if self._probability else scores)

    @cached_property
    def _reduces(self) -> str:
        """How the loss makes one number of many, if it is one of torch's; else nothing."""
        loss: Any = self.loss
        if isinstance(loss, nn.Module):
            return str(getattr(loss, "reduction", ""))
        try:
            given = inspect.signature(loss).parameters.get("reduction")
        except ValueError:  # a function without Python
            given = None
        return "" if given is None else str(given.default)

    @property
    def _takes_integers(self) -> bool:
        """Whether its targets are numbers of classes, also where there are several of them."""
        return _is(self.loss, nn.MultiLabelMarginLoss, functional.multilabel_margin_loss)

    @property
    def _probability(self) -> bool:
        """Whether one score alone is a probability."""
        return _is(self.loss, nn.BCELoss, functional.binary_cross_entropy)

    @cached_property
    def _loss(self) -> Loss:
        """The loss of each sample."""
        loss: Any = self.loss
        if isinstance(loss, nn.Module):
            kind = next(iter(self._weights.parameters.values())).dtype
            loss = deepcopy(loss).to(self.device, kind)
            if self._reduces:
                loss.reduction = "none"
        elif self._reduces:
            loss = partial(loss, reduction="none")
        return cast("Loss", loss)

    def fingerprint(self) -> str:
        """A digest of architecture, weights, loss and settings."""
        digest = Digest(f"the model {self.name!r}")
        digest.add("class", type(self))
        digest.add("settings", (self.name, self.device, self.threads))
        add_module(digest, "net", self.net)
        add_module(digest, "loss", self.loss)
        return digest.hex()


def add_module(digest: Digest, name: str, module: object) -> None:
    """Read a module to its last part: classes, settings, weights; or a function."""
    if not isinstance(module, nn.Module):
        digest.add(name, module)
        return
    for path, part in module.named_modules():
        where = f"{name}.{path}" if path else name
        digest.add(f"{where} class", type(part))
        held = {key: value for key, value in vars(part).items() if key not in _KEPT}
        digest.add(where, _plain(held))
        digest.add(f"{where} own", _plain({**part._parameters, **part._buffers}))


def _is(loss: object, kind: type[nn.Module], function: Callable[..., Tensor]) -> bool:
    """Whether it is one of torch's losses, as a module or as a function."""
    if isinstance(loss, partial):
        loss = loss.func
    return isinstance(loss, kind) or loss is function


_KEPT = {"_parameters", "_buffers", "_modules", "training"}


def _plain(value: Any) -> Any:
    """Tensors as arrays, and torch's own kinds of values by their names."""
    if isinstance(value, Tensor):
        told = value.detach().cpu()
        return (bool(value.requires_grad), str(told.dtype), told.numpy())
    if isinstance(value, torch.dtype | torch.device | torch.layout):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
