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

from fedcohort.core.errors import BadInput
from fedcohort.core.fingerprint import Digest
from fedcohort.learning.network import Network, first_line

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class TorchModel(Network):
    """A torch module with a loss, for `LearningTask`.

    Parameters
    ----------
    net
        The module: it is copied, and every run starts from its weights. Or a function without
        arguments that makes one, such as its class: then each seed draws weights of its own.
    loss
        What torch has (``torch.nn.MSELoss()``, ``torch.nn.functional.cross_entropy``; whether
        they take the mean is no matter), or a function of outputs and targets that gives *one
        loss per sample*. Clients minimise its mean.
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
        if y.is_floating_point() and outputs.shape == (*y.shape, 1):
            outputs = outputs[..., 0]
        losses = self._loss(outputs, y)
        if not isinstance(losses, Tensor):
            raise TypeError(f"it must give a tensor, and gives a {type(losses).__name__}")
        return losses.flatten(1).mean(dim=1) if losses.ndim > 1 else losses

    @cached_property
    def _loss(self) -> Loss:
        """The loss of each sample."""
        loss: Any = self.loss
        if isinstance(loss, nn.Module):
            loss = deepcopy(loss).to(self.device)
            if hasattr(loss, "reduction"):
                loss.reduction = "none"
        elif "reduction" in inspect.signature(loss).parameters:
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
