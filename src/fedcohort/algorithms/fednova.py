"""FedNova: updates divided by the local work that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from fedcohort._internal.parameters import Maybe, Real
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.algorithms.base import Algorithm, Layers, LocalRule, Payload, Rows, Vectors
from fedcohort.learning._local import LocalWork
from fedcohort.selection._citation import Citation
from fedcohort.selection._scheme import Disclosure

TAU, SUMS = "tau", "sums"
"""Vectors of the server: tau of the round, and the sums over earlier rounds that give it."""


@dataclass(frozen=True)
class FedNova(Algorithm):
    """Normalized averaging, for clients that make unequal numbers of local steps.

    Plain averaging then minimizes ``sum_i q_i F_i``, with q_i proportional to p_i a_i. Here a_i is
    the local work of client i. FedNova divides every update by it::

        x <- x + tau sum_i omega_i delta_i / a_i

    For plain SGD a_i is the number of local steps. For momentum and a proximal term it is the
    number of plain steps that lead as far, see `LocalWork.normalizer`. A client sends its a_i
    beside its update, so step size schedules and data fractions are counted as they were.

    ``tau`` is the harmonic mean of the a_i. So the weights of the updates sum to 1 on average, as
    in plain averaging. The server estimates tau from the replies of earlier rounds, by
    ``sum omega_i / sum (omega_i / a_i)``. The cohort of a round has no part in its own tau. Given
    the earlier rounds, the expected direction is tau sum_i p_i delta_i / a_i for every scheme with
    unbiased weights. Only the first round with replies takes tau from its own cohort.

    The paper has the arithmetic mean, which takes longer steps: set the server's learning rate for
    that, as in ``--optimiser sgd:eta_g=2``. A client that reports too little local work gains
    weight, at most by the factor tau.

    The model ends at the minimum of ``sum_i p_i F_i`` in the limit of small local steps, as long as
    the gradients hardly change during local training. Set ``curvature`` otherwise.

    Parameters
    ----------
    mu
        Proximal term of FedProx. None takes the ``mu`` of the local work.
    curvature
        Curvature of the local objectives. Gradients then count as falling on the way, by the
        formula of the proximal term. The result is exact for quadratics of this curvature and full
        batches. 0 is FedNova as published.

    >>> FedNova(mu=0.5).rule(LocalWork(), {}, {}).work.mu
    0.5
    """

    mu: Annotated[float | None, Maybe(Real(0))] = None
    curvature: Annotated[float, Real(0)] = 0.0

    name: ClassVar[str] = "fednova"
    paper: ClassVar[Citation | None] = Citation(
        "Jianyu Wang, Qinghua Liu, Hao Liang, Gauri Joshi, H. Vincent Poor",
        "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization",
        "NeurIPS",
        2020,
        "with the weights of any scheme",
    )
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("normalizer", "estimate", length=1),)
    needs_rows: ClassVar[bool] = True
    corrects_steps: ClassVar[bool] = True

    @property
    def disclosures(self) -> list[Disclosure]:
        says = "how much local work made the update: with epochs, about how many samples it has"
        return [Disclosure("normalizer", "every round", says)]

    def start(
        self, theta: Floats, rng: np.random.Generator, layers: Layers | None = None
    ) -> dict[str, Floats]:
        return {TAU: np.ones(1), SUMS: np.zeros(2)}

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(work if self.mu is None else replace(work, mu=self.mu))

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        return {"normalizer": work.normalizer(steps, self.curvature)[:, None]}, {}

    def rows(self, updates: Array, payloads: Rows) -> Array:
        return np.asarray(updates / _divisors(payloads))

    def summed(self, updates: Array, payloads: Rows) -> Rows:
        trained = payloads["normalizer"] > 0
        return {"normalizer": np.hstack([trained, trained / _divisors(payloads)])}

    def step(self, server: Vectors, sums: Vectors) -> dict[str, Floats]:
        new = sums["normalizer"]
        total, divided = server[SUMS] if server[SUMS][1] > 0 else new
        tau = np.array([total / divided]) if divided > 0 else server[TAU]
        return {TAU: tau, SUMS: server[SUMS] + new}

    def direct(self, direction: Floats, server: Vectors) -> Floats:
        return direction * server[TAU]


def _divisors(payloads: Mapping[str, Array]) -> Floats:
    """Return the local work of each client, (b, 1), at least one step whatever it says."""
    return np.maximum(payloads["normalizer"].astype(np.float64), 1.0)
