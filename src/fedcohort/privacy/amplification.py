"""How well one round tells whether a client's answer was in it, or another in its place.

The sum of a round is sum_i c_i v_i x_i + noise, where ||x_i|| <= 1 after clipping. Two neighbours
differ in the answer of one client: under ``add-remove`` it is zero in one of them (the client is
there and sends nothing; sizes and the law are public and stay), under ``replace-one`` both are
any answers. What can be told is bounded by a profile (`fedcohort.maths.hockey_stick`), in two
ways of which the smaller one counts, for each loss:

* *seen*: the adversary knows who took part. Holds for every law that does not look at data.
* *hidden*: it does not, and clients that give way to a draw are coupled with it. The proofs are
  in ``docs/privacy.md``; for independent clients it is the exact pair of laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedcohort.core.types import Floats
from fedcohort.maths._inclusion import UNLIKELY
from fedcohort.maths.hockey_stick import (
    amplified,
    drawn,
    mixture_second,
    nothing,
    opposite_mixtures,
)

ADD_REMOVE, REPLACE_ONE = ADJACENCIES = ("add-remove", "replace-one")


class Parts(NamedTuple):
    """Profiles at losses of at least 0, of neighbours in one order and in the other."""

    there: Floats  # the answer is in the first
    gone: Floats  # it is in the second


@dataclass(frozen=True)
class Part:
    """The part of a client in one round: everything in standard deviations of the noise.

    ``chances[k - 1]`` is the chance of k draws, ``weight`` what one draw moves the sum,
    ``displaced`` how far at most others move that give way to it; inf where that is not known.
    """

    chances: tuple[float, ...]
    weight: float
    displaced: float

    @property
    def chance(self) -> float:
        """That it takes part at all."""
        return min(1.0, sum(self.chances))

    @property
    def certain(self) -> bool:
        """Whether it is drawn once in every round: the plain Gaussian mechanism."""
        return len(self.chances) == 1 and self.chances[0] >= 1

    def distance(self, adjacency: str) -> float:
        """How far one draw moves a sum of which it is known that the client is in it."""
        return self.weight * (2 if adjacency == REPLACE_ONE else 1)

    def farthest(self, adjacency: str) -> float:
        """How far a neighbour may be at all, with one draw."""
        if np.isinf(self.displaced):
            return self.distance(adjacency)
        return max(self.distance(adjacency), self.weight + self.displaced)

    def seen(self, adjacency: str, losses: Floats) -> Floats:
        """The profile if it is known who took part."""
        law = np.array(self.chances)
        out: Floats = drawn(law, self.distance(adjacency), losses)
        return out + (1.0 - self.chance) * nothing(losses) + UNLIKELY

    def profiles(self, adjacency: str, losses: Floats) -> list[Floats]:
        """One profile where neighbours can be swapped, else one for each order of the two."""
        seen = self.seen(adjacency, losses)
        if np.isinf(self.displaced):
            return [seen]
        above, below = np.maximum(losses, 0.0), np.maximum(-losses, 0.0)
        up, down = self._hidden(adjacency, above), self._hidden(adjacency, below)
        orders = [(up.there, down.gone)]
        if adjacency == ADD_REMOVE:
            orders.append((up.gone, down.there))
        out = []
        for rising, falling in orders:
            turned = nothing(losses) + np.exp(-below) * falling
            hidden = np.where(losses >= 0, rising, turned) + UNLIKELY
            out.append(np.minimum(1.0, np.minimum(seen, hidden)))
        return out

    def _hidden(self, adjacency: str, losses: Floats) -> Parts:
        """Bounds on both orders for losses of at least 0; exact for independent clients."""
        law, alone = np.array(self.chances), self.displaced == 0 and len(self.chances) == 1
        if adjacency == REPLACE_ONE:
            if alone and 0 < self.chance < 1:
                both = opposite_mixtures(self.chance, self.weight, losses)
            else:
                both = amplified(law, self.farthest(adjacency), losses)
            return Parts(both, both)
        there = amplified(law, self.weight + self.displaced, losses)
        if alone and self.chance > 0:
            return Parts(there, mixture_second(self.chance, self.weight, losses))
        return Parts(there, amplified(law, max(self.weight, self.displaced), losses))
