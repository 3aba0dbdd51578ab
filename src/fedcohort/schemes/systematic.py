"""Systematic sampling along a line of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core import Citation, Claim, Federation, cohort_size
from fedcohort.designs import Systematic as Design
from fedcohort.schemes._features import Features
from fedcohort.schemes._line import Lined


@dataclass(frozen=True)
class Systematic(Lined):
    """m distinct clients at equal steps along a line on which neighbours are alike.

    Client i covers m p_i of the line (1 where that is more; the others share the rest), one
    start is drawn, and those at equal steps from it are taken. Their weights are 1/m each, p_i
    for those who are always there, and sum to 1. The law has at most n cohorts and is exact.

    Every client's weight varies less than under MD sampling. *An aggregate may vary more*: of
    four clients in the order +1, -1, +1, -1 two are both +1 or both -1, variance 1 against 1/2.
    `pivotal` goes along the same line and can never do that.

    Parameters
    ----------
    m
        How many clients.
    by
        The order: ``"sizes"``, largest first; ``"shuffled"``, once per run; ``"labels"`` (or
        ``"public-labels"``, or any quantity by name), asked once, and ``"updates"``, those sent
        last, by a tree of similar clients.
    epsilon
        Privacy loss of one sample by its labels; None: no noise.
    classes
        Labels are summed over so many groups of classes; None: each class.
    sketch
        Numbers that are kept of an update.

    Where we differ: exact integers; a client with m p_i >= 1 is taken always, where Madow's may
    come twice.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([5, 4, 3, 2, 1])
    >>> design = Selector(scheme("systematic", m=3), federation, seed=0).design()
    >>> sorted(cohort.clients.tolist() for _, cohort in design.enumerate())
    [[0, 1, 2], [0, 1, 3], [0, 2, 4]]
    """

    name: ClassVar[str] = "systematic"
    paper: ClassVar[Citation] = Citation(
        "Madow",
        "On the Theory of Systematic Sampling, II",
        "Annals of Mathematical Statistics",
        1949,
        "sampling with unequal chances from a list",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.EXACTLY_M, Claim.NO_WORSE_THAN_MD}
    )

    def given(self, state: Features, federation: Federation) -> Design:
        m = cohort_size(self.m, federation, self.name)
        return Design.proportional(federation.shares, m, self.order(state, federation))
