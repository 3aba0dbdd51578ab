"""How good the model of a round is, or its models."""

from __future__ import annotations

import numpy as np

from fedcohort._internal.types import Floats, Ints
from fedcohort.training._task import Evaluation, Task


def evaluated(task: Task, models: Floats) -> Evaluation:
    """How good the models (T, k, d) of T rounds are: every client has the best of k for itself.

    The train loss is that of everybody's own model, sum_i p_i min_j F_i(theta_j). Loss and
    accuracy on the test set, which is common to all, are means over the models, each by the
    importance of the clients that have it.

    >>> from fedcohort.training import Quadratic
    >>> task = Quadratic([[0.0], [2.0]])
    >>> evaluated(task, np.array([[[0.0], [2.0]]])).train_loss
    array([0.])
    """
    rounds, k, dimension = models.shape
    found = task.evaluate(models.reshape(rounds * k, dimension))
    if k == 1:
        return found
    losses = task.client_losses(models.reshape(rounds * k, dimension)).reshape(rounds, k, -1)
    best = losses.argmin(axis=1)  # (T, n)
    shares = shares_of(best, k, task.importance)  # (T, k)
    own = found.client_accuracy
    if own is not None:
        own = np.take_along_axis(own.reshape(rounds, k, -1), best[:, None], axis=1)[:, 0]
    return Evaluation(
        losses.min(axis=1) @ task.importance,
        (shares * found.test_loss.reshape(rounds, k)).sum(axis=1),
        (shares * found.accuracy.reshape(rounds, k)).sum(axis=1),
        own,
        best,
    )


def shares_of(best: Ints, k: int, importance: Floats) -> Floats:
    """The importance of the clients that have each of k models, (T, n) -> (T, k)."""
    return np.asarray((best[:, None] == np.arange(k)[:, None]) @ importance)
