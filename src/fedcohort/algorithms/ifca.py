"""IFCA: k models, of which every client trains the one that fits it best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.algorithms.base import MODEL, Algorithm, Payload, Rows, Vectors
from fedcohort.core.citation import Citation
from fedcohort.core.parameters import OneOf, Real, Whole
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.learning.work import LocalWork


@dataclass(frozen=True)
class IFCA(Algorithm):
    """Clusters of clients that are found while they learn, a model for each.

    All k models go down. A client takes the one with the lowest loss on its data, trains it, and
    sends the change and which one it was. With s_ij = 1 where client i took model j::

        x_j <- x_j + sum_i omega_i s_ij delta_i / sum_i omega_i s_ij     average=models
        x_j <- x_j + sum_i omega_i s_ij delta_i                          average=gradients

    A model that nobody took stays. Whatever a scheme asks of a client (loss, gradient, update) is
    about the model that the client takes. Losses and accuracy in traces are those of everybody's
    own model, see `fedcohort.simulation.evaluation`.

    Ghosh et al., "An Efficient Framework for Clustered Federated Learning", NeurIPS 2020,
    Algorithm 1, with both ways to average, and the weight sharing of its section 5. There clients
    count alike; here by their weights. As there, models that begin too far from any cluster may be
    nobody's for good: try several seeds, or a larger ``spread``.

    Parameters
    ----------
    k
        How many models.
    shared
        So many of the leading parameters, those of the first layers, are common to all models and
        learn from everybody; ``task.layers`` tells how many a layer has.
    average
        ``models`` moves a model by the mean change of its clients, ``gradients`` by their part of
        the sum: a small cluster then learns slowly.
    spread
        The standard deviation by which all models but the first begin apart from it.

    >>> IFCA(k=3).others
    ('model-1', 'model-2')
    """

    k: Annotated[int, Whole(1)] = 2
    shared: Annotated[int, Whole(0)] = 0
    average: Annotated[str, OneOf(("models", "gradients"))] = "models"
    spread: Annotated[float, Real(0, open_low=True)] = 0.1

    name: ClassVar[str] = "ifca"
    paper: ClassVar[Citation | None] = Citation(
        "Avishek Ghosh, Jichan Chung, Dong Yin, Kannan Ramchandran",
        "An Efficient Framework for Clustered Federated Learning",
        "NeurIPS",
        2020,
        "Algorithm 1, Section 5",
    )
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("cluster", "note", length=1),)
    needs_rows: ClassVar[bool] = True

    @property
    def models(self) -> int:
        return self.k

    def start(self, theta: Floats, rng: np.random.Generator) -> dict[str, Floats]:
        apart = self.spread * rng.standard_normal((self.k - 1, len(theta)))
        apart[:, : self.shared] = 0.0
        return dict(zip(self.others, theta + apart, strict=True))

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        which = kept[MODEL] if self.k > 1 else np.zeros((len(updates), 1))
        return {"cluster": which}, {}

    def width(self, dimension: int) -> int:
        return self.k * (dimension + 1)

    def rows(self, updates: Array, payloads: Rows) -> Array:
        """(b, k (d + 1)) the update in the place of the model that was taken, and a 1 beside it."""
        b, d = updates.shape
        taken = np.clip(payloads["cluster"][:, 0], 0, self.k - 1).astype(
            np.int64
        )  # a client's word
        rows = np.zeros((b, self.k, d + 1))
        rows[np.arange(b), taken, :d] = updates
        rows[np.arange(b), taken, d] = 1.0
        return rows.reshape(b, -1)

    def direct(self, direction: Floats, server: Vectors) -> Floats:
        sums = direction.reshape(self.k, -1)
        moved, mass = sums[:, :-1], sums[:, -1:]
        own = moved / np.where(mass > 0, mass, np.inf) if self.average == "models" else moved.copy()
        own[:, : self.shared] = moved[:, : self.shared].sum(axis=0)
        return own.ravel()
