"""Clients come and go: sessions of random lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core.parameters import Real
from fedcohort.simulation.availability._alternating import Alternating


@dataclass(frozen=True)
class Sessions(Alternating):
    """Heavy-tailed sessions, as of phones: log-normal lengths; absences are exponential.

    With ``sigma=1.27`` half of them last at most 45 % of the mean.

    Parameters
    ----------
    sigma
        Of the log-normal law: how unlike sessions are.
    """

    sigma: Annotated[float, Real(0, 5)] = 1.27

    name: ClassVar[str] = "sessions"

    def lengths(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return np.exp(self.sigma * rng.standard_normal(shape) - self.sigma**2 / 2)

    def remaining(self, rng: np.random.Generator, n: int) -> Any:
        """A uniform part of a session drawn in proportion to its length: log-normal, too."""
        lengths = np.exp(self.sigma * rng.standard_normal(n) + self.sigma**2 / 2)
        return rng.random(n) * lengths
