"""A fixed share of everybody's samples: what one may do without knowing how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedcohort.core import Citation, Cohort, Federation, NoState, Real, RoundContext, Scheme
from fedcohort.core.disclosure import EVERYONE, SHARES, TRAINING, Disclosure


@dataclass(frozen=True)
class FedSamplingNaive(Scheme[NoState]):
    """All clients take part with a fixed share of their samples, and all count the same.

    What one may do without knowing N (the paper's Section 3.3): the rate is fixed, each client
    averages over the samples it drew, and the server averages the clients. Nobody says
    anything about sizes; but a sample of a small client counts for more than one of a large
    client, so the step is biased wherever sizes go with the data.

    Parameters
    ----------
    rate
        The probability with which each sample takes part.
    answering
        The share of clients that is expected to have drawn a sample. The others send zero, and
        the average is meant over those who did not: the weight is 1 / (n answering).

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([60, 30, 10])
    >>> Selector(scheme("fedsampling-naive", rate=0.5), federation).select().weights
    array([0.33333333, 0.33333333, 0.33333333])
    """

    rate: Annotated[float, Real(0, 1, open_low=True)] = 0.01
    answering: Annotated[float, Real(0, 1, open_low=True)] = 1.0

    name: ClassVar[str] = "fedsampling-naive"
    draws_once: ClassVar[bool] = True
    subsampling: ClassVar[bool] = True
    paper: ClassVar[Citation] = Citation(
        "Tao Qi, Fangzhao Wu, Lingjuan Lyu, Yongfeng Huang, Xing Xie",
        "FedSampling: A Better Sampling Strategy for Federated Learning",
        "IJCAI",
        2023,
        "Section 3.3, the naive method",
    )

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        everyone = federation.present
        return Cohort.of(everyone, 1.0 / (len(everyone) * self.answering), data_rate=self.rate)

    def disclosures(self, rounds: int) -> tuple[Disclosure, ...]:
        return (EVERYONE, TRAINING, SHARES)
