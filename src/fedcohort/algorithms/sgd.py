"""Plain local SGD: what FedAvg runs on a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.algorithms.base import Algorithm


@dataclass(frozen=True)
class LocalSgd(Algorithm):
    """Local steps of SGD as `LocalWork` says; nothing is remembered.

    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, Algorithm 1.
    """

    name: ClassVar[str] = "sgd"
