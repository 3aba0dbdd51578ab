"""Clustered sampling by sample size (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedcohort.core import Citation, Claim, Federation, Flag, OneOf, RoundContext, Scheme, Whole
from fedcohort.designs import Rows
from fedcohort.maths.draws import below
from fedcohort.schemes._ties import Ties, by_decreasing


@dataclass(frozen=True)
class ClusteredSize(Scheme[Ties]):
    """m different distributions, one draw from each: less variance than MD, still unbiased.

    Clients stand on a line by decreasing size, client i over a length m n_i; the line is cut
    into m pieces of length M = sum n, and one client is drawn from each piece with probability
    proportional to its length there. Exact integers throughout.

    Parameters
    ----------
    m
        Number of draws.
    ties
        Order of clients of equal size: ``"shuffled"`` once per run, or by ``"index"``.
    dedicate_large
        Give a client with m p_i >= 1 its floor(m p_i) whole pieces first, as the proof of
        Theorem 3 has it; the published algorithm may let it straddle, with more variance.

    Where we differ: the printed Algorithm 1 is wrong (line 13 stores a cumulative remainder,
    line 3 starts at the wrong row); the interval form is what its proof describes. The paper is
    silent on ties. With ties by index and clients stored class by class the scheme silently
    becomes the oracle `target`, hence the shuffle.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([5, 4, 3, 2, 1])
    >>> Selector(scheme("clustered-size", m=2), federation, seed=0).design().entries.mass
    array([10,  5,  3,  6,  4,  2])
    """

    m: Annotated[int, Whole(1)] = 10
    ties: Annotated[str, OneOf(("shuffled", "index"))] = "shuffled"
    dedicate_large: Annotated[bool, Flag()] = False

    name: ClassVar[str] = "clustered-size"
    paper: ClassVar[Citation] = Citation(
        "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
        "Clustered Sampling: Low-Variance and Improved Representativity for Clients Selection "
        "in Federated Learning",
        "ICML",
        2021,
        "Algorithm 1, Theorem 3",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )
    State: ClassVar[type] = Ties

    def start(self, federation: Federation, rng: Any) -> Ties:
        return Ties(int(below(rng, 2**62, 1)[0]) if self.ties == "shuffled" else -1)

    def design(self, state: Ties, federation: Federation, context: RoundContext) -> Rows:
        return federation.remember((self, state), lambda fed: self._rows(state, fed))

    def _rows(self, state: Ties, federation: Federation) -> Rows:
        order = by_decreasing(federation.shares.parts, state)
        return Rows.along(order, federation.shares, self.m, self.dedicate_large)
