"""A guard: one measure against clients that lie, at the points of a round where it can act."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Ask, Signal
from fedcohort.core.design import Design
from fedcohort.core.disclosure import Disclosure
from fedcohort.core.federation import Federation
from fedcohort.core.parameters import Checked
from fedcohort.core.scheme import Claim, Scheme
from fedcohort.core.types import Array, Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a guard sees of a round that counted."""

    federation: Federation
    drawn: Cohort
    """As it was chosen."""
    law: Design | None
    """What it was drawn from; None where there is none."""
    cohort: Cohort
    """As it counted: after drop-outs."""
    asked: tuple[tuple[Ask, Array], ...]
    """The questions of the round as they were put, with the answers as they came."""
    lengths: Floats | None
    """(k,) of the updates of ``cohort`` as they came; None where nobody saw them."""
    counted: Floats | None
    """(k,) of the updates as they were folded."""


def wanted(scheme: Scheme[Any]) -> int | None:
    """How many clients a scheme wants in a round; None where it does not say."""
    m = scheme.parameters.get("m")
    return m if isinstance(m, int) else None


class Guard(Checked, ABC):
    """Configuration only; what it remembers goes in and comes out. By default it does nothing.

    Class attributes
    ----------------
    name
        As in ``hardened="clip:times=3"``.
    withdraws
        The claims of a scheme that no longer hold behind it.
    asks
        Signals that it puts in the place of others.
    needs_rows
        Whether single updates must be seen, so that a secure sum does not do.
    measures
        Whether it needs the lengths of updates.
    """

    name: ClassVar[str]
    withdraws: ClassVar[frozenset[Claim]] = frozenset()
    asks: ClassVar[frozenset[Signal]] = frozenset()
    needs_rows: ClassVar[bool] = False
    measures: ClassVar[bool] = False

    def start(self, federation: Federation, scheme: Scheme[Any], rng: np.random.Generator) -> Any:
        """What it remembers before the first round, a frozen dataclass; None for nothing."""
        return None

    def moved(self, state: Any, came_from: Ints) -> Any:
        """The memory of other clients: ``came_from[j]`` is the old position of j, or -1."""
        return state

    def admitted(self, federation: Federation) -> Federation:
        """The clients as they are believed."""
        return federation

    def barred(self, state: Any, federation: Federation, m: int | None) -> Bools | None:
        """(n,) who of the clients in ``federation.present`` must sit this round out.

        ``m`` is how many clients the scheme wants in a round, None where it does not say.
        """
        return None

    def question(self, state: Any, ask: Ask) -> Ask:
        """What clients are asked instead."""
        return ask

    def answer(self, ask: Ask, rows: Array) -> Array:
        """What the scheme hears of the answers (k, ...) to a question as it was put."""
        return rows

    def disclosed(self, told: Disclosure, scheme: Scheme[Any]) -> Disclosure:
        """What the server learns instead of what a scheme would tell it."""
        return told

    def chosen(self, cohort: Cohort, federation: Federation, rng: np.random.Generator) -> Cohort:
        """The cohort, where it was not drawn from a law."""
        return cohort

    def compares(self, state: Any) -> bool:
        """Whether `factors` must be told the lengths of all updates of a round at once.

        They are held in memory until the last one came; else they are folded as they come.
        """
        return False

    def factors(self, state: Any, lengths: Floats) -> Floats | None:
        """(b,) what to multiply updates of these lengths with; None: they stay."""
        return None

    def after(self, state: Any, outcome: Outcome) -> Any:
        """What it remembers after a round that counted."""
        return state
