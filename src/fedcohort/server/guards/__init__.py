"""What the server does about clients that lie: guards, one per file, and `hardened`, all of them.

A guard acts on a round from outside, so it works with every scheme, on every carrier. Each stands
alone (``hardened="clip:times=3"``), several stand together, and ``hardened=True`` is the
composition that was measured (docs/reliability.md; decision in docs/decisions/hardened.md). Other
packages add theirs through the entry point group ``fedcohort.guards``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.registry import Kind
from fedcohort.core.scheme import Claim, Scheme
from fedcohort.server.guards.base import Guard, Outcome
from fedcohort.server.guards.clip import Clip
from fedcohort.server.guards.explore import Explore
from fedcohort.server.guards.losses import Losses
from fedcohort.server.guards.rate_cap import RateCap
from fedcohort.server.guards.size_cap import SizeCap

__all__ = [
    "GUARDS",
    "HARDENED",
    "Clip",
    "Explore",
    "Guard",
    "Hardened",
    "Losses",
    "Outcome",
    "RateCap",
    "SizeCap",
    "guards",
    "withdrawn",
]

GUARDS: Kind[Guard] = Kind("guard", __name__, Guard)
HARDENED: tuple[Guard, ...] = (SizeCap(), RateCap(), Losses(), Explore(), Clip())
"""What ``hardened=True`` stands for."""
Hardened: TypeAlias = bool | str | Guard | Iterable[Guard | str] | None


def guards(hardened: Hardened = None) -> tuple[Guard, ...]:
    """The guards that a word or a list stands for: none, all as measured, or just these.

    >>> guards(True) == HARDENED, guards(False)
    (True, ())
    >>> guards("clip:times=3+rate-cap")
    (Clip(times=3.0, length=None), RateCap(times=1.75, step=True))
    """
    if hardened is None or isinstance(hardened, bool):
        return HARDENED if hardened else ()
    if isinstance(hardened, Guard):
        return (hardened,)
    if isinstance(hardened, str):
        hardened = re.split(r"\+(?=[A-Za-z./])", hardened)  # in 1e+5 a digit follows
    if not isinstance(hardened, Iterable):
        must = "True, False, or guards by name"
        raise BadParameter("hardened", "a run", must, hardened)
    built = tuple(GUARDS.build(each) for each in hardened)
    names = [guard.name for guard in built]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"'hardened' names the guard '{twice}' twice; name it once.")
    return built


class Withdraws(Protocol):
    """What may take claims back: a guard, an aggregator."""

    @property
    def withdraws(self) -> frozenset[Claim]: ...


def withdrawn(
    scheme: Scheme[Any] | type[Scheme[Any]], behind: Iterable[Withdraws]
) -> frozenset[Claim]:
    """The claims of a scheme that no longer hold behind these guards, or with this aggregator.

    >>> from fedcohort import scheme
    >>> [claim.name for claim in withdrawn(scheme("uniform"), HARDENED)]
    ['UNBIASED']
    """
    given_up = frozenset[Claim]().union(*(guard.withdraws for guard in behind))
    return scheme.claims & given_up
