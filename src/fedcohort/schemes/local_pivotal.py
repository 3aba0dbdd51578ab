"""Pivotal sampling among neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core import Citation, Claim, Federation, cohort_size
from fedcohort.designs import LocalPivotal as Design
from fedcohort.schemes._features import Featured, Features


@dataclass(frozen=True)
class LocalPivotal(Featured):
    """m distinct clients, spread: a random undecided client and its nearest one meet in a duel.

    As `pivotal`, without a line: clients with similar labels or updates rarely meet in a cohort.
    Weights are 1/m each, p_i for those with m p_i >= 1, and sum to 1. *No aggregate varies more
    than under MD sampling.* Chances are exact; the covariance is for few clients only, and for
    more an approximation that does not see the spread.

    Parameters
    ----------
    m
        How many clients.
    by
        Where clients are: ``"labels"``, their class shares, asked once (``"public-labels"``: of the
        public part of their data); ``"updates"``, a sketch of those sent last (a client not seen
        yet is at the mean); ``"sizes"``; or any number of each client by name, such as ``height``.
    epsilon
        Privacy loss of one sample by its labels; None: no noise.
    classes
        Labels are summed over so many groups of classes; None: each class.
    sketch
        Numbers that are kept of an update.

    Where we differ: of equally near clients the first is met, not a random one.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([10] * 4)
    >>> told = lambda ask: [[9, 1], [8, 2], [1, 9], [2, 8]]
    >>> law = Selector(scheme("local-pivotal", m=2), federation, seed=0, ask=told).design()
    >>> sorted(cohort.clients.tolist() for _, cohort in law.enumerate())
    [[0, 2], [0, 3], [1, 2], [1, 3]]
    """

    name: ClassVar[str] = "local-pivotal"
    paper: ClassVar[Citation] = Citation(
        "Grafström, Lundström, Schelin",
        "Spatially Balanced Sampling through the Pivotal Method",
        "Biometrics",
        2012,
        "LPM2; never worse than MD: Chauvet and Ruiz-Gazen (2017)",
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
        return Design.proportional(federation.shares, m, self.features(state, federation))
