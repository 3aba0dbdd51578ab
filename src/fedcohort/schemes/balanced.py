"""Balanced sampling by the cube method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core import (
    Citation,
    Claim,
    Federation,
    Flag,
    Maybe,
    OneOf,
    Whole,
    cohort_size,
)
from fedcohort.designs import Cube
from fedcohort.schemes._features import Featured, Features

MOST_COMPONENTS = 16
"""More are not balanced unless they are asked for: nothing is gained by them."""


@dataclass(frozen=True)
class Balanced(Featured):
    """m distinct clients that look like the federation: its labels, or its updates, on average.

    The cube method walks at random from the chances m p_i to a cohort, along directions in which
    the sums of the features, and the number of clients, do not change. Chances are exact, so the
    aggregate is unbiased whatever the features are; weights are 1/m each, p_i for those with
    m p_i >= 1, and sum to 1. As far as updates follow from the features they hardly vary any more.

    That no aggregate varies more than under MD sampling is no theorem here, as it is of `pivotal`.
    The covariance is exact for few clients, else the approximation of Deville and Tillé (2005).

    Parameters
    ----------
    m
        How many clients.
    by
        What is balanced: ``"labels"``, class shares, asked once (``"public-labels"``: of the public
        part of their data); ``"updates"``, a sketch of those sent last (a client not seen yet is
        at the mean); ``"sizes"``; or any number of each client by name, such as ``height``.
    epsilon
        Privacy loss of one sample by its labels; None: no noise.
    classes
        Labels are summed over so many groups of classes; None: each class.
    sketch
        Numbers that are kept of an update.
    components
        How many main components of the features are balanced; None: m - 1, at most 16.
    landing
        When too few clients are undecided for all components: ``"drop"`` gives them up one by one;
        ``"program"`` finds the best end by linear programming, with less variance.
    local
        Whether each step of the walk looks at neighbours (local cube): cohorts are spread as well
        as balanced. Time grows with n^2.

    Where we differ: integers throughout, many windows at a time; features are centred and turned
    to their main components first, because the fixed size balances the mean already.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([10] * 4)
    >>> told = lambda ask: [[9, 1], [8, 2], [1, 9], [2, 8]]
    >>> law = Selector(scheme("balanced", m=2), federation, seed=0, ask=told).design()
    >>> law.inclusion(), law.second_moments
    (array([0.5, 0.5, 0.5, 0.5]), 'exact, by enumeration')
    """

    components: Annotated[int | None, Maybe(Whole(1, 64))] = None
    landing: Annotated[str, OneOf(("drop", "program"))] = "drop"
    local: Annotated[bool, Flag()] = False

    name: ClassVar[str] = "balanced"
    paper: ClassVar[Citation] = Citation(
        "Deville, Tillé",
        "Efficient Balanced Sampling: the Cube Method",
        "Biometrika",
        2004,
        "flight and landing; windows as Chauvet and Tillé (2006)",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.EXACTLY_M, Claim.NO_WORSE_THAN_MD}
    )

    def given(self, state: Features, federation: Federation) -> Cube:
        m = cohort_size(self.m, federation, self.name)
        most = min(m - 1, MOST_COMPONENTS) if self.components is None else self.components
        features = self.features(state, federation)
        program = self.landing == "program"
        return Cube.balancing(federation.shares, m, features, most, program, self.local)
