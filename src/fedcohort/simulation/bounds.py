"""The convergence bound of a scheme beside runs of it, round by round: for a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import checked_seed, stream
from fedcohort._internal.types import Floats
from fedcohort.schemes import as_scheme
from fedcohort.selection._scheme import Scheme
from fedcohort.server._optimizers import Sgd
from fedcohort.server._state import Setup
from fedcohort.simulation._availability import Always
from fedcohort.simulation.assumptions import assumptions
from fedcohort.simulation.engine import Simulation, check_rounds, federation_of
from fedcohort.theory.convergence import ConvergenceBound, Training, convergence_bound
from fedcohort.theory.expected_run import expected_gradients
from fedcohort.theory.pilot import Known
from fedcohort.training import LocalWork, Quadratic, Task


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
        `Quadratic` or `Softmax`, whose constants `fedcohort.simulation.assumptions` knows; any task
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
