"""What a law says of one client's part in the sum: all that its price in privacy depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedcohort.core.types import Floats


@dataclass(frozen=True, eq=False)
class Participation:
    """How often each client may be drawn, what a draw weighs, and who gives way to it.

    The sum of a round is sum_i c_i v_i x_i with the counts c of the law. Where client i is drawn
    k times instead of never, the other summands can be *coupled*: drawn so that at most k times
    ``displaced`` of their weight differs. Independent clients displace nobody; in a cohort of
    fixed size, who comes in takes the place of somebody else.

    Parameters
    ----------
    at_least
        (n, k) the chance that a client is drawn 1, 2, ..., k times or more.
    weight
        (n,) v_i, what one draw weighs.
    displaced
        (n,) see above; inf where no coupling is known.
    how
        The law in a few words.
    """

    at_least: Floats
    weight: Floats
    displaced: Floats
    how: str

    @classmethod
    def once(cls, chance: Floats, weight: Floats, displaced: Floats, how: str) -> Participation:
        """Of a law that draws no client twice."""
        return cls(np.asarray(chance, dtype=np.float64)[:, None], weight, displaced, how)

    def cut(self, most: float) -> Participation:
        """The same where draws that weigh more than so much are cut to it."""
        given_way = np.where(np.isinf(self.displaced), np.inf, np.minimum(self.displaced, most))
        return replace(self, weight=np.minimum(self.weight, most), displaced=given_way)

    def open(self, weight: float) -> Participation:
        """The same where it may be known who took part, and a client counts once, for so much."""
        weights, unknown = np.full_like(self.weight, weight), np.full_like(self.weight, np.inf)
        return replace(self, at_least=self.at_least[:, :1], weight=weights, displaced=unknown)

    def certain(self, weight: float) -> Participation:
        """Everybody in every round, each for so much."""
        n = len(self.weight)
        return Participation.once(np.ones(n), np.full(n, weight), np.zeros(n), self.how)

    @property
    def largest_weight(self) -> float:
        """What one draw weighs at most."""
        possible = self.weight[self.at_least[:, 0] > 0]
        return float(possible.max(initial=0.0))
