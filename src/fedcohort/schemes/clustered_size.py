"""Clustered sampling by sample size (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core import Citation, Claim, Federation, Flag, OneOf, RoundContext, Scheme, Whole
from fedcohort.core.depending import depending
from fedcohort.core.errors import BadParameter
from fedcohort.designs import Rows
from fedcohort.maths._draws import below
from fedcohort.maths._groups import evened
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
    version
        ``"printed"``: line 13 as it stands in the paper, for a reproduction. A client then has
        all that was laid in its distribution so far. The distributions do not sum to 1, so each
        is drawn in proportion, and the scheme is biased. Needs m p_i < 1 for every client: with
        line 3 as printed the first distribution stays empty otherwise.

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
    version: Annotated[str, OneOf(("corrected", "printed"))] = "corrected"

    name: ClassVar[str] = "clustered-size"
    paper: ClassVar[Citation] = Citation(
        "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
        "Clustered Sampling: Low-Variance and Improved Representativity for Clients Selection "
        "in Federated Learning",
        "ICML",
        2021,
        "Algorithm 1, Theorem 3",
    )
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset({Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}),
        lambda scheme: frozenset({Claim.SUMS_TO_ONE}) if scheme.version == "printed"
        else ClusteredSize.claims,
    )  # fmt: skip
    State: ClassVar[type] = Ties

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.version == "printed" and self.dedicate_large:
            must = "False with version='printed'"
            raise BadParameter("dedicate_large", self.name, must, self.dedicate_large)

    def start(self, federation: Federation, rng: Any) -> Ties:
        return Ties(int(below(rng, 2**62, 1)[0]) if self.ties == "shuffled" else -1)

    def design(self, state: Ties, federation: Federation, context: RoundContext) -> Rows:
        return federation.remember((self, state), lambda fed: self._rows(state, fed))

    def _rows(self, state: Ties, federation: Federation) -> Rows:
        order = by_decreasing(federation.shares.parts, state)
        rows = Rows.along(order, federation.shares, self.m, self.dedicate_large)
        return rows if self.version == "corrected" else self._printed(rows)

    def _printed(self, rows: Rows) -> Rows:
        """The same rows with line 13 as printed: a client's mass is where it ends in its row."""
        row, client, mass = rows.entries
        if mass[0] == rows.width:
            must = "below 1 / p_i of every client with version='printed'"
            raise BadParameter("m", self.name, must, self.m, "Use version='corrected'.")
        ends = np.cumsum(mass) % rows.width
        masses = evened(row, np.where(ends > 0, ends, mass))  # line 10 is right where a row ends
        return Rows.segments(client, masses, int(masses.sum()) // self.m, rows.n)
