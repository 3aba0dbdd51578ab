"""Clients on a line on which neighbours are alike, for designs that go along it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedcohort.core import Federation
from fedcohort.core.errors import TooLarge
from fedcohort.core.streams import stream
from fedcohort.core.types import Ints
from fedcohort.maths._cube import leaf_order
from fedcohort.maths._draws import permutation
from fedcohort.schemes._features import Featured, Features, WordOrQuantity
from fedcohort.schemes._ties import Ties, by_decreasing

MOST_CLIENTS = 5_000
"""Above this many clients their distances are not computed."""


@dataclass(frozen=True)
class Lined(Featured):
    """A scheme that goes along a line of clients."""

    by: Annotated[
        str, WordOrQuantity(("sizes", "labels", "public-labels", "updates", "shuffled"))
    ] = "sizes"

    def order(self, state: Features, federation: Federation) -> Ints:
        """(n,) the clients as they stand on the line; equals in an order drawn once per run."""
        if self.by == "sizes":
            return by_decreasing(federation.shares.parts, Ties(state.seed))
        shuffled = permutation(stream(state.seed, "line"), len(federation))
        if self.by == "shuffled":
            return shuffled
        here = shuffled[federation.shares.parts[shuffled] > 0]
        if len(here) > MOST_CLIENTS:
            raise TooLarge(
                f"{self.name} by {self.by} compares all pairs of clients, at most {MOST_CLIENTS}; "
                f"there are {len(here)}. Use balanced, or by='sizes'."
            )
        near = here[leaf_order(self.features(state, federation)[here])]
        return np.concatenate([near, np.setdiff1d(shuffled, near)])
