"""Local algorithms, one per file: what a chosen client does with the model.

Other packages add theirs through the entry point group ``fedcohort.algorithms``.
"""

from __future__ import annotations

from typing import Any

from fedcohort._internal.registry import Kind
from fedcohort.algorithms.base import Algorithm, LocalRule, Payload, Rows, Vectors
from fedcohort.algorithms.feddyn import FedDyn
from fedcohort.algorithms.fednova import FedNova
from fedcohort.algorithms.fedprox import FedProx
from fedcohort.algorithms.ifca import IFCA
from fedcohort.algorithms.scaffold import Scaffold
from fedcohort.algorithms.sgd import LocalSgd

__all__ = [
    "ALGORITHMS",
    "IFCA",
    "Algorithm",
    "FedDyn",
    "FedNova",
    "FedProx",
    "LocalRule",
    "LocalSgd",
    "Payload",
    "Rows",
    "Scaffold",
    "Vectors",
    "algorithm",
]

ALGORITHMS: Kind[Algorithm] = Kind("algorithm", (__name__,), Algorithm, default="sgd")


def algorithm(which: Algorithm | str | None = None, **parameters: Any) -> Algorithm:
    """The local algorithm of that name; None is plain SGD, and an algorithm is itself.

    >>> algorithm("fedprox:mu=0.5")
    FedProx(mu=0.5)
    """
    return ALGORITHMS.build(which, **parameters)
