"""The first answers count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Maybe, Real, Whole
from fedcohort.server.stragglers.base import StragglerRule


@dataclass(frozen=True)
class First(StragglerRule):
    """The first k answers of those invited count, and end the round.

    Parameters
    ----------
    k
        How many.
    seconds
        A deadline as well; None for none.
    """

    k: Annotated[int, Whole(1)]
    seconds: Annotated[float | None, Maybe(Real(0, open_low=True))] = None

    name: ClassVar[str] = "first"
    competing: ClassVar[bool] = True

    def enough(self, invited: int) -> int:
        return min(self.k, invited)

    @property
    def deadline(self) -> float:
        return math.inf if self.seconds is None else self.seconds
