"""A scheme with one outcome: to walk through all outcomes of a design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedcohort.selection import Citation, Cohort, RoundContext, Scheme


@dataclass(frozen=True)
class Scripted(Scheme[Any]):
    """Always the same cohort: one outcome of a design."""

    clients: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    name: ClassVar[str] = "scripted"
    paper: ClassVar[Citation] = Citation("-", "-", "-", 2026)

    def select(self, state: Any, federation: Any, context: RoundContext, rng: Any) -> Any:
        return Cohort.of(np.array(self.clients, dtype=np.int64), np.array(self.weights))
