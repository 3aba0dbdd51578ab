"""Replacements, then weights by learnt availability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.parameters import Whole
from fedcohort.server.dropouts.hajek import Hajek


@dataclass(frozen=True)
class Redraw(Hajek):
    """Replacements from the same cluster or stratum, then as `Hajek`; the default.

    Where a cohort was not drawn from a law, whoever comes next in its reserve, as drawn. With
    neither clusters nor strata nor a reserve it is `Hajek`.

    Parameters
    ----------
    scale
        As for `Hajek`.
    attempts
        How often a lost draw is made again; every time costs an exchange with clients.
    """

    attempts: Annotated[int, Whole(0)] = 2

    name: ClassVar[str] = "redraw"
