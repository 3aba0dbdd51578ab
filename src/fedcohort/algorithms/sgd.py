"""Plain local SGD: what FedAvg runs on a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.algorithms.base import Algorithm
from fedcohort.selection._citation import Citation


@dataclass(frozen=True)
class LocalSgd(Algorithm):
    """Local steps of SGD as `LocalWork` says; nothing is remembered.

    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, Algorithm 1.
    """

    name: ClassVar[str] = "sgd"
    paper: ClassVar[Citation | None] = Citation(
        "H. Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera~y~Arcas",
        "Communication-Efficient Learning of Deep Networks from Decentralized Data",
        "AISTATS",
        2017,
        "Algorithm 1, ClientUpdate",
    )
