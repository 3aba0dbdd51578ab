"""One step of local SGD on tensors, as `LocalWork` says."""

from __future__ import annotations

import torch
from torch import Tensor

from fedcohort.learning.work import LocalWork

Tensors = list[Tensor] | tuple[Tensor, ...]


class Descent:
    """Steps from where a client, or a group of clients side by side, starts.

    Parameters
    ----------
    work
        Step size and all else that `LocalWork` adds to a gradient.
    start
        The parameters that the server sent, one tensor each.
    drift
        What is added to every gradient, tensors like the parameters, or None.
    together
        Whether parameters have a first axis for clients; those at work are the first of them.
    """

    def __init__(
        self, work: LocalWork, start: Tensors, drift: Tensors | None, together: bool = False
    ) -> None:
        self.work, self.start, self.drift, self.together = work, start, drift, together
        self.velocity: Tensors | None = None

    @torch.no_grad()
    def step(self, parameters: Tensors, gradients: Tensors) -> None:
        """Change the parameters, in place."""
        work, along = self.work, gradients
        if work.clip is not None:
            along = self._clipped(along, work.clip)
        if work.decay:
            along = torch._foreach_add(along, parameters, alpha=work.decay)
        if work.mu:
            away = torch._foreach_sub(parameters, self.start)
            along = torch._foreach_add(along, away, alpha=work.mu)
        if self.drift is not None:
            along = torch._foreach_add(along, self._at_work(self.drift, parameters))
        if work.momentum:
            if self.velocity is None:
                self.velocity = [torch.zeros_like(each) for each in parameters]
            velocity = self._at_work(self.velocity, parameters)
            torch._foreach_mul_(velocity, work.momentum)
            torch._foreach_add_(velocity, along)
            along = velocity
        torch._foreach_add_(parameters, along, alpha=-work.lr)

    def _at_work(self, tensors: Tensors, parameters: Tensors) -> Tensors:
        return [each[: len(parameters[0])] for each in tensors] if self.together else tensors

    def _clipped(self, gradients: Tensors, most: float) -> Tensors:
        """Each client's gradient, all tensors of it together, at most so long."""
        first = int(self.together)
        squares = torch.stack([each.flatten(first).square().sum(-1) for each in gradients]).sum(0)
        factors = (most / squares.sqrt()).clamp(max=1)  # (k,), or a number
        shapes = [(-1, *(1,) * (each.ndim - 1)) if self.together else () for each in gradients]
        return [each * factors.view(shape) for each, shape in zip(gradients, shapes, strict=True)]
