"""A share of the places goes to clients drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.cohort import Cohort, Reserve
from fedcohort.core.federation import Federation
from fedcohort.core.parameters import Real
from fedcohort.core.scheme import Claim
from fedcohort.core.types import Bools, Ints
from fedcohort.maths._draws import coins, distinct
from fedcohort.server.guards.base import Guard

WHOLE = 2**32


@dataclass(frozen=True)
class Explore(Guard):
    """Every place goes with probability ``share`` to a client that was not chosen, at random.

    For schemes that choose by what clients say, so that nobody is kept out for good: neither by
    liars that take its place nor by a loss that it told long ago. It weighs what the place
    weighs. A cohort that was drawn from a law stays as it is: there everybody has a chance.

    Parameters
    ----------
    share
        Of the places, on average.
    """

    share: Annotated[float, Real(0, 1)] = 0.1

    name: ClassVar[str] = "explore"
    withdraws: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.NO_WORSE_THAN_MD, Claim.NO_SUM_WORSE_THAN_MD}
    )

    def chosen(self, cohort: Cohort, federation: Federation, rng: np.random.Generator) -> Cohort:
        others = np.setdiff1d(federation.present, cohort.clients)
        given = coins(rng, np.full(len(cohort), round(self.share * WHOLE)), WHOLE)
        places = np.flatnonzero(given)[: len(others)]
        if not len(places):
            return cohort
        clients = cohort.clients.copy()
        clients[places] = others[distinct(rng, len(others), len(places))]
        order = np.argsort(clients)
        return replace(
            cohort,
            clients=clients[order],
            weights=cohort.weights[order],
            draws=cohort.draws[order],
            reserve=_without(cohort.reserve, clients, order),
        )


def _without(reserve: Reserve | None, clients: Ints, order: Ints) -> Reserve | None:
    """A reserve without those who train now; the places keep their groups."""
    if reserve is None:
        return None
    left: Bools = ~np.isin(reserve.clients, clients)
    return Reserve(
        reserve.clients[left], reserve.ranks[left], reserve.groups[left], reserve.members[order]
    )
