"""What is known of a scheme on a federation before training: its law, score, cost, disclosure."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedcohort._internal.errors import FedcohortError, FedcohortWarning
from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats
from fedcohort.advice._question_cost import bytes_of, rehearse
from fedcohort.privacy._price import law, noise_for, price
from fedcohort.schemes import SCHEMES, schemes
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._scheme import Scheme
from fedcohort.theory._moments import Estimate, estimated_variance
from fedcohort.theory._pilot import Known, NotKnownError

KEPT_LIMIT = 1_000
"""With more clients, laws are found again rather than kept."""
LEARNING_LIMIT = 3_000
"""With more clients, schemes that ask or listen are described but their law is not computed."""
UNBIASED = 1e-9
"""A bias below this is a rounding error."""
KNOWN = ("exact", "approximate")
"""The statuses of a scheme that has a score."""
FLOAT_BYTES = 4
"""Of one parameter."""
COHORTS = 64
"""Cohorts drawn to estimate a variance that has no formula."""
PARAMETERS = 1_000
"""Parameters of a model whose size is not given, for the variance of noise on them."""
ROUGH = 1_000
"""Points of the grid of losses where a noise is found for other values of m."""
CLASSES = 10
"""Classes of a label histogram, where none is given, for the price of sending it."""


@dataclass(frozen=True)
class SchemeFacts:
    """What is known of one scheme on this federation; None where it cannot be known.

    Attributes
    ----------
    status
        ``"exact"``, ``"approximate"`` (the score is estimated from drawn cohorts; the note has
        its interval), ``"unknown"`` (the law depends on what is asked later) or
        ``"not applicable"``.
    bias
        sum_i |E omega_i - p_i|: 0 for an unbiased scheme.
    sigma, gamma, weight_sum_variance
        sum Var(omega_i); the same + alpha sum p^2; Var(sum omega_i).
    expected_distinct
        Clients per round on average.
    computing
        Clients per round that need the model, to train or only to answer a question; of one
        rehearsed round where the law is not known.
    never_mean, never_worst
        Chance that a client is never seen in all rounds, on average and for the worst-off.
    bytes_per_round, bytes_total
        Both directions, everything: questions, models, updates; in all rounds together, with what
        is asked once before the first.
    discloses
        What the server learns of single clients.
    secure_aggregation
        ``"yes"``, ``"partly"`` (updates hidden, answers shown) or ``"no"``, with the reason.
    needs
        What must be known or asked, beyond the importance of the clients.
    score
        What unbiased schemes are ranked by; see `Advice.criterion`. None too if an epsilon is
        wanted and no noise covers the choice.
    note
        Why something is not known, or a caution.
    epsilon
        What the run costs the worst-off client in privacy, where a noise was given; None too
        where the choice looks at data, which no noise on the sum covers. See
        `fedcohort.privacy.price`.
    deviation
        The standard deviation of the noise on the sum, in clipping norms, with which nobody pays
        more than a wanted epsilon; None where none was wanted, or none covers the choice.
    oracle
        Whether it uses information that no server has; others are recommended before it.
    """

    name: str
    scheme: str
    status: str
    bias: float | None = None
    sigma: float | None = None
    gamma: float | None = None
    weight_sum_variance: float | None = None
    expected_distinct: float | None = None
    computing: float | None = None
    never_mean: float | None = None
    never_worst: float | None = None
    bytes_per_round: float | None = None
    bytes_total: float | None = None
    discloses: tuple[str, ...] = ()
    secure_aggregation: str = ""
    needs: str = "nothing"
    score: float | None = None
    note: str = ""
    epsilon: float | None = None
    deviation: float | None = None
    noise_variance: float | None = None
    oracle: bool = False

    @property
    def unbiased(self) -> bool:
        """Known to be unbiased."""
        return self.bias is not None and self.bias < UNBIASED


@dataclass(frozen=True, eq=False)
class Judge:
    """How a scheme is looked at: what is known, and what counts."""

    known: Known
    rounds: int
    heterogeneity: float
    model_bytes: int | None
    settings: Mapping[str, Mapping[str, Any]]
    secure_aggregation: bool = False
    noise: float | None = None
    epsilon: float | None = None
    delta: float = 1e-5

    @property
    def federation(self) -> Federation:
        """The clients."""
        return self.known.federation

    @property
    def criterion(self) -> str:
        """What schemes are ranked by, in words."""
        if self.known.updates is not None:
            found = "variance of the aggregated pilot updates"
        elif self.known.label_histograms is not None:
            found = "variance of the label shares of a cohort"
        else:
            weights = f"{self.heterogeneity:g} * Sigma + Var(sum of weights)"
            found = f"variance of the aggregate, {weights}"
        if self.epsilon is None:
            return found
        noise = f"noise for epsilon {self.epsilon:g} on {self.parameters:,} parameters"
        return f"{found} + {noise}"

    @property
    def parameters(self) -> int:
        """Return the number of parameters of the model, or of the pilot updates."""
        if self.model_bytes is not None:
            return max(1, self.model_bytes // FLOAT_BYTES)
        return PARAMETERS if self.known.updates is None else self.known.updates.shape[1]

    def build(self, name: str, m: int) -> Scheme[Any]:
        """The scheme of that name, with its own settings and this m where it has one."""
        return SCHEMES.build(name, otherwise={"m": m}, **self.settings.get(name, {}))

    def facts(self, name: str, m: int) -> SchemeFacts:
        """One row of the table; what a scheme warns of is noted there, once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FedcohortWarning)
            row = self._described(name, m)
        said = dict.fromkeys(str(each.message) for each in caught)
        return replace(row, note=" ".join([row.note, *said]).strip())

    def _described(self, name: str, m: int) -> SchemeFacts:
        row = SchemeFacts(name, name, "not applicable")
        try:
            scheme = self.build(name, m)
            row = replace(row, scheme=str(scheme), **declared(scheme, self.rounds))
            design = self.law(scheme)
        except NotKnownError as missing:
            row = replace(row, status="unknown", note=f"Its law depends on {missing}.")
        except FedcohortError as error:
            return replace(row, note=str(error))
        else:
            row = (
                replace(row, status="unknown", note=self.why_unknown(scheme))
                if design is None
                else self._measured(design, self._stated(design, row))
            )
        return self._priced(scheme, m, self._private(scheme, row))

    def _private(self, scheme: Scheme[Any], row: SchemeFacts) -> SchemeFacts:
        if self.noise is None and self.epsilon is None:
            return row
        score = row.score
        if self.epsilon is not None:
            row = replace(row, score=None)
        known = law(scheme, self.federation, self.rounds)
        if not known.covered or np.isinf(known.draws):
            return row
        noise, setting = self.noise, (self.federation, self.rounds)
        if noise is None:
            noise = noise_for(scheme, *setting, float(self.epsilon or 0.0), self.delta)
        cost = price(scheme, *setting, noise, self.delta)
        row = replace(row, epsilon=cost.epsilon)
        if self.epsilon is None or cost.deviation is None:
            return row
        added = self._noise_variance(cost.deviation)
        total = None if score is None else score + added
        return replace(row, deviation=cost.deviation, noise_variance=added, score=total)

    def _noise_variance(self, deviation: float) -> float:
        """Return the summed variance of noise if updates are clipped at their usual length."""
        x = self._vectors
        squared = 1.0 + self.heterogeneity
        if x is not None:
            squared = float(np.mean(np.sum(x[self.federation.present] ** 2, axis=1)))
        return self.parameters * deviation**2 * squared

    def _rough_noise_variance(self, scheme: Scheme[Any]) -> float | None:
        known = law(scheme, self.federation, self.rounds)
        if not known.rounds:
            return None
        setting = (self.federation, self.rounds, float(self.epsilon or 0.0), self.delta)
        noise = noise_for(scheme, *setting, points=ROUGH)
        heaviest = max(part.largest_weight for part, _ in known.rounds)
        return self._noise_variance(noise * heaviest)

    def score_at(self, name: str, m: int) -> float | None:
        """The score with another m; None where the scheme does not apply, or is over budget."""
        added: float | None = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FedcohortWarning)  # said in the table already
            try:
                scheme = self.build(name, m)
                design = self.law(scheme)
                if self.epsilon is not None:
                    added = self._rough_noise_variance(scheme)
            except (NotKnownError, FedcohortError):
                return None
        if design is None or added is None or design.inclusion().sum() > m * (1 + 1e-9):
            return None
        variances = float(design.variance().sum()), design.weight_sum_variance()
        return self.score(design, *variances) + added

    def law(self, scheme: Scheme[Any]) -> Design | None:
        """The law of the coming round; on a fresh federation, so that no array outlives it.

        Of few clients it is kept, because a law may have to be listed path by path.
        """
        talks = bool(scheme.asks or scheme.listens)
        if talks and len(self.federation) > LEARNING_LIMIT:
            return None
        fed, laws, key = self.federation, self.known.laws, (type(scheme), repr(scheme.parameters))
        if key in laws:
            return laws[key]
        fresh = Federation.restored(fed.shares.parts, fed.sizes, len(fed))
        found = self.known.law(scheme, fresh)
        if len(fed) <= KEPT_LIMIT:
            laws[key] = found
        return found

    @property
    def _vectors(self) -> Floats | None:
        """(n, d) what is aggregated: pilot updates, or label shares; None: neither is known."""
        if self.known.updates is not None:
            return np.asarray(self.known.updates, dtype=np.float64)
        return self.known.label_shares

    @property
    def strength(self) -> float:
        """The squared length of what the aggregate estimates, in the unit of the score."""
        p, x = self.federation.importance, self._vectors
        if x is None:
            return 1.0 + self.heterogeneity * float(p @ p)
        return float(np.sum((p @ x) ** 2))

    def _stated(self, design: Design, row: SchemeFacts) -> SchemeFacts:
        """The row, with how its score is known."""
        x = self._vectors
        if x is None or design.second_moments.startswith("exact"):
            return replace(row, status="exact")  # single weights vary as is known exactly
        found = self._estimate(design, x)
        return replace(row, status="approximate", note=f"{found}.")

    def _estimate(self, design: Design, x: Floats) -> Estimate:
        return estimated_variance(design, x, COHORTS, stream(0, "advice"))

    def score(self, design: Design, sigma: float, weight_sum: float) -> float:
        """What schemes are ranked by: a variance of the aggregate."""
        x = self._vectors
        if x is not None and not design.second_moments.startswith("exact"):
            return self._estimate(design, x).variance
        if x is not None:
            return design.aggregate_variance(x)
        return self.heterogeneity * sigma + weight_sum

    def _measured(self, design: Design, row: SchemeFacts) -> SchemeFacts:
        mean, inclusion = design.mean(), design.inclusion()
        sigma, weight_sum = float(design.variance().sum()), design.weight_sum_variance()
        alpha = design.alpha
        never = _never(inclusion[self.federation.present], self.rounds)
        twice = bool(np.any(design.expected_counts() > inclusion * (1 + 1e-9)))
        secure = row.secure_aggregation
        bias = float(np.abs(mean - self.federation.importance).sum())
        if twice and secure.startswith("yes"):
            secure += "; a client drawn twice must be sent its weight"
        return replace(
            row,
            bias=bias,
            sigma=sigma,
            gamma=None if alpha is None else sigma + alpha * float(mean @ mean),
            weight_sum_variance=weight_sum,
            expected_distinct=float(inclusion.sum()),
            never_mean=float(never.mean()),
            never_worst=float(never.max()),
            secure_aggregation=secure,
            # A smaller step also varies less: scores of biased schemes cannot be compared.
            score=self.score(design, sigma, weight_sum) if bias < UNBIASED else None,
        )

    def _priced(self, scheme: Scheme[Any], m: int, row: SchemeFacts) -> SchemeFacts:
        found = rehearse(scheme, self.federation, m)
        if found is None:
            note = f"{row.note} What it asks could not be rehearsed here.".strip()
            return replace(row, note=note)
        asked = [f"{q.signal.name} of {q.clients} clients once" for q in found.start]
        asked += [f"{q.signal.name} of {q.clients} clients a round" for q in found.round]
        asked += [f"{signal.name} of those who train" for signal in sorted_signals(scheme.listens)]
        row = replace(row, needs="; ".join(asked) or "nothing")
        trained = found.trained if row.expected_distinct is None else row.expected_distinct
        if trained is None:
            return row
        asked_to_compute = [q.clients for q in found.round if q.signal.needs_model]
        row = replace(row, computing=float(max(trained, *asked_to_compute, 0)))
        if self.model_bytes is None:
            return row
        known = self.known.label_histograms
        classes = CLASSES if known is None else known.shape[1]
        total = bytes_of(found.round, trained, self.model_bytes, classes)
        once = bytes_of(found.start, 0.0, self.model_bytes, classes)
        if total is None or once is None:
            return row
        return replace(row, bytes_per_round=total, bytes_total=once + self.rounds * total)

    def why_unknown(self, scheme: Scheme[Any]) -> str:
        """Why a scheme has no law here, in a sentence."""
        names = ", ".join(signal.name for signal in sorted_signals(scheme.asks | scheme.listens))
        if not names:
            return "Its law is not known in closed form."
        if len(self.federation) > LEARNING_LIMIT:
            return (
                f"It asks or listens; with more than {LEARNING_LIMIT} clients its law is not "
                "computed here."
            )
        return f"Its law is known only after asking ({names})."


def by_pilot(known: Known) -> list[str]:
    """Schemes that a pilot round gives a law, with the settings which that takes."""
    if known.updates is None:
        return []
    return [f"{name}:{cls.with_pilot}" for name, cls in schemes().items() if cls.with_pilot]


def sorted_signals(signals: Iterable[Any]) -> list[Any]:
    """By name."""
    return sorted(signals, key=lambda signal: str(signal.name))


def secure_of(scheme: Scheme[Any] | type[Scheme[Any]]) -> str:
    """Whether a scheme works with secure aggregation: yes, partly or no, and why."""
    signals = sorted_signals(scheme.asks | scheme.listens)
    shown = [s.discloses for s in signals if s.secrecy == "shown"]
    own = [s.name for s in signals if s.secrecy == "update"]
    if own:
        return f"no: the server must see single clients' {', '.join(own)}"
    if shown:
        return f"partly: updates are hidden, but {'; '.join(shown)} stays visible"
    return "yes"


def declared(scheme: Scheme[Any], rounds: int) -> dict[str, Any]:
    """What follows from the signals that a scheme declares."""
    signals = sorted_signals(scheme.asks | scheme.listens)
    return {
        "discloses": tuple(str(disclosure) for disclosure in scheme.disclosures(rounds)),
        "secure_aggregation": secure_of(scheme),
        "needs": ", ".join(s.name for s in signals) or "nothing",
        "oracle": scheme.oracle,
    }


def _never(inclusion: Floats, rounds: int) -> Floats:
    """Chance to be in none of the cohorts: (1 - q)^T without cancellation."""
    with np.errstate(divide="ignore"):
        out: Floats = np.exp(rounds * np.log1p(-np.minimum(inclusion, 1.0)))
    return out
