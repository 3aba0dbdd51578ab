"""A round ends at its deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Real
from fedcohort.server.stragglers.base import StragglerRule


@dataclass(frozen=True)
class Deadline(StragglerRule):
    """Answers that come later do not count; if all are there before, the round ends then.

    Parameters
    ----------
    seconds
        From the invitation on.
    """

    seconds: Annotated[float, Real(0, open_low=True)]

    name: ClassVar[str] = "deadline"

    @property
    def deadline(self) -> float:
        return self.seconds
