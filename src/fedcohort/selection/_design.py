"""The design of a cohort: the probability law that it is drawn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fedcohort._internal import html
from fedcohort._internal.errors import TooLarge
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.selection._cohort import Cohort

# What a law says of one client's part in the sum: all that its price in privacy depends on.


@dataclass(frozen=True, eq=False)
class Participation:
    """How often each client may be drawn, what a draw weighs, and who gives way to it.

    The sum of a round is sum_i c_i v_i x_i with the counts c of the law. Where client i is drawn
    k times instead of never, the other summands can be *coupled*: drawn so that at most k times
    ``displaced`` of their weight differs. Independent clients displace nobody; in a cohort of
    fixed size, who comes in takes the place of somebody else.

    Parameters
    ----------
    at_least
        (n, k) the chance that a client is drawn 1, 2, ..., k times or more.
    weight
        (n,) v_i, what one draw weighs.
    displaced
        (n,) see above; inf where no coupling is known.
    how
        The law in a few words.
    """

    at_least: Floats
    weight: Floats
    displaced: Floats
    how: str

    @classmethod
    def once(cls, chance: Floats, weight: Floats, displaced: Floats, how: str) -> Participation:
        """Of a law that draws no client twice."""
        return cls(np.asarray(chance, dtype=np.float64)[:, None], weight, displaced, how)

    def cut(self, most: float) -> Participation:
        """The same where draws that weigh more than so much are cut to it."""
        given_way = np.where(np.isinf(self.displaced), np.inf, np.minimum(self.displaced, most))
        return replace(self, weight=np.minimum(self.weight, most), displaced=given_way)

    def open(self, weight: float) -> Participation:
        """The same where it may be known who took part, and a client counts once, for so much."""
        weights, unknown = np.full_like(self.weight, weight), np.full_like(self.weight, np.inf)
        return replace(self, at_least=self.at_least[:, :1], weight=weights, displaced=unknown)

    def certain(self, weight: float) -> Participation:
        """Everybody in every round, each for so much."""
        n = len(self.weight)
        return Participation.once(np.ones(n), np.full(n, weight), np.zeros(n), self.how)

    @property
    def largest_weight(self) -> float:
        """What one draw weighs at most."""
        possible = self.weight[self.at_least[:, 0] > 0]
        return float(possible.max(initial=0.0))


# The law of a cohort: what a scheme draws from, with its exact moments.
#
# A design is *a law of counts and a value per draw*: client i is drawn c_i times and its answer
# weighs omega_i = value_i * c_i. Whoever draws and whoever computes (theory, advice, tests)
# read the same object.

MATRIX_LIMIT = 5_000
"""Above this many clients a covariance is given as an operator only."""
OUTCOME_LIMIT = 200_000
"""Above this many outcomes a design is not enumerated."""


class Distinct(NamedTuple):
    """Mean and variance of the number of distinct clients in a cohort."""

    mean: float
    variance: float


class CovarianceBound(NamedTuple):
    """Alpha and gamma_i with E ||sum_i omega_i x_i||^2 at most as in Lemma 1 with them."""

    alpha: float
    gamma: Floats  # (n,)
    how: str


class Pool(NamedTuple):
    """The clients that may replace a client, and their probabilities."""

    clients: Ints  # a client may stand there more than once
    chances: Floats  # positive, any scale
    again: bool  # whether a client may be drawn that was drawn before
    rounded: bool = False  # whether the chances were measured, as floats


class Pools(ABC):
    """The clusters or strata of a design, in which a lost draw is made again."""

    @abstractmethod
    def of(self, client: int) -> Pool:
        """Return the clients that may replace a client that was drawn."""

    @abstractmethod
    def average(self, values: Floats) -> Floats:
        """(n,) the mean of values over the pool of each client, by chance; 1 without a pool."""

    def visits(self, answers: Floats, tries: int) -> Floats:
        """(n,) how often a draw comes to each client, in units of its own chance.

        A draw is made up to ``tries`` times, and a client answers with the chance ``answers``
        (n,). Where pools do not overlap, of mean A: 1 + (1 - A) + ... = (1 - (1 - A)^tries) / A.
        """
        average = np.minimum(1.0, self.average(answers))
        out: Floats = (1.0 - (1.0 - average) ** tries) / average
        return out

    def together(self, lost: Sequence[int], free: Bools, rng: Any) -> list[int | None] | None:
        """Stand-ins for lost draws, drawn at once among those free (n,), in the order of ``lost``.

        None for a draw whose pool is exhausted. None for all: each is drawn in its pool by itself.
        """
        return None


class Design(ABC):
    """The law of a cohort over n clients."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of clients, chosen or not."""

    @abstractmethod
    def draw(self, rng: Any) -> Cohort:
        """One cohort."""

    @property
    @abstractmethod
    def value(self) -> Floats:
        """(n,) the weight of one draw of each client."""

    @abstractmethod
    def expected_counts(self) -> Floats:
        """(n,) how often each client is drawn on average."""

    @abstractmethod
    def count_covariance_times(self, x: Floats) -> Floats:
        """(n, ...) the covariance matrix of the counts, times x."""

    @abstractmethod
    def count_variance(self) -> Floats:
        """(n,) variance of the counts."""

    @abstractmethod
    def inclusion(self) -> Floats:
        """(n,) probability that a client is in the cohort."""

    @abstractmethod
    def distinct(self) -> Distinct:
        """How many distinct clients a cohort has."""

    @abstractmethod
    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        """All outcomes of a small case, with exact probabilities and weights as Fractions."""

    @property
    def alpha(self) -> float | None:
        """The covariance ratio: Cov(omega_i, omega_j) = -alpha p_i p_j for all i != j.

        None where the pairs differ (clustered sampling).
        """
        return None

    @property
    def second_moments(self) -> str:
        """How variances and covariances are known: ``"exact"``, or by which approximation."""
        return "exact"

    def pools(self) -> Pools | None:
        """The clusters or strata of the design; None where there is only one, or none at all."""
        return None

    def participation(self) -> Participation | None:
        """What its price in privacy depends on; None where no amplification is known."""
        return None

    def picture(self) -> dict[str, Array]:
        """What a report may draw of the law, by the keys of `Scheme.picture`."""
        return {}

    def covariance_bound(self) -> CovarianceBound | None:
        """Exact where there is an `alpha`, an upper bound where one is known, else None."""
        if self.alpha is None:
            return None
        gamma = self.variance() + self.alpha * self.mean() ** 2
        return CovarianceBound(self.alpha, gamma, "exact (Lemma 1)")

    def mean(self) -> Floats:
        """(n,) expected weights."""
        return self.value * self.expected_counts()

    def variance(self) -> Floats:
        """(n,) variance of the weights."""
        out: Floats = self.value**2 * self.count_variance()
        return out

    def covariance_times(self, x: Floats) -> Floats:
        """(n,) or (n, d): the covariance matrix of the weights, times x."""
        value = self.value if x.ndim == 1 else self.value[:, None]
        out: Floats = value * self.count_covariance_times(value * x)
        return out

    def covariance(self) -> Floats:
        """(n, n) covariance of the weights; for large n use `covariance_times`."""
        if self.n > MATRIX_LIMIT:
            raise TooLarge(
                f"The covariance of {self.n} clients would have {self.n**2:.1e} entries; "
                "use covariance_times(x)."
            )
        return self.covariance_times(np.eye(self.n))

    def weight_sum_variance(self) -> float:
        """Variance of the sum of the weights."""
        return max(0.0, float(self.covariance_times(np.ones(self.n)).sum()))

    def aggregate_variance(self, x: Floats) -> float:
        """E ||sum_i omega_i x_i - E(...)||^2 for vectors x (n, d) or numbers x (n,)."""
        return max(0.0, float(np.sum(x * self.covariance_times(x))))

    def __repr__(self) -> str:
        draws = float(self.expected_counts().sum())
        clients = f"{self.n} {html.plural(self.n, 'client')}"
        drawn = f"{draws:g} {html.plural(draws, 'draw')} a round"
        return f"<{type(self).__name__} over {clients}: {drawn}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the chances, and what they come to."""
        inclusion, distinct = self.inclusion(), self.distinct()
        never = int(np.count_nonzero(inclusion <= 0))
        known: list[tuple[str, Any]] = [
            ("chance to be in a cohort", html.bars(inclusion, "inclusion of each client")),
            ("least, largest chance", " to ".join(map(html.number, _ends(inclusion)))),
            ("expected weight", html.bars(self.mean(), "expected weight of each client")),
            ("sum of the variances of weights", float(self.variance().sum())),
            ("variance of the sum of weights", self.weight_sum_variance()),
            ("distinct clients a round", f"{distinct.mean:.4g} ± {distinct.variance**0.5:.4g}"),
            ("never chosen", never or None),
            ("variances are", self.second_moments),
        ]
        return html.facts(repr(self).strip("<>"), known)


def _ends(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def too_many_outcomes() -> TooLarge:
    """The error of a design that has too many outcomes to enumerate."""
    return TooLarge(f"The design has over {OUTCOME_LIMIT} outcomes; enumerate a smaller case.")


def exact_outcomes(
    law: Iterator[tuple[Fraction, tuple[tuple[int, int], ...]]], value: list[Fraction]
) -> Iterator[tuple[Fraction, Cohort]]:
    """Turn exact count outcomes ((client, count), ...) into cohorts with Fraction weights."""
    for number, (probability, counts) in enumerate(law):
        if number >= OUTCOME_LIMIT:
            raise too_many_outcomes()
        drawn = [(client, count) for client, count in counts if count > 0]
        weights: Array = np.empty(len(drawn), dtype=object)
        weights[:] = [value[client] * count for client, count in drawn]
        yield (
            probability,
            Cohort.of(
                np.array([client for client, _ in drawn], dtype=np.int64),
                weights,
                np.array([count for _, count in drawn], dtype=np.int64),
            ),
        )
