"""What the bounds assume of a training, found for tasks for which it can be: no guesses."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Floats
from fedcohort.theory.convergence import Training
from fedcohort.training import LocalWork, Quadratic, Softmax, Task


def assumptions(task: Task, work: LocalWork, rounds: int, *, eta_g: float = 1.0) -> Training:
    """The constants of `convergence_bound`, each of them proved for the task.

    Quadratic clients, 1/2 ||theta - theta_i*||^2, in dimension d with noise s a coordinate::

        L = 1,  sigma^2 = d s^2,  beta^2 = 2,  kappa^2 = 2 max_i ||theta_i* - theta*||^2,
        gap = 1/2 ||theta_0 - theta*||^2.

    Softmax regression; x~ is a sample with a 1 behind it, for the bias. The Hessian of the
    cross-entropy by the scores is at most 1/2, and a gradient by them has length at most
    sqrt(2)::

        L = max_i 1/2 lambda_max(mean of x~ x~'),   sigma^2 = max_i 2 mean ||x~||^2 / B,
        beta^2 = 1,  kappa^2 = max_i 2 (mean ||x~||)^2,  gap = loss of the first model

    with sigma^2 = 0 for a client whose batch is all it has. They hold for all models, so they are
    far from what a run shows.

    Parameters
    ----------
    task
        `Quadratic` or `Softmax`; nobody knows these constants of a network.
    work
        K steps by number; plain: without momentum, clipping, decay or a proximal term. Batches
        must be fresh (or all data), as passes over shuffled data give no unbiased gradients.
    rounds
        T.

    >>> training = assumptions(Quadratic([[0.0], [2.0]]), LocalWork(steps=3, lr=0.1), rounds=10)
    >>> training.smoothness, training.beta, training.dissimilarity, training.gap
    (1.0, 2.0, 2.0, 0.5)
    """
    plain = LocalWork(steps=work.steps, batch=work.batch, lr=work.lr, batches=work.batches)
    if work.steps is None or work != plain:
        raise BadInput(
            "The bound is about K plain local steps, all of one size: 'work' must be given in "
            "steps, without momentum, decay, mu, clip and schedule."
        )
    if isinstance(task, Quadratic):
        found = _of_quadratic(task)
    elif isinstance(task, Softmax):
        found = _of_softmax(task, work)
    else:
        raise BadInput(
            f"The constants of the bound are known for Quadratic and Softmax; {task.name} is "
            "neither. Give a Training of your own."
        )
    return Training(eta_l=work.lr, steps=work.steps, rounds=rounds, eta_g=eta_g, **found)


def _of_quadratic(task: Quadratic) -> dict[str, Any]:
    apart = ((task.minima - task.optimum) ** 2).sum(axis=1)[task.importance > 0]
    start = task.initial(0) - task.optimum
    return {
        "smoothness": 1.0,
        "noise": task.dimension * task.noise**2,
        "beta": 2.0,
        "dissimilarity": 2.0 * float(apart.max()),
        "gap": 0.5 * float(start @ start),
    }


def _of_softmax(task: Softmax, work: LocalWork) -> dict[str, Any]:
    smooth, noise, apart = 0.0, 0.0, 0.0
    for client in np.flatnonzero(task.sizes > 0).tolist():
        x = _with_bias(task.data.samples(task.data.part(client))[0])
        squares = (x**2).sum(axis=1)
        gram = x @ x.T if len(x) < x.shape[1] else x.T @ x
        smooth = max(smooth, 0.5 * float(np.linalg.eigvalsh(gram)[-1]) / len(x))
        apart = max(apart, 2.0 * float(np.sqrt(squares).mean()) ** 2)
        if work.batch is not None and work.batch < len(x):
            if work.batches != "fresh" and work.steps != 1:
                raise BadInput(
                    "The bound needs unbiased gradients: take batches='fresh', or batch=None."
                )
            noise = max(noise, 2.0 * float(squares.mean()) / work.batch)
    first = task.initial(0)
    return {
        "smoothness": smooth,
        "noise": noise,
        "beta": 1.0,
        "dissimilarity": apart,
        "gap": float(task.evaluate(first[None]).train_loss[0]),
    }


def _with_bias(x: Floats) -> Floats:
    """(k, d + 1) samples in one row each, with a 1 behind."""
    rows = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
    return np.hstack([rows, np.ones((len(rows), 1))])
