"""Gamma and the selection skew of a scheme, estimated on a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats
from fedcohort.selection._scheme import Scheme
from fedcohort.simulation.clients import SimulatedClients
from fedcohort.simulation.engine import federation_of
from fedcohort.theory.skew import Skew, objective_gap, selection_skew
from fedcohort.training import Task
from fedcohort.training._local import LocalWork

ALONE = LocalWork(steps=200, batch=None, lr=0.1)
"""How a client trains alone to find its own optimum."""


@dataclass(frozen=True)
class SkewOnTask:
    """What `fedcohort.theory.skew.skew_bound` needs to know of a task and a scheme."""

    gap: float  # Gamma
    skew: Skew
    local_optima: Floats  # (n,) the lowest loss found for each client


def skew_on(
    task: Task,
    scheme: Scheme[Any],
    models: Array,
    *,
    alone: LocalWork = ALONE,
    draws: int = 1_000,
    seed: int = 0,
) -> SkewOnTask:
    """Gamma and rho of a scheme on a task.

    Parameters
    ----------
    task, scheme
        Where, and who selects.
    models
        (T, d) models to look at, such as those of a run; the best of them stands for w*.
    alone
        The local optimum of a client is the lowest loss of these models and of what the client
        reaches from w* by this work: an upper bound, exact for a client that converges.
    draws, seed
        As for `selection_skew`.

    >>> from fedcohort import scheme
    >>> from fedcohort.training import Quadratic
    >>> task = Quadratic([[0.0], [2.0]])
    >>> found = skew_on(task, scheme("pow-d", m=1, d=2), np.array([[0.0], [1.0]]))
    >>> round(found.gap, 6), found.skew.table.round(3).tolist()
    (0.5, [[2.0, 1.0], [1.0, 1.0]])
    """
    thetas = np.asarray(models, dtype=np.float64)
    if thetas.ndim != 2 or len(thetas) == 0:
        raise BadInput(f"The skew needs models (T, d); got an array of shape {thetas.shape}.")
    federation, everyone = federation_of(task), np.arange(len(task.sizes))
    losses = task.client_losses(thetas)  # (T, n)
    order = np.argsort(-(losses @ task.importance), kind="stable")  # the best comes last
    losses, best = losses[order], thetas[order[-1]]
    rngs = [stream(seed, "alone", client=int(i)) for i in everyone]
    reached = best + task.updates(best, everyone, alone, rngs)
    own = np.array([task.losses(theta, np.array([i]))[0] for i, theta in enumerate(reached)])
    local = np.fmin(losses.min(axis=0), own)  # a client that diverged keeps what it had
    clients = SimulatedClients(task, alone, seed, 0, best)
    skew = selection_skew(
        scheme, federation, losses, local, answer=clients.answer, draws=draws, seed=seed
    )
    return SkewOnTask(objective_gap(federation.importance, losses[-1], local), skew, local)
