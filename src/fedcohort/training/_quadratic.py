"""Quadratic clients: the smallest problem on which selection shows, and all is known exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.training._local import LocalWork
from fedcohort.training._task import Evaluation, Task, check_importance
from fedcohort.training.trainers._plain import quadratic_update


class Quadratic(Task):
    r"""Client i has the objective ``F_i(theta) = 1/2 ||theta - theta_i*||**2``.

    Every sample of a client has that loss, so local gradient descent has a closed form.
    With ``c = 1 - lr (1 + decay + mu)``, K steps from ``theta`` end at::

        theta_inf + c**K (theta - theta_inf)
        theta_inf = (theta_i* + mu theta - drift) / (1 + decay + mu)

    Without decay, mu and drift the update is ``-phi (theta - theta_i*)``, with
    ``phi = 1 - (1 - lr)**K``.
    With ``noise`` sigma, each gradient carries ``sigma`` times a standard normal vector.
    Momentum and clipping have no such form: there, steps are made one by one.

    The optimum of the federation is the mean of the minima, weighted by importance.

    Parameters
    ----------
    minima : (n, d) array
        theta_i*, the model that is best for client i.
    sizes : (n,) integers, optional
        Samples per client, 1 each by default; they set the importance and, where the work
        is given in epochs, the number of steps.
    importance : (n,) floats, optional
        p; by size unless given.
    noise : float
        sigma, the standard deviation of each coordinate of a stochastic gradient.

    Examples
    --------
    >>> task = Quadratic([[0.0, 0.0], [4.0, 0.0]], sizes=[3, 1])
    >>> task.optimum
    array([1., 0.])
    >>> rng = np.random.Generator(np.random.Philox(0))
    >>> task.updates(np.zeros(2), np.array([1]), LocalWork(steps=2, lr=0.5), [rng])
    array([[3., 0.]])
    """

    name = "quadratic"

    def __init__(
        self,
        minima: ArrayLike,
        sizes: ArrayLike | None = None,
        importance: ArrayLike | None = None,
        noise: float = 0.0,
    ) -> None:
        self.minima: Floats = np.array(minima, dtype=np.float64)  # (n, d)
        if self.minima.ndim != 2 or 0 in self.minima.shape:
            raise BadParameter("minima", "Quadratic", "an (n, d) array", self.minima.shape)
        if not np.isfinite(self.minima).all():
            raise BadInput("The 'minima' of Quadratic must be finite. Got NaN or infinity instead.")
        n, self.dimension = self.minima.shape
        self.sizes = _check_sizes(sizes, n)
        self.importance = check_importance(importance, self.sizes, "Quadratic")
        if not (np.isfinite(noise) and noise >= 0):
            raise BadParameter("noise", "Quadratic", "a finite number of at least 0", noise)
        self.noise = float(noise)
        self.optimum: Floats = self.importance @ self.minima  # (d,)

    def initial(self, seed: int) -> Floats:
        """Zero, whatever the seed."""
        return np.zeros(self.dimension)

    def updates(
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
        drift: Array | None = None,
    ) -> Floats:
        """Local training, in closed form; see `Task.updates`."""
        theta = self._check_models(theta, 1).astype(np.float64, copy=False)
        clients = self._check_clients(clients)
        self._check_rngs(clients, rngs, data_rate)
        self._check_drift(clients, drift)
        if work.momentum or work.clip is not None:
            return self._stepwise(theta, clients, work, rngs, data_rate, drift)
        curvature = 1 + work.decay + work.mu
        contraction = 1 - work.lr * curvature
        counts = self.participating(clients, rngs, data_rate)
        steps = np.array([work.steps_for(int(count)) for count in counts], dtype=np.int64)  # (k,)
        aims = self.minima[clients] + work.mu * theta  # (k, d)
        limits = (aims if drift is None else aims - drift) / curvature
        with np.errstate(over="ignore", invalid="ignore"):  # a diverged row is the server's case
            phi = 1 - contraction**steps  # (k,)
            moved = phi[:, None] * (limits - theta)
            if self.noise:
                for row, rng in enumerate(rngs):
                    shocks = rng.standard_normal((steps[row], self.dimension))  # (K, d)
                    remaining = contraction ** np.arange(steps[row])[::-1]  # of the shock at step t
                    moved[row] -= work.lr * self.noise * (remaining @ shocks)
        return np.asarray(moved)

    def _stepwise(
        self,
        theta: Floats,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float,
        drift: Array | None,
    ) -> Floats:
        """Local training, step by step, for what has no closed form."""
        pushes = np.zeros(len(clients)) if drift is None else drift
        rows = np.zeros((len(clients), self.dimension))
        with np.errstate(over="ignore", invalid="ignore"):
            for row, client, rng, push in zip(rows, clients, rngs, pushes, strict=True):
                size = int(self.sizes[client])
                row[:] = quadratic_update(
                    theta, self.minima[client], self.noise, size, work, rng, data_rate, push
                )
        return rows

    def losses(self, theta: Array, clients: Ints) -> Floats:
        """``F_i(theta)`` of the clients, (k,); 0 without samples."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        squares = 0.5 * ((theta - self.minima[clients]) ** 2).sum(axis=1)
        return np.where(self.sizes[clients] > 0, squares, 0.0)

    def sample_losses(self, theta: Array, client: int) -> Floats:
        """The same for every sample of a client, (n_i,)."""
        alone = np.array([client])
        return np.repeat(self.losses(theta, alone), self.sizes[alone])

    def batch_losses(
        self, theta: Array, clients: Ints, batch: int, rngs: Sequence[np.random.Generator]
    ) -> Floats:
        """As `losses`: all samples of a client have the same."""
        return self.losses(theta, clients)

    def gradient_sums(
        self,
        theta: Array,
        clients: Ints,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
    ) -> tuple[Floats, Ints]:
        """Sums of gradients and counts; the noise is that of the *mean* over the samples."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        self._check_rngs(clients, rngs, data_rate)
        counts = self.participating(clients, rngs, data_rate)
        means = theta - self.minima[clients]  # (k, d)
        if self.noise:
            means = means + self.noise * np.stack(
                [rng.standard_normal(self.dimension) for rng in rngs]
            )
        return counts[:, None] * means, counts

    def client_losses(self, thetas: Array) -> Floats:
        """``F_i`` of several models for every client, (T, n)."""
        thetas = self._check_models(thetas, 2)
        everyone = np.arange(len(self.sizes))
        return np.stack([self.losses(theta, everyone) for theta in thetas])

    def evaluate(self, thetas: Array) -> Evaluation:
        """Train losses of several models; there is no test set."""
        thetas = self._check_models(thetas, 2).astype(np.float64, copy=False)
        # F(theta) = 1/2 W ||theta - centre||^2 + spread: nothing cancels, whatever the offset.
        p = np.where(self.sizes > 0, self.importance, 0.0)
        weight = p.sum()
        centre = p @ self.minima / weight if weight else self.optimum
        spread = 0.5 * p @ ((self.minima - centre) ** 2).sum(axis=1)
        train = 0.5 * weight * ((thetas - centre) ** 2).sum(axis=1) + spread
        nothing = np.full(len(thetas), np.nan)
        return Evaluation(train_loss=train, test_loss=nothing, accuracy=nothing.copy())


def _check_sizes(sizes: ArrayLike | None, n: int) -> Ints:
    if sizes is None:
        return np.ones(n, dtype=np.int64)
    checked = np.asarray(sizes)
    if checked.shape != (n,) or checked.dtype.kind not in "iu" or (checked < 0).any():
        raise BadParameter("sizes", "Quadratic", f"{n} integers of at least 0", sizes)
    return checked.astype(np.int64)
