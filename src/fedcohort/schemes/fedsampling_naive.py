"""A fixed share of everybody's samples: what one may do without knowing how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedcohort.core import (
    Citation,
    Claim,
    Cohort,
    Federation,
    NoState,
    OneOf,
    Real,
    RoundContext,
    Scheme,
)
from fedcohort.core.depending import depending
from fedcohort.core.disclosure import EVERYONE, SHARES, TRAINING, Disclosure
from fedcohort.core.errors import BadParameter

COUNTS = Disclosure(
    "size", "every round", "how many of its samples take part, unless securely aggregated"
)


@dataclass(frozen=True)
class FedSamplingNaive(Scheme[NoState]):
    """All clients take part with a fixed share of their samples.

    What one may do without knowing N (the paper's Section 3.3): the rate is fixed, each client
    averages over the samples it drew, and the server averages the clients. There are two forms.
    If all clients count the same, nobody says anything about sizes; but a sample of a small client
    counts for more than one of a large client, so the step is biased wherever sizes go with the
    data. If clients count by the number of samples that they drew, every sample counts the same;
    but these numbers give the sizes away.

    Parameters
    ----------
    rate
        The probability with which each sample takes part.
    weighting
        ``"uniform"``: all clients count the same; ``"counts"``: by the number of samples drawn.
    answering
        The share of clients that is expected to have drawn a sample. The others send zero, and
        the average is meant over those who did not: the weight is 1 / (n answering). Must be 1
        with ``weighting=counts``.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([60, 30, 10])
    >>> Selector(scheme("fedsampling-naive", rate=0.5), federation).select().weights
    array([0.33333333, 0.33333333, 0.33333333])
    """

    rate: Annotated[float, Real(0, 1, open_low=True)] = 0.01
    answering: Annotated[float, Real(0, 1, open_low=True)] = 1.0
    weighting: Annotated[str, OneOf(("uniform", "counts"))] = "uniform"

    name: ClassVar[str] = "fedsampling-naive"
    draws_once: ClassVar[bool] = True
    subsampling: ClassVar[bool] = True
    counts_samples: ClassVar[bool] = depending(False, lambda scheme: scheme.divides)
    divides: ClassVar[bool] = depending(False, lambda scheme: scheme.weighting == "counts")
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset[Claim](),
        lambda scheme: frozenset({Claim.EVEN_OVER_SAMPLES} if scheme.divides else ()),
    )
    paper: ClassVar[Citation] = Citation(
        "Tao Qi, Fangzhao Wu, Lingjuan Lyu, Yongfeng Huang, Xing Xie",
        "FedSampling: A Better Sampling Strategy for Federated Learning",
        "IJCAI",
        2023,
        "Section 3.3, the naive method",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.divides and self.answering != 1:
            raise BadParameter("answering", self.name, "1 with weighting='counts'", self.answering)

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        everyone = federation.present
        if self.divides:  # the sum is divided by the number of samples that took part
            return Cohort.of(everyone, 1.0, data_rate=self.rate, per_sample=True)
        return Cohort.of(everyone, 1.0 / (len(everyone) * self.answering), data_rate=self.rate)

    def disclosures(self, rounds: int) -> tuple[Disclosure, ...]:
        if self.divides:
            return (EVERYONE, TRAINING, COUNTS)
        return (EVERYONE, TRAINING, SHARES)
