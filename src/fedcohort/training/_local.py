"""Local training: steps, batches and step sizes of SGD on a client, and their schedules."""

from __future__ import annotations

import math
import numbers
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import Checked, Real, Whole
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Array, Ints

# What schedules of the step size share.


class Schedule(Checked, ABC):
    """How the step size of clients depends on the round; the same for all steps of a round."""

    name: ClassVar[str]

    @abstractmethod
    def rate(self, lr: float, round: int) -> float:
        """The step size of a round (the first is 0), where ``lr`` is that of the first."""


# Schedules: how the step size of clients changes from round to round.
#
# Other packages add theirs through the entry point group ``fedcohort.schedules``.


SCHEDULES: Kind[Schedule] = Kind("schedule", (__name__,), Schedule, default="constant")


def schedule(which: Schedule | str | None = None, **parameters: Any) -> Schedule:
    """The schedule of that name; None is constant, and a schedule is itself.

    >>> schedule("step:every=100").spec
    'step:every=100,factor=0.5'
    """
    return SCHEDULES.build(which, **parameters)


_OWNER = "LocalWork"
BATCHES = ("passes", "fresh")
CONSTANT = "constant"


@dataclass(frozen=True)
class LocalWork:
    """Local SGD, the inner loop of FedAvg and FedProx.

    A step on a mini-batch, of which g is the gradient of the mean loss, is::

        v <- momentum * v + g + decay * theta + mu * (theta - theta_0) + drift
        theta <- theta - lr * v

    where ``theta_0`` is the model that the server sent, and v is zero at the begin of a round.
    The drift is zero, unless a local algorithm gives each client a vector of its own (see
    `fedcohort.training.Task.updates`). With ``clip``, g is first shortened to that length.

    **Mini-batches** are, with ``batches="passes"``, those of torch's
    ``DataLoader(shuffle=True)``: each pass over the data is a fresh random order, cut in batches
    of ``batch`` samples, of which the last may be shorter; passes follow one another for as long
    as there are steps to make. ``epochs=E`` is thus ``E * ceil(n_i / batch)`` steps, and
    ``steps=N`` is the first N batches of an endless run of passes. With ``batches="fresh"`` every
    step draws ``min(batch, n_i)`` samples anew, whatever was drawn before: an unbiased gradient
    given the model, as proofs assume and Fraboni et al. run it. The two differ: where ``batch``
    does not divide n_i, the last batch of a pass is short and its gradient loud.

    The defaults are 50 steps on 50 samples with step size 0.01; the command line, which is
    made for small data, has others (20, 10 and 0.1).

    Parameters
    ----------
    steps : int, optional
        The number of steps, the same for every client. Exactly one of ``steps`` and
        ``epochs`` is given; ``LocalWork(epochs=1)`` alone replaces the default of 50 steps.
    epochs : int, optional
        The number of passes over the client's data. Clients of unequal sizes then make unequal
        numbers of steps, which changes the minimized objective; see docs/algorithms.md.
    batch : int, optional
        The samples per step; None for all of the client's data.
    lr : float
        The step size.
    decay : float
        Weight decay, an L2 penalty ``decay / 2 * ||theta||**2`` on weights and biases alike.
    mu : float
        The proximal term ``mu / 2 * ||theta - theta_0||**2`` of FedProx.
    batches : {"passes", "fresh"}
        How mini-batches are drawn, as above.
    momentum : float
        Of local steps, in [0, 1); the server's own is a matter of its optimiser.
    clip : float, optional
        The longest gradient of a mini-batch; decay, proximal term and drift come on top.
    schedule : str
        How the step size changes from round to round, a schedule such as
        ``"constant"``, ``"inverse:gamma=10"``, ``"step:every=150,factor=0.5"``,
        ``"exponential:factor=0.99"``. ``lr`` is that of the first round.

    Examples
    --------
    >>> LocalWork(epochs=2, batch=50).steps_for(120)
    6
    >>> LocalWork(steps=7).steps_for(120)
    7
    >>> LocalWork(lr=0.4, schedule="step:every=150").at(150).lr
    0.2
    >>> LocalWork(lr=-1)
    Traceback (most recent call last):
    ...
    fedcohort._internal.errors.BadParameter: The 'lr' parameter of LocalWork must be a finite \
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
    batches: str = "passes"
    momentum: float = 0.0
    clip: float | None = None
    schedule: str = "constant"

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
        _check_real("momentum", self.momentum, positive=False)
        if self.momentum >= 1:
            raise BadParameter("momentum", _OWNER, "a number in [0, 1)", self.momentum)
        if self.clip is not None:
            _check_real("clip", self.clip, positive=True)
        if self.batches not in BATCHES:
            raise BadParameter("batches", _OWNER, f"one of {BATCHES}", self.batches)
        object.__setattr__(self, "schedule", schedule(self.schedule).spec)

    def at(self, round: int) -> LocalWork:
        """The work of a round (the first is 0): the step size is what the schedule says."""
        if self.schedule == CONSTANT:
            return self
        rate = schedule(self.schedule).rate(self.lr, round)
        return replace(self, lr=max(rate, sys.float_info.min), schedule=CONSTANT)

    def steps_for(self, size: int) -> int:
        """The steps that a client with ``size`` samples makes; none without samples."""
        if size == 0:
            return 0
        if self.steps is not None:
            return self.steps
        if self.epochs is None:  # cannot be: one of the two is always set
            raise BadParameter("epochs", _OWNER, "given where 'steps' is None", None)
        return self.epochs * math.ceil(size / self.batch_for(size))

    def plain_steps(self, steps: Ints) -> Array:
        """How many steps without momentum lead as far, where gradients do not change, (k,).

        A step goes on in those after it: ``sum_{j=1..K} (1 - momentum^j) / (1 - momentum)``.

        >>> import numpy as np
        >>> LocalWork(momentum=0.5).plain_steps(np.array([1, 2]))
        array([1. , 2.5])
        """
        if not self.momentum:
            return steps
        rest = 1 - self.momentum
        return (steps - self.momentum * (1 - self.momentum**steps) / rest) / rest

    def normalizer(self, steps: Ints, curvature: float = 0.0) -> Array:
        """Return the local work a_i of clients that make ``steps`` steps, shape (k,).

        It is the number of plain steps that lead as far where gradients do not change. Momentum
        lengthens the way. The proximal term shortens it, and so do gradients that fall with
        ``curvature``: the way after K steps of SGD is ``(1 - (1 - c)^K) / c``, with
        ``c = lr * (mu + curvature)``.

        >>> import numpy as np
        >>> LocalWork(lr=0.5, mu=1.0).normalizer(np.array([1, 2, 3]))
        array([1.  , 1.5 , 1.75])
        """
        pull = self.lr * (self.mu + curvature)
        if not pull:
            return self.plain_steps(steps).astype(np.float64)
        # One step takes (way, velocity, 1) to velocity' = momentum * velocity + 1 - pull * way
        # and way' = way + velocity'.
        step = np.array([[1 - pull, self.momentum, 1], [-pull, self.momentum, 1], [0, 0, 1]])
        distinct, places = np.unique(steps, return_inverse=True)
        ways = [np.linalg.matrix_power(step, int(number))[0, 2] for number in distinct]
        return np.array(ways, dtype=np.float64)[places]

    def batch_for(self, size: int) -> int:
        """The samples in a full batch of a client with ``size`` samples."""
        return size if self.batch is None else min(self.batch, size)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise BadParameter(name, _OWNER, "an integer of at least 1", value)


def _check_real(name: str, value: object, positive: bool) -> None:
    must = f"a finite number {'above' if positive else 'of at least'} 0"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise BadParameter(name, _OWNER, must, value)
    number = float(value)
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        raise BadParameter(name, _OWNER, must, value)


# The same step size in every round.


@dataclass(frozen=True)
class Constant(Schedule):
    """lr in every round."""

    name: ClassVar[str] = "constant"

    def rate(self, lr: float, round: int) -> float:
        return lr


# A step size that falls by the same share in every round.


@dataclass(frozen=True)
class Exponential(Schedule):
    """A share of it is left in every round: lr factor^t.

    >>> round(Exponential(factor=0.9).rate(1.0, 2), 2)
    0.81
    """

    factor: Annotated[float, Real(0, open_low=True)] = 0.99

    name: ClassVar[str] = "exponential"

    def rate(self, lr: float, round: int) -> float:
        return lr * self.factor**round


# A step size that falls as one over the round.


@dataclass(frozen=True)
class Inverse(Schedule):
    """lr gamma / (t + gamma): the 1/t of the convergence proofs.

    With ``lr = 1 / (mu gamma)`` it is ``1 / (mu (t + gamma))``, as Cho, Wang and Joshi, "Towards
    Understanding Biased Client Selection in Federated Learning", AISTATS 2022, Theorem 3.1, has it.

    Parameters
    ----------
    gamma
        After so many rounds the step is half as large.

    >>> [round(Inverse(gamma=2).rate(0.1, t), 3) for t in (0, 2, 6)]
    [0.1, 0.05, 0.025]
    """

    gamma: Annotated[float, Real(0, open_low=True)] = 1.0

    name: ClassVar[str] = "inverse"

    def rate(self, lr: float, round: int) -> float:
        return lr * self.gamma / (round + self.gamma)


# A step size that falls by stairs.


@dataclass(frozen=True)
class Step(Schedule):
    """lr, times ``factor`` after every so many rounds; halved every 150, as Cho et al. run it.

    >>> [Step(every=150).rate(0.4, t) for t in (149, 150, 300)]
    [0.4, 0.2, 0.1]
    """

    every: Annotated[int, Whole(1)] = 150
    factor: Annotated[float, Real(0, open_low=True)] = 0.5

    name: ClassVar[str] = "step"

    def rate(self, lr: float, round: int) -> float:
        return lr * self.factor ** (round // self.every)
