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
        Step size, decay and proximal term.
    start
        The parameters that the server sent, one tensor each.
    drift
        What is added to every gradient, tensors like the parameters, or None.
    """

    def __init__(self, work: LocalWork, start: Tensors, drift: Tensors | None) -> None:
        self.work, self.start, self.drift = work, start, drift

    @torch.no_grad()
    def step(self, parameters: Tensors, gradients: Tensors) -> None:
        """Change the parameters, in place."""
        work = self.work
        along: Tensors = gradients
        if work.decay:
            along = torch._foreach_add(along, parameters, alpha=work.decay)
        if work.mu:
            away = torch._foreach_sub(parameters, self.start)
            along = torch._foreach_add(along, away, alpha=work.mu)
        if self.drift is not None:
            along = torch._foreach_add(along, self.drift)
        torch._foreach_add_(parameters, along, alpha=-work.lr)
