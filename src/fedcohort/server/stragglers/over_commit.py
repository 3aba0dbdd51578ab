"""More clients are invited than needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Maybe, Real
from fedcohort.server.stragglers.base import StragglerRule


@dataclass(frozen=True)
class OverCommit(StragglerRule):
    """The scheme chooses more clients than its m, and the first m answers count.

    As in Bonawitz et al., "Towards Federated Learning at Scale" (MLSys 2019), which invites 130 %.

    Parameters
    ----------
    factor
        How many times m are invited.
    seconds
        A deadline as well; None for none.
    """

    factor: Annotated[float, Real(1, 100)] = 1.3
    seconds: Annotated[float | None, Maybe(Real(0, open_low=True))] = None

    name: ClassVar[str] = "over-commit"
    competing: ClassVar[bool] = True

    def invited(self, m: int) -> int:
        """How many for m answers; a decimal factor means what it says.

        >>> OverCommit(1.1).invited(10)
        11
        """
        return math.ceil(m * Fraction(repr(self.factor)))
