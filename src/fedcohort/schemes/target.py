"""Target sampling: the oracle that knows which clients are alike."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core import (
    LABEL_HISTOGRAM,
    Ask,
    Citation,
    Claim,
    Federation,
    Labels,
    Maybe,
    RoundContext,
    Scheme,
    Signal,
    Whole,
)
from fedcohort.core.depending import depending
from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Array, Ints
from fedcohort.designs import Rows


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every client."""

    of: Annotated[Ints, Shaped("n", low=0)]


@dataclass(frozen=True)
class Target(Scheme[Groups]):
    """One draw from each group of similar clients: what clustered sampling would like to be.

    Clients stand on a line group by group and the line is cut into m equal pieces as in
    Algorithm 1. With m groups of equal mass every piece is one group (the paper's "target");
    with other groups the pieces follow them as closely as unbiasedness allows.

    Parameters
    ----------
    m
        Number of draws.
    groups
        The group of every client. None: every client is asked for its label histogram once
        and belongs to its most frequent class.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([5, 5, 5, 5])
    >>> oracle = scheme("target", m=2, groups=[0, 1, 0, 1])
    >>> Selector(oracle, federation, seed=0).design().entries.client
    array([0, 2, 1, 3])
    """

    m: Annotated[int, Whole(1)] = 10
    groups: Annotated[tuple[int, ...] | None, Maybe(Labels())] = None

    name: ClassVar[str] = "target"
    paper: ClassVar[Citation] = Citation(
        "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
        "Clustered Sampling: Low-Variance and Improved Representativity for Clients Selection "
        "in Federated Learning",
        "ICML",
        2021,
        "Section 6, 'target' sampling",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )
    asks: ClassVar[frozenset[Signal]] = depending(
        frozenset({LABEL_HISTOGRAM}),
        lambda scheme: frozenset({LABEL_HISTOGRAM} if scheme.groups is None else ()),
    )
    oracle: ClassVar[bool] = True
    State: ClassVar[type] = Groups

    def start(self, federation: Federation, rng: Any) -> Generator[Ask, Array, Groups]:
        if self.groups is None:
            everyone = np.arange(len(federation))
            histograms = yield Ask(LABEL_HISTOGRAM, everyone)
            return Groups(most_frequent(histograms))
        if len(self.groups) != len(federation):
            raise BadParameter(
                "groups",
                self.name,
                f"one group per client ({len(federation)})",
                f"{len(self.groups)} groups",
            )
        return Groups(np.array(self.groups, dtype=np.int64))

    def design(self, state: Groups, federation: Federation, context: RoundContext) -> Rows:
        return federation.remember(
            (self, state.of.tobytes()),
            lambda fed: Rows.along(_line(state, fed), fed.shares, self.m),
        )


def _line(groups: Groups, federation: Federation) -> Ints:
    """Group by group; inside a group by decreasing size, so that positions do not matter."""
    by_size = np.argsort(-federation.shares.parts, kind="stable")
    return by_size[np.argsort(groups.of[by_size], kind="stable")]


def most_frequent(histograms: Array) -> Ints:
    """(n, classes) -> (n,) the class each client has most of; equals go to the first."""
    counts = np.asarray(histograms)
    if counts.ndim != 2 or counts.dtype.kind not in "iuf" or not np.all(counts >= 0):  # NaN too
        raise BadInput("A label histogram must be a row of numbers of at least 0 per client.")
    if counts.shape[1] == 0:
        raise BadInput("A label histogram must have at least one class; got none.")
    classes: Ints = np.argmax(counts, axis=1)
    return classes
