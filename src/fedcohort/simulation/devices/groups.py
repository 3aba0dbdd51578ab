"""A few kinds of devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import Numbers
from fedcohort.maths._draws import permutation
from fedcohort.simulation.devices.base import Speeds, Typical


@dataclass(frozen=True, kw_only=True)
class Groups(Typical):
    """Kinds of devices, each so many times slower than the typical one; who has which is drawn.

    Parameters
    ----------
    slower
        The factor of each kind, for its processor and its line alike.
    shares
        How common each kind is, up to a factor; equally by default.
    """

    slower: Annotated[tuple[float, ...], Numbers()] = (1.0, 3.0, 10.0)
    shares: Annotated[tuple[float, ...], Numbers()] = ()

    name: ClassVar[str] = "groups"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.slower or min(self.slower) <= 0:
            must = "a tuple of one number above 0 per kind"
            raise BadParameter("slower", self.name, must, self.slower)
        if self.shares and (len(self.shares) != len(self.slower) or not sum(self.shares)):
            must = f"a tuple of one number per kind ({len(self.slower)}), not all 0"
            raise BadParameter("shares", self.name, must, self.shares)

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        shares = np.array(self.shares or [1.0] * len(self.slower))
        edges = np.rint(n * np.cumsum(shares) / shares.sum())
        kinds = np.searchsorted(edges, np.arange(n), side="right")  # (n,) as many as their share
        factor = np.array(self.slower)[kinds][permutation(rng, n)]
        seconds, down, up = self.typical(n)
        return Speeds(seconds * factor, down / factor, up / factor)
