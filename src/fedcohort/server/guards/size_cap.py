"""No client is believed to hold more than so many times an equal share of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core.federation import Federation
from fedcohort.core.parameters import Real
from fedcohort.core.scheme import Claim
from fedcohort.server.caps import cap_shares
from fedcohort.server.guards.base import Guard


@dataclass(frozen=True)
class SizeCap(Guard):
    """Reported sizes are cut so that no importance is above ``times`` / n.

    A size is what a client says it is, and in every unbiased scheme it is the client's influence.
    A cap relative to the median (`fedcohort.server.caps.cap_sizes`) stops absurd lies; this one
    bounds what any lie is worth: a share f of the clients never has more than ``times`` f.
    Importances that are the server's own (``importance="equal"``, a mapping) are not touched.

    Parameters
    ----------
    times
        How many equal shares a client may hold.

    >>> from fedcohort import Federation
    >>> SizeCap(times=2).admitted(Federation.from_sizes([10, 10, 10, 10, 10**6])).sizes
    array([10, 10, 10, 10, 26])
    """

    times: Annotated[float, Real(1, open_low=True)] = 1.75

    name: ClassVar[str] = "size-cap"
    withdraws: ClassVar[frozenset[Claim]] = frozenset(
        {
            Claim.UNBIASED,
            Claim.NO_WORSE_THAN_MD,
            Claim.NO_SUM_WORSE_THAN_MD,
            Claim.EVEN_OVER_SAMPLES,
        }
    )

    def admitted(self, federation: Federation) -> Federation:
        if federation.sizes is None or federation.shares.rounded:  # the server's own
            return federation
        told = federation.sizes.tolist()
        capped = cap_shares(told, self.times)
        return federation if capped == told else Federation(sizes=capped, ids=federation.ids)
