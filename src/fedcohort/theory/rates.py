"""The rates of clustered sampling (Theorems 1 and 2), with every constant written out.

The paper states them as O(1/sqrt(m N T)) + O(m N / T) for N local steps of size
sqrt(m / (N T)) in T rounds, the same for MD (Theorem 1) and for every clustered sampling
(Theorem 2). Its proof replaces the sampling in the proof of Wang et al. (2020) by Lemma 5. Here
the constants are those of `convergence_bound`, which is that proof with the sampling kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Annotated, NamedTuple

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import within_ranges
from fedcohort.designs import Rows
from fedcohort.selection._design import Design
from fedcohort.theory.convergence import ConvergenceBound, Training, convergence_bound
from fedcohort.theory.ranges import COUNT


class Orders(NamedTuple):
    """The bound, sorted by how fast its parts vanish.

    start_and_noise
        1/sqrt(m N T): what there was to gain, and gradient noise.
    sampling
        sqrt(N / (m T)), times kappa^2: what sampling adds where clients differ. The printed
        theorems count it to the first part, which is N times smaller.
    drift
        m N / T: what local steps add.
    """

    start_and_noise: float
    sampling: float
    drift: float


@dataclass(frozen=True)
class Rate:
    """The bound of Theorem 1 or 2 for one training; its parts are those of ``bound``."""

    eta_l: float  # sqrt(m / (N T))
    m: int
    orders: Orders
    bound: ConvergenceBound

    @property
    def total(self) -> float:
        """The bound on (1/T) sum_t E||grad L||^2; infinite where T is too small for it."""
        return self.bound.total


def clustered_rate(design: Design, training: Training) -> Rate:
    """Theorem 1 (MD) and Theorem 2 (any clustered sampling) with their constants.

    With eta_l = sqrt(m / (N T)), c = `Training.factor` and
    Omega = (3/2) c L beta^2 sqrt(N / (m T)), 4 Omega < 1::

        (1 - 4 Omega) (1/T) sum_t E||grad L||^2 <=
            [4 gap + 2 c L sigma^2 m sum E omega_i^2 + 3 c L sigma^2 (N - 1)/N] / sqrt(m N T)
          + 6 c L kappa^2 sqrt(N / (m T))
          + 3 c L^2 (sigma^2 / N + 2 kappa^2) m (N - 1) / T

    Where we differ: (5) and (11) have no term of order sqrt(N / (m T)). It does not vanish:
    for two quadratic clients, N = T^(1/5) and m = 1, the measured left-hand side is about N/2
    times the printed rate, which no constant repairs. And m sum E omega_i^2 is at most
    1 + m sum p_i^2, a constant only where no client is much larger than 1/m.

    Parameters
    ----------
    design
        MD sampling or a clustered sampling that satisfies Proposition 1.
    training
        ``steps`` (N), ``rounds`` (T), ``smoothness``, ``gap``, ``noise``, ``dissimilarity`` and
        ``beta`` are used; ``eta_l`` is that of the theorem, whatever it was, and ``eta_g`` must
        be 1. `fedcohort.simulation.assumptions` finds all of them for quadratic clients and for
        softmax regression.

    >>> from fedcohort import Federation, scheme
    >>> md = scheme("md", m=5).law(Federation.from_sizes([1] * 50))
    >>> rate = clustered_rate(md, Training(eta_l=1, steps=4, rounds=10**6, dissimilarity=1.0))
    >>> [round(value, 5) for value in rate.orders]
    [0.0009, 0.0054, 9e-05]

    Reference: Fraboni, Vidal, Kameni, Lorenzi (ICML 2021), Theorems 1 and 2, Lemma 5; Wang, Liu,
    Liang, Joshi, Poor (NeurIPS 2020).
    """
    if not isinstance(design, Rows) or design.target is not None:
        raise BadInput(
            "Theorems 1 and 2 are about m draws of weight 1/m, from one distribution or from m; "
            f"{type(design).__name__} is none. Use convergence_bound."
        )
    if training.eta_g != 1:
        raise BadParameter("eta_g", "clustered_rate", "1, as in the theorem", training.eta_g)
    m = design.draws
    eta_l = sqrt(m / (training.steps * training.rounds))
    bound = convergence_bound(design, replace(training, eta_l=eta_l))
    terms = bound.terms
    orders = Orders(
        terms.start + terms.aggregate_noise + terms.sampling_noise,
        terms.sampling_dissimilarity,
        terms.local_noise + terms.local_dissimilarity,
    )
    return Rate(eta_l, m, orders if bound.valid else Orders(inf, inf, inf), bound)


@within_ranges
def printed_rate(
    m: Annotated[int, COUNT], steps: Annotated[int, COUNT], rounds: Annotated[int, COUNT]
) -> float:
    """1/sqrt(m N T) + m N / T: (5) and (11) with 1 for both constants.

    >>> printed_rate(1, 4, 10_000)
    0.0054
    """
    return 1.0 / sqrt(m * steps * rounds) + m * steps / rounds
