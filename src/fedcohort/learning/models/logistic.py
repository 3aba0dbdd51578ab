"""Logistic regression: yes or no from a row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.learning.data import ClientData
from fedcohort.learning.model import Model


@dataclass(frozen=True)
class Logistic(Model):
    """One weight per feature and an offset; the probability of class 1 is their logistic sum.

    For tables with two classes: half the parameters of softmax, so that each weight is the log
    odds ratio of its feature. It starts at zero, and is computed in 64 bits.

    >>> model = Logistic(1)
    >>> model.sample_losses(np.array([2.0, 0.0]), np.array([[1.0]]), np.array([1])).round(4)
    array([0.1269])
    """

    features: int
    name = "logistic"

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """The weights, and the offset."""
        return {"weight": (self.features,), "offset": (1,)}

    @classmethod
    def for_data(cls, data: ClientData, **settings: Any) -> Self:
        """One weight per feature."""
        return cls(data.features, **settings)

    def misfit(self, data: ClientData) -> str | None:
        """See `Model.misfit`."""
        if data.classes != 2:
            return f"it tells two classes, and the data have {data.classes or 'none'}; try softmax"
        return None

    def initial(self, seed: int) -> Floats:
        """Zero, which favours no class."""
        return np.zeros(self.dimension)

    def scores(self, theta: Array, x: Array) -> Array:
        """The log odds of class 1, (S,)."""
        return np.asarray(x.reshape(len(x), self.features) @ theta[:-1] + theta[-1])

    def predictions(self, theta: Array, x: Array) -> Ints:
        """Class 1 where its odds are above even."""
        return (self.scores(theta, x) > 0).astype(np.int64)

    def sample_losses(self, theta: Array, x: Array, y: Array) -> Array:
        """The cross-entropy of each sample."""
        scores = self.scores(theta, x)
        return np.asarray(np.logaddexp(0, scores) - y * scores)

    def gradient(self, theta: Array, x: Array, y: Array) -> Array:
        """See `Model.gradient`."""
        error = np.exp(-np.logaddexp(0, -self.scores(theta, x))) - y
        flat = x.reshape(len(x), self.features)
        return np.append(error @ flat, error.sum()) / len(y)
