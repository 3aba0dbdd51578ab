"""FedProx: local SGD that is held back to the model it began with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from fedcohort._internal.parameters import Real
from fedcohort.algorithms.base import Algorithm, LocalRule, Rows, Vectors
from fedcohort.learning._local import LocalWork
from fedcohort.selection._citation import Citation


@dataclass(frozen=True)
class FedProx(Algorithm):
    """Local SGD on F_i(theta) + mu/2 ||theta - theta_0||^2.

    Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, equation 2.

    Parameters
    ----------
    mu
        How strongly clients are held back, in place of the work's own ``mu``; 0 is plain SGD.

    >>> FedProx(mu=0.5).rule(LocalWork(), {}, {}).work.mu
    0.5
    """

    mu: Annotated[float, Real(0)] = 0.1

    name: ClassVar[str] = "fedprox"
    paper: ClassVar[Citation | None] = Citation(
        "Tian Li, Anit Kumar Sahu, Manzil Zaheer, Maziar Sanjabi, Ameet Talwalkar, Virginia Smith",
        "Federated Optimization in Heterogeneous Networks",
        "MLSys",
        2020,
        "equation (2)",
    )

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(replace(work, mu=self.mu))
