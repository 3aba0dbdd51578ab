"""Theorems beside simulated runs: bounds with their assumptions, and selection skew of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import checked_seed, stream
from fedcohort._internal.types import Array, Floats
from fedcohort.schemes import as_scheme
from fedcohort.selection._scheme import Scheme
from fedcohort.server._optimizers import Sgd
from fedcohort.server._state import Setup
from fedcohort.simulation._availability import Always
from fedcohort.simulation._clients import SimulatedClients
from fedcohort.simulation._engine import Simulation, check_rounds, federation_of
from fedcohort.theory._convergence import (
    ConvergenceBound,
    Training,
    convergence_bound,
    expected_gradients,
)
from fedcohort.theory._pilot import Known
from fedcohort.theory._skew import Skew, objective_gap, selection_skew
from fedcohort.training import LocalWork, Quadratic, Softmax, Task

# What the bounds assume of a training, found for tasks for which it can be: no guesses.


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


# The convergence bound of a scheme beside runs of it, round by round: for a picture.


@dataclass(frozen=True, eq=False)
class BoundBesideRuns:
    """(1/t) sum_{s<t} ||grad L(theta^s)||^2 after t = 1, ..., T rounds.

    ``bound`` (T,) is the theorem's for a training of t rounds, infinite where a condition fails
    (see ``details``). ``measured`` (seeds, T) is that of runs, ``expected`` (T,) the exact mean of
    all runs, for quadratic clients; None otherwise.
    """

    scheme: str
    bound: Floats
    measured: Floats
    expected: Floats | None
    training: Training
    details: ConvergenceBound

    @property
    def holds(self) -> bool:
        """Whether the bound is at least the mean of the runs, and the exact mean, everywhere."""
        fine = bool(np.all(self.measured.mean(axis=0) <= self.bound))
        return fine and (self.expected is None or bool(np.all(self.expected <= self.bound)))

    def columns(self) -> dict[str, Floats]:
        """One value for each t by name, for a table or a picture."""
        mean = self.measured.mean(axis=0)
        out = {"rounds": np.arange(1.0, len(mean) + 1), "bound": self.bound, "measured": mean}
        return out if self.expected is None else {**out, "expected": self.expected}


def bound_beside_runs(
    task: Task,
    scheme: Scheme[Any] | str,
    work: LocalWork,
    rounds: int,
    *,
    seeds: Sequence[int] = (0,),
    eta_g: float = 1.0,
    training: Training | None = None,
) -> BoundBesideRuns:
    """Theorem 2 of "On the Impact of Client Sampling" beside what happens.

    Parameters
    ----------
    task
        `Quadratic` or `Softmax`, whose constants `assumptions` knows; any task
        with gradients if ``training`` is given.
    scheme
        One whose law is the same in all rounds, and unbiased. Where ties are shuffled once
        (`clustered-size`), each run has a law of its own; the curves are those of one of them.
    work
        Plain local steps; `fedcohort.theory.largest_local_step` says how large they may be.
    rounds
        T.
    seeds
        Of the runs.
    eta_g
        Step size of the server.
    training
        Constants of your own.

    >>> task = Quadratic([[-1.0], [1.0]])
    >>> found = bound_beside_runs(task, "md:m=1", LocalWork(steps=1, lr=0.01, batch=None), 50)
    >>> found.holds, found.details.valid
    (True, True)
    """
    chosen = as_scheme(scheme)
    check_rounds("rounds", rounds)
    federation = federation_of(task)
    design = chosen.law(federation)
    if design is None and not (chosen.asks or chosen.listens):
        design = Known(federation).law(chosen, federation)
    if design is None:
        raise BadInput(
            f"The bound needs the law of a round, and that of {chosen.name} depends on what "
            "clients answer."
        )
    found = training or assumptions(task, work, rounds, eta_g=eta_g)
    found = replace(found, rounds=rounds)
    details = convergence_bound(design, found, importance=federation.importance)
    times = np.arange(1, rounds + 1)
    later = sum(details.terms) - details.terms.start
    bound = details.terms.start * rounds / times + later
    if not details.valid:
        bound = np.full(rounds, np.inf)
    expected = None
    if isinstance(task, Quadratic):
        curve = expected_gradients(design, task.minima, task.initial(0), found)
        expected = np.cumsum(curve) / times
    measured = [_run(task, chosen, work, rounds, seed, eta_g) / times for seed in seeds]
    return BoundBesideRuns(str(chosen), bound, np.array(measured), expected, found, details)


def _run(
    task: Task, scheme: Scheme[Any], work: LocalWork, rounds: int, seed: int, eta_g: float
) -> Floats:
    """(T,) sums of ||grad L||^2 of the models before each round."""
    setup = Setup(scheme, checked_seed(seed, "bound_beside_runs"), Sgd(eta_g=eta_g))
    run, squares = Simulation(task, setup, work, Always(), None), np.empty(rounds)
    for round in range(rounds):
        gradient = full_gradient(task, run.state.theta)
        squares[round] = float(gradient @ gradient)
        run.play()
    return np.cumsum(squares)


def full_gradient(task: Task, theta: Floats) -> Floats:
    """(d,) sum_i p_i grad L_i, over all samples of all clients.

    >>> full_gradient(Quadratic([[-1.0], [3.0]]), np.zeros(1))
    array([-1.])
    """
    clients = np.flatnonzero(task.sizes > 0)
    rngs = [stream(0, "full gradient", client=int(i)) for i in clients]  # all data: no chance in it
    sums, counts = task.gradient_sums(theta, clients, rngs)
    means = sums.astype(np.float64) / counts[:, None]
    return np.asarray(task.importance[clients] @ means)


ALONE = LocalWork(steps=200, batch=None, lr=0.1)
"""How a client trains alone to find its own optimum."""


@dataclass(frozen=True)
class SkewOnTask:
    """What `fedcohort.theory.skew_bound` needs to know of a task and a scheme."""

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
