"""What the server does with a direction: the step of the global model. One optimiser per file.

``theta + eta_g * direction``, or one of the adaptive rules of Reddi et al., "Adaptive Federated
Optimization" (ICLR 2021), Algorithm 2, in which the direction plays the part of a negative
gradient. All work with every scheme and every estimator. Other packages add theirs through the
entry point group ``fedcohort.optimisers``.
"""

from __future__ import annotations

from typing import Any

from fedcohort.core.registry import Kind
from fedcohort.server.optimisers.adagrad import Adagrad
from fedcohort.server.optimisers.adam import Adam
from fedcohort.server.optimisers.base import Optimiser, OptimiserState
from fedcohort.server.optimisers.sgd import Sgd
from fedcohort.server.optimisers.yogi import Yogi

__all__ = [
    "OPTIMISERS",
    "Adagrad",
    "Adam",
    "Optimiser",
    "OptimiserState",
    "Sgd",
    "Yogi",
    "optimiser",
]

OPTIMISERS: Kind[Optimiser] = Kind("optimiser", __name__, Optimiser, default="sgd")


def optimiser(which: Optimiser | str | None = None, **parameters: Any) -> Optimiser:
    """The optimiser of that name; None is plain SGD, and an optimiser is itself.

    >>> optimiser("sgd", eta_g=0.5)
    Sgd(eta_g=0.5, momentum=0.0)
    >>> optimiser("adam:eta_g=0.5").spec
    'adam:eta_g=0.5,beta1=0.9,beta2=0.99,tau=0.001'
    """
    return OPTIMISERS.build(which, **parameters)
