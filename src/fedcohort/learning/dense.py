"""Fully connected networks, written as plainly as they can be.

Read this file to learn what the fast trainers compute; the tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.learning.data import ClientData
from fedcohort.learning.model import Model, cut

_SINGLE = np.dtype(np.float32)


@dataclass(frozen=True)
class Dense(Model):
    """Linear layers with ReLUs in between, trained by the cross-entropy.

    A flat model holds, layer by layer, the weights (outputs, inputs) and then the biases:
    the order of torch's ``parameters_to_vector(Sequential(Linear, ReLU, Linear).parameters())``.

    Parameters
    ----------
    widths
        The inputs, the units of each hidden layer, and the classes.
    dtype
        What is computed in.
    start
        ``"zero"``, or ``"uniform"`` on ``+-1 / sqrt(inputs)``, weights and biases alike, as
        torch's ``Linear``: the law is torch's, the numbers are not.
    name
        What a report calls it.

    Examples
    --------
    >>> Dense((4, 8, 2)).layers["output.weight"]
    (2, 8)
    """

    widths: tuple[int, ...]
    dtype: np.dtype[Any] = _SINGLE
    start: Literal["zero", "uniform"] = "uniform"
    name: str = "dense"

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """``hidden1.weight``, ``hidden1.bias`` and so on, ``output.weight``, ``output.bias``."""
        names = [*(f"hidden{i}" for i in range(1, len(self.widths) - 1)), "output"]
        shapes: dict[str, tuple[int, ...]] = {}
        for name, (inputs, outputs) in zip(names, pairwise(self.widths), strict=True):
            shapes |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
        return shapes

    def initial(self, seed: int) -> Floats:
        """See `Model.initial`."""
        if self.start == "zero":
            return np.zeros(self.dimension)
        rng = np.random.Generator(np.random.Philox(seed))
        parts = []
        for inputs, outputs in pairwise(self.widths):
            words = rng.bit_generator.random_raw(outputs * (inputs + 1))
            uniforms = (words >> np.uint64(11)) * 2.0**-53  # in [0, 1)
            parts.append((2 * uniforms - 1) / np.sqrt(inputs))
        return np.concatenate(parts)

    def misfit(self, data: ClientData) -> str | None:
        """See `Model.misfit`."""
        if data.classes is None:
            return "it tells classes, and the data have none"
        if (data.features, data.classes) != (self.widths[0], self.widths[-1]):
            return (
                f"it takes {self.widths[0]} features and tells {self.widths[-1]} classes, and the "
                f"data have {data.features} and {data.classes}"
            )
        return None

    def scores(self, theta: Array, x: Array) -> Array:
        """How much speaks for each class, (S, classes)."""
        return self._forward(theta, x)[-1]

    def predictions(self, theta: Array, x: Array) -> Ints:
        """The first class with the highest score."""
        return np.asarray(self.scores(theta, x).argmax(axis=1))

    def sample_losses(self, theta: Array, x: Array, y: Array) -> Array:
        """The cross-entropy of each sample."""
        scores = self.scores(theta, x)
        highest = scores.max(axis=1, keepdims=True)
        normaliser = highest[:, 0] + np.log(np.exp(scores - highest).sum(axis=1))
        return np.asarray(normaliser - scores[np.arange(len(y)), y])

    def gradient(self, theta: Array, x: Array, y: Array) -> Array:
        """The gradient of the mean cross-entropy, by back-propagation."""
        *inputs, scores = self._forward(theta, x)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = shares / shares.sum(axis=1, keepdims=True)
        error[np.arange(len(y)), y] -= 1
        error /= len(y)
        parts: list[Array] = []
        for weights, given in zip(self._weights(theta)[::-1], inputs[::-1], strict=True):
            parts = [(error.T @ given).ravel(), error.sum(axis=0), *parts]
            error = (error @ weights) * (given > 0)  # the ReLU before; unused for the first layer
        return np.concatenate(parts)

    def _weights(self, theta: Array) -> list[Array]:
        return list(cut(theta, self.layers).values())[::2]

    def _forward(self, theta: Array, x: Array) -> list[Array]:
        """What each layer is given, and the scores."""
        parts = list(cut(theta, self.layers).values())
        given = [x.reshape(len(x), self.widths[0]).astype(theta.dtype, copy=False)]
        for weights, biases in zip(parts[:-2:2], parts[1:-2:2], strict=True):
            given.append(np.maximum(given[-1] @ weights.T + biases, 0))
        return [*given, given[-1] @ parts[-2].T + parts[-1]]
