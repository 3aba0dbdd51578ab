"""What a chosen client does in a round: how many steps of SGD, on how much data each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

from fedcohort.core.errors import BadParameter

_OWNER = "LocalWork"


@dataclass(frozen=True)
class LocalWork:
    """Plain local SGD, the inner loop of FedAvg and FedProx.

    A step on a mini-batch, of which g is the gradient of the mean loss, is::

        theta <- theta - lr * (g + decay * theta + mu * (theta - theta_0) + drift)

    where ``theta_0`` is the model that the server sent. The drift is zero, unless a local
    algorithm gives each client a vector of its own (see `fedcohort.learning.Task.updates`).

    **Mini-batches** are those of torch's ``DataLoader(shuffle=True)``: each pass over the
    data is a fresh random order, cut in batches of ``batch`` samples, of which the last may
    be shorter; passes follow one another for as long as there are steps to make.
    ``epochs=E`` is thus ``E * ceil(n_i / batch)`` steps, and ``steps=N`` is the first N
    batches of an endless run of passes.

    The defaults are 50 steps on 50 samples with step size 0.01; the command line, which is
    made for small data, has others (20, 10 and 0.1).

    Parameters
    ----------
    steps : int, optional
        The number of steps, the same for every client. Exactly one of ``steps`` and
        ``epochs`` is given; ``LocalWork(epochs=1)`` alone replaces the default of 50 steps.
    epochs : int, optional
        The number of passes over the client's data.
    batch : int, optional
        The samples per step; None for all of the client's data.
    lr : float
        The step size.
    decay : float
        Weight decay, an L2 penalty ``decay / 2 * ||theta||**2`` on weights and biases alike.
    mu : float
        The proximal term ``mu / 2 * ||theta - theta_0||**2`` of FedProx.

    Examples
    --------
    >>> LocalWork(epochs=2, batch=50).steps_for(120)
    6
    >>> LocalWork(steps=7).steps_for(120)
    7
    >>> LocalWork(lr=-1)
    Traceback (most recent call last):
    ...
    fedcohort.core.errors.BadParameter: The 'lr' parameter of LocalWork must be a finite \
number above 0. Got -1 instead.

    References
    ----------
    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized
    Data", AISTATS 2017, Algorithm 1; Li et al., "Federated Optimization in Heterogeneous
    Networks", MLSys 2020, equation 2 (the proximal term).
    """

    steps: int | None = None
    epochs: int | None = None
    batch: int | None = 50
    lr: float = 0.01
    decay: float = 0.0
    mu: float = 0.0

    def __post_init__(self) -> None:
        if self.steps is None and self.epochs is None:
            object.__setattr__(self, "steps", 50)
        if self.steps is not None and self.epochs is not None:
            raise BadParameter(
                "epochs", _OWNER, "None where 'steps' is given", self.epochs, "Give one of them."
            )
        for name in ("steps", "epochs", "batch"):
            value = getattr(self, name)
            if value is not None:
                _check_count(name, value)
        _check_real("lr", self.lr, positive=True)
        _check_real("decay", self.decay, positive=False)
        _check_real("mu", self.mu, positive=False)

    def steps_for(self, size: int) -> int:
        """The steps that a client with ``size`` samples makes; none without samples."""
        if size == 0:
            return 0
        if self.steps is not None:
            return self.steps
        if self.epochs is None:  # cannot be: one of the two is always set
            raise BadParameter("epochs", _OWNER, "given where 'steps' is None", None)
        return self.epochs * math.ceil(size / self.batch_for(size))

    def batch_for(self, size: int) -> int:
        """The samples in a full batch of a client with ``size`` samples."""
        return size if self.batch is None else min(self.batch, size)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise BadParameter(name, _OWNER, "an integer of at least 1", value)


def _check_real(name: str, value: object, positive: bool) -> None:
    must = f"a finite number {'above' if positive else 'of at least'} 0"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadParameter(name, _OWNER, must, value)
    number = float(value)
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        raise BadParameter(name, _OWNER, must, value)
