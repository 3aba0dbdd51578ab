"""IFCA: k models, of which every client trains the one that fits it best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort._internal.errors import BadParameter, brief
from fedcohort._internal.parameters import OneOf, Real, Whole, elements, is_whole
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.algorithms.base import MODEL, Algorithm, Layers, Payload, Rows, Vectors
from fedcohort.learning._local import LocalWork
from fedcohort.selection._citation import Citation

SHARED = "shared"
"""The vector of the server that is 1 where a parameter is common to all models."""


@dataclass(frozen=True)
class Parts:
    """A number of leading parameters, or names of layers."""

    def __str__(self) -> str:
        return "an int of at least 0, or a tuple of names of layers"

    def accepts(self, value: object) -> bool:
        """Whether it is one."""
        if isinstance(value, tuple):
            return all(isinstance(name, str) and name for name in value)
        return is_whole(value) and value >= 0  # type: ignore[operator]

    def parse(self, text: str) -> object:
        """What a word says: 100, or conv1,conv2."""
        return int(text) if text.lstrip("+-").isdigit() else tuple(elements(text))

    def bad_examples(self) -> Sequence[object]:
        """What is none."""
        return [-1, 1.5, True, None, "conv1", ("",), (3,)]


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
        What is common to all models and learns from everybody: layers by their names,
        ``("conv1", "fc.weight")`` or in a word ``ifca:shared=conv1,fc.weight``, a module's name
        for all of its layers; or a number: so many leading parameters. ``task.layers`` has the
        names and shapes. A single layer whose name is a number is written with a comma, ``0,``.
    average
        ``models`` moves a model by the mean change of its clients, ``gradients`` by their part of
        the sum: a small cluster then learns slowly.
    spread
        The standard deviation by which all models but the first begin apart from it.

    >>> IFCA(k=3).others
    ('model-1', 'model-2')
    """

    k: Annotated[int, Whole(1)] = 2
    shared: Annotated[int | tuple[str, ...], Parts()] = 0
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

    def start(
        self, theta: Floats, rng: np.random.Generator, layers: Layers | None = None
    ) -> dict[str, Floats]:
        common = self._common(len(theta), layers)
        apart = self.spread * rng.standard_normal((self.k - 1, len(theta)))
        apart[:, common] = 0.0
        models = dict(zip(self.others, theta + apart, strict=True))
        named = isinstance(self.shared, tuple)  # which parameters these are is known here alone
        return {**models, SHARED: common.astype(np.float64)} if named else models

    def _common(self, dimension: int, layers: Layers | None) -> Bools:
        """(d,) which parameters all models share."""
        common = np.zeros(dimension, dtype=np.bool_)
        if not isinstance(self.shared, tuple):
            common[: self.shared] = True
            return common
        if layers is None:
            return common
        ends = np.cumsum([math.prod(shape) for shape in layers.values()]).tolist()
        for wanted in self.shared:
            found = [n == wanted or n.startswith(f"{wanted}.") for n in layers]
            if not any(found):
                raise BadParameter(
                    "shared",
                    self.name,
                    f"a number, or names of layers ({brief(', '.join(layers))})",
                    wanted,
                )
            for name, end, taken in zip(layers, ends, found, strict=True):
                common[end - math.prod(layers[name]) : end] |= taken
        return common

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
        named = isinstance(self.shared, tuple)
        common = server[SHARED] > 0 if named else self._common(moved.shape[1], None)
        own[:, common] = moved[:, common].sum(axis=0)
        return own.ravel()
