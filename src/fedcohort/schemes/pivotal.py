"""Pivotal sampling along a line of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core import Citation, Claim, Federation, cohort_size
from fedcohort.designs import Pivotal as Design
from fedcohort.schemes._features import Features
from fedcohort.schemes._line import Lined


@dataclass(frozen=True)
class Pivotal(Lined):
    """m distinct clients by duels along a line: whoever is undecided meets the next.

    Client i has the mass m p_i (1 where that is more; the others share the rest). Of two undecided
    ones with masses a and b one takes a + b, or is in and the other keeps a + b - 1, such that
    each keeps its mean. Weights are 1/m each, p_i for those who are always there, and sum to 1.

    *No aggregate varies more than under MD sampling*, whatever the order and the updates, and much
    less where neighbours on the line are alike. Chances and covariances are exact.

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

    Where we differ: nothing; masses are integers, so that chances are exact.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([1, 1, 1, 1])
    >>> pivotal = scheme("pivotal", m=2, by="shuffled")
    >>> Selector(pivotal, federation, seed=0).design().covariance().round(4)[0]
    array([ 0.0625,  0.    , -0.0625,  0.    ])
    """

    name: ClassVar[str] = "pivotal"
    paper: ClassVar[Citation] = Citation(
        "Deville, Tillé",
        "Unequal Probability Sampling without Replacement through a Splitting Method",
        "Biometrika",
        1998,
        "the pivotal method; never worse than MD: Chauvet and Ruiz-Gazen (2017)",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {
            Claim.UNBIASED,
            Claim.SUMS_TO_ONE,
            Claim.EXACTLY_M,
            Claim.NO_WORSE_THAN_MD,
            Claim.NO_SUM_WORSE_THAN_MD,
        }
    )

    def given(self, state: Features, federation: Federation) -> Design:
        m = cohort_size(self.m, federation, self.name)
        return Design.proportional(federation.shares, m, self.order(state, federation))
