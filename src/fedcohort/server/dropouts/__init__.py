"""What the server does about clients that were chosen and do not answer. One rule per file.

The problem. Client i answers with probability a_i, and a_i often goes with its data: phones of
the poor, hospitals at night. The mean of whoever answered is then wrong, by 20 % in common
settings, and neither inviting more clients nor redrawing from everyone repairs it, because
those who answer are still the same kind.

Symbols: omega_j the weight of client j as drawn, ``t`` the exchanges a draw may take (1, plus
``attempts`` replacements), r_j the chance of j in its *pool* (its row of clustered sampling, its
stratum), A = sum_j r_j a_j the availability of that pool.

The rule. A draw whose client fails is made again in the same pool, up to ``attempts`` times. It
then ends at j with probability r_j a_j (1 - (1 - A)^t) / A instead of r_j, so the answer weighs::

    h_j = omega_j * A / (a_j (1 - (1 - A)^t))          (omega_j / a_j without replacements)

Alone, these weights are unbiased, but their sum varies with the number of answers. So a client
that does not answer counts as the mean of those that do, and one that does as that mean plus
h_j / omega_j times what its update differs from it (`Hajek`, ``scale=difference``). The mean leaves
out the client itself, so whether it answers is independent of it, and the expected weight stays
omega_j whatever the weights are. Scaling the h_j to the sum that was drawn (``scale=weights``) is
biased where weights differ, as those of ``uniform`` do.

Availability is learnt from *earlier* rounds alone, as 1/a = (asked + 1) / (answered + 1), which is
unbiased but for (1 - a)^(asked + 1) / a; a client's answer of the round itself must not enter, or
the correction would be too small.

Where pools overlap (the neighbours of each client, in designs that spread or balance a cohort),
A / (1 - (1 - A)^t) becomes 1 / v_j, v_j how often a draw comes to j (`Pools.visits`), and the
stand-ins of all who are missing are drawn at once, by the design itself (`Pools.together`).

Where all members of a pool are alike this is the plain redraw, and the best there is; where they
are not, the weights see to it.

A scheme that chooses by rank (the highest losses, the fastest devices) has no law and no pools.
Its cohort may bring a reserve instead: whoever comes next takes the place of who does not answer,
with all that it weighs. Availability does not enter there: had the scheme known who would answer,
it would have chosen just so.

Other packages add theirs through the entry point group ``fedcohort.drop_out_rules``.
"""

from __future__ import annotations

from typing import Any

from fedcohort.core.registry import Kind
from fedcohort.server.dropouts._attendance import Attendance
from fedcohort.server.dropouts._settling import Completed, settle
from fedcohort.server.dropouts.base import DropOutRule, Turnout
from fedcohort.server.dropouts.hajek import Hajek
from fedcohort.server.dropouts.none import AsDrawn
from fedcohort.server.dropouts.redraw import Redraw
from fedcohort.server.dropouts.survivors import Survivors

__all__ = [
    "RULES",
    "AsDrawn",
    "Attendance",
    "Completed",
    "DropOutRule",
    "Hajek",
    "Redraw",
    "Survivors",
    "Turnout",
    "dropout_rule",
    "settle",
]

RULES: Kind[DropOutRule] = Kind("drop-out rule", __name__, DropOutRule, default="redraw")


def dropout_rule(which: DropOutRule | str | None = None, **parameters: Any) -> DropOutRule:
    """The rule of that name; None is the default, and a rule is itself.

    >>> dropout_rule("redraw", attempts=1)
    Redraw(scale='difference', attempts=1)
    """
    return RULES.build(which, **parameters)
