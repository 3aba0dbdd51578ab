"""One check for each `Claim`, by enumeration, and the checks that every scheme must pass.

A check takes a scheme and a federation (and, if the scripted clients will not do, a function
that answers questions) and returns nothing, or raises `CheckFailed` with one sentence. With few
clients it walks through *every* outcome of the real `select`, with exact probabilities; where
that is impossible it uses the algebra of the design, and last a sample, at level 1e-6.

`NotApplicable` says that a check has nothing to say about a scheme; a `BadParameter` that the
scheme refuses the federation.

>>> from fedcohort import Federation, scheme
>>> check_unbiased(scheme("md", m=2), Federation.from_sizes([5, 4, 3, 2, 1]))
>>> try:
...     check_unbiased(scheme("fedavg", m=2), Federation.from_sizes([3, 2, 1]))
... except CheckFailed as error:
...     print(str(error).partition(": ")[2])
the expected weight of client 0 is 0.333333, its importance 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from fedcohort._internal.errors import CheckFailed
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Answer
from fedcohort.selection._scheme import Claim, Scheme
from fedcohort.selection._scripted import Outcomes, Trial, all_paths, enumerated
from fedcohort.theory._moments import ExactMoments, enumerated_moments

Check = Callable[[Scheme[Any], Federation, Answer | None], None]

LEVEL = 1e-6
"""How often a statistical check may reject a sound scheme."""
PILOT, SAMPLE = 200, 2_000
"""Cohorts drawn to see the range of the weights, and to test their mean."""
LOOK = 200
"""Cohorts looked at where not all can be."""
ROUNDING = 1e-10
"""Relative difference that rounding of floats may cause, and 1e-4 of it as absolute difference."""


class NotApplicable(Exception):
    """The check has nothing to say about this scheme on this federation."""


def check_unbiased(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """E[omega_i] = p_i: by enumeration of the law and of the code, by algebra, or by a sample.

    Looked at in the first round, after some rounds, and with the largest client away.
    """
    trial = Trial.of(scheme, federation, answer)
    for round, state in trial.states():
        for available in (None, _without_largest(federation)):
            if available is None or len(available):
                _check_mean(trial, state, round, available)
    if not _is_known(trial, state, round):
        _mean_by_sample(trial, state, round, federation.importance)


def _is_known(trial: Trial, state: Any, round: int) -> bool:
    return trial.design(state, round) is not None or trial.law(state, round) is not None


def _check_mean(trial: Trial, state: Any, round: int, available: Ints | None) -> None:
    shares = trial.federation.among(available).shares
    design, law = trial.design(state, round, available), trial.law(state, round, available)
    if design is not None:
        _same_mean(trial, round, design.mean(), shares.floats)
        outcomes = enumerated(design)
        if outcomes is not None:
            found = enumerated_moments(outcomes, design.n).mean
            _same_mean(trial, round, found, shares.floats)
    if law is not None:
        found = enumerated_moments(law, len(shares)).mean
        _same_mean(trial, round, found, shares.floats)


def _differ(value: Any, expected: Any) -> bool:
    """Return whether two numbers differ by more than rounding; NaN differs from every number."""
    return not abs(value - expected) <= ROUNDING * (1e-4 + abs(expected))


def _same_mean(trial: Trial, round: int, found: Array, wanted: Array) -> None:
    for i, (mean, share) in enumerate(zip(found, wanted, strict=True)):
        if _differ(mean, share):
            raise CheckFailed(
                f"{trial.scheme} in round {round}: the expected weight of client {i} is "
                f"{float(mean):.6g}, its importance {float(share):.6g}."
            )


def _mean_by_sample(trial: Trial, state: Any, round: int, wanted: Floats) -> None:
    """The mean weights of a sample against the wanted ones, with an exact tail.

    A weight in [low, high] is rounded at random to one of the ends, which keeps its mean: the
    number of high ends is then exactly binomial.
    """
    from scipy.stats import binomtest

    n = len(wanted)
    pilot = _weights(trial.sample(state, round, None, PILOT), n)
    low, high = min(0.0, float(pilot.min())), float(pilot.max())
    if high <= low or np.any(wanted > high * (1 + ROUNDING)):
        raise CheckFailed(f"{trial.scheme} in round {round}: some weights are always too small.")
    drawn = _weights(trial.sample(state, round, None, SAMPLE, first=PILOT), n)
    uniform = stream(trial.seed, "rounding").random(drawn.shape)
    ends = (uniform < (drawn - low) / (high - low)).sum(axis=0)
    for i in range(n):
        chance = min(1.0, (float(wanted[i]) - low) / (high - low))  # above 1 by rounding only
        if binomtest(int(ends[i]), SAMPLE, chance).pvalue < LEVEL / n:
            raise CheckFailed(
                f"{trial.scheme} in round {round}: the mean weight of client {i} in {SAMPLE} "
                f"cohorts is {drawn[:, i].mean():.6g}, its importance {wanted[i]:.6g}."
            )


def check_sums_to_one(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """The weights of every possible cohort sum to 1."""
    trial = Trial.of(scheme, federation, answer)
    for round, cohort in _possible_cohorts(trial):
        total = float(cohort.weights.sum())
        if _differ(total, 1.0):
            raise CheckFailed(f"{scheme} in round {round}: the weights of a cohort sum to {total}.")


def check_exactly_m(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Every possible cohort has m distinct clients (all, where there are fewer)."""
    trial = Trial.of(scheme, federation, answer)
    m, present = scheme.parameters["m"], len(federation.present)
    wanted = present if m == "all" else min(m, present)
    for round, cohort in _possible_cohorts(trial):
        if len(cohort) != wanted:
            raise CheckFailed(
                f"{scheme} in round {round}: a cohort has {len(cohort)} clients, not {wanted}."
            )


def check_no_worse_than_md(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Var(omega_i) <= p_i (1 - p_i) / m for every client."""
    trial = Trial.of(scheme, federation, answer)
    m = scheme.parameters.get("m", len(federation))
    shares = federation.shares
    for round, state in trial.states():
        variance = _variance(trial, state, round)
        for i in range(len(shares)):
            p = shares.fraction(i)
            if not variance[i] <= p * (1 - p) / m + Fraction(1, 10**12):
                raise CheckFailed(
                    f"{scheme} in round {round}: the weight of client {i} has variance "
                    f"{float(variance[i]):.6g}, under MD sampling {float(p * (1 - p) / m):.6g}."
                )


def check_no_sum_worse_than_md(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Var(sum_i omega_i x_i) <= that of MD sampling for all numbers x, hence for all updates.

    The difference of the covariance matrices has no negative eigenvalue.
    """
    trial = Trial.of(scheme, federation, answer)
    p, m = federation.importance, scheme.parameters.get("m", len(federation))
    md = (np.diag(p) - np.outer(p, p)) / m
    for round, state in trial.states():
        gap, vectors = np.linalg.eigh(md - _covariance(trial, state, round))
        if gap[0] < -1e-12:
            worst = np.array2string(vectors[:, 0], precision=2, suppress_small=True, threshold=8)
            raise CheckFailed(
                f"{scheme} in round {round}: a sum varies more than under MD sampling, with the "
                f"factors {worst} by {-gap[0]:.6g}."
            )


def check_even_over_samples(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """The expected weight of a sample is the same for all samples, given what clients said.

    An update that counts per sample weighs omega_i for each of its samples, and one takes part
    with probability r. A plain update weighs omega_i if any sample takes part, shared evenly.
    """
    trial, sizes = Trial.of(scheme, federation, answer), federation.sizes
    if sizes is None:
        raise NotApplicable("the sizes are private")
    for round, cohort in _possible_cohorts(trial):
        rate, held = cohort.data_rate, sizes[cohort.clients].astype(np.float64)
        chance = rate if cohort.per_sample else (1.0 - (1.0 - rate) ** held) / held
        expected = cohort.weights * chance  # (k,) of each sample of a client
        missing = np.setdiff1d(federation.present, cohort.clients)
        if len(missing) or not np.allclose(expected, expected[:1], rtol=1e-9, atol=0):
            raise CheckFailed(
                f"{scheme} in round {round}: the samples of some clients count for more than "
                f"those of others; the expected weight of one is {expected[:6]}."
            )


def _variance(trial: Trial, state: Any, round: int) -> Array:
    design = trial.design(state, round)
    outcomes = trial.law(state, round) if design is None else enumerated(design)
    if outcomes is not None:
        return enumerated_moments(outcomes, len(trial.federation)).variance
    if design is None:
        raise NotApplicable("the variance is known neither by a design nor by enumeration")
    return design.variance()


def _covariance(trial: Trial, state: Any, round: int) -> Floats:
    design = trial.design(state, round)
    outcomes = trial.law(state, round) if design is None else enumerated(design)
    if outcomes is not None:
        return enumerated_moments(outcomes, len(trial.federation)).covariance.astype(np.float64)
    if design is None or not design.second_moments.startswith("exact"):
        raise NotApplicable("the covariance is known neither exactly nor by enumeration")
    return design.covariance()


def check_moments(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """What the design says about itself is what all its outcomes say, and what `select` does."""
    trial = Trial.of(scheme, federation, answer)
    for round, state in trial.states():
        design = trial.design(state, round)
        if design is None:
            asks = "the law is known only after asking"
            raise NotApplicable(asks if scheme.asks else "it declares no law beforehand")
        try:
            check_design(design)
        except CheckFailed as error:
            raise CheckFailed(f"{scheme} in round {round}: {error}") from None
        law, outcomes = trial.law(state, round), enumerated(design)
        if law is not None and outcomes is not None and not same_law(law, outcomes):
            raise CheckFailed(f"{scheme} in round {round}: select() does not follow its design.")


def check_design(design: Design) -> None:
    """Mean, variance, covariance, inclusion ... of a design against all of its outcomes.

    A large design is only looked at for consistency.
    """
    outcomes = enumerated(design)
    counts = design.expected_counts()
    _agrees("the mean", design.mean(), design.value * counts)
    if outcomes is None:
        _agrees("the number of clients", design.distinct().mean, design.inclusion().sum())
        return
    exact = enumerated_moments(outcomes, design.n)
    _check_against(design, exact, enumerated_moments(_as_counts(outcomes), design.n))
    law = all_paths(design.draw, design.n)
    if law is not None and not same_law(law, outcomes):
        raise CheckFailed("draw() does not follow the outcomes of enumerate().")


def _check_against(design: Design, exact: ExactMoments, counts: ExactMoments) -> None:
    n = design.n
    x = np.stack([np.arange(1.0, n + 1), np.cos(np.arange(n))], axis=1)  # (n, 2) any vectors
    covariance = exact.covariance.astype(np.float64)
    _agrees("the mean", design.mean(), exact.mean)
    _agrees("the variance", design.variance(), exact.variance)
    _agrees("the covariance", design.covariance(), covariance)
    _agrees("covariance_times(x)", design.covariance_times(x), covariance @ x)
    _agrees("aggregate_variance(x)", design.aggregate_variance(x), np.sum(x * (covariance @ x)))
    _agrees("the inclusion", design.inclusion(), exact.inclusion)
    _agrees("the number of clients", design.distinct(), exact.distinct)
    _agrees(
        "the variance of the weight sum", design.weight_sum_variance(), exact.weight_sum_variance
    )
    _agrees("the expected counts", design.expected_counts(), counts.mean)
    _agrees("the variance of the counts", design.count_variance(), counts.variance)
    if design.alpha is not None:
        wanted = -design.alpha * np.outer(design.mean(), design.mean())
        apart = ~np.eye(n, dtype=bool)
        _agrees("alpha", wanted[apart], covariance[apart])


def _agrees(what: str, declared: Any, found: Any) -> None:
    says, is_ = np.asarray(declared, dtype=np.float64), np.asarray(found).astype(np.float64)
    if says.shape != is_.shape or not np.allclose(says, is_, rtol=1e-9, atol=1e-12):
        raise CheckFailed(f"{what} of the design is declared as {says}, but is {is_}.")


def _as_counts(outcomes: Outcomes) -> Outcomes:
    return [(chance, Cohort(c.clients, c.draws.astype(object), c.draws)) for chance, c in outcomes]


def same_law(one: Outcomes, other: Outcomes, relabel: Ints | None = None) -> bool:
    """Return whether two lists of outcomes give every cohort the same probability and weights.

    Both may differ by rounding. ``relabel[i]`` is the position in ``other`` of client i of ``one``.
    """
    first, second = _collect(one, relabel), _collect(other, None)
    for cohort in first.keys() | second.keys():
        in_first, in_second = first.get(cohort), second.get(cohort)
        if _differ(in_first[0] if in_first else 0, in_second[0] if in_second else 0):
            return False
        if in_first and in_second and not np.allclose(in_first[1], in_second[1], ROUNDING, 1e-12):
            return False
    return True


def _collect(
    outcomes: Outcomes, relabel: Ints | None
) -> dict[tuple[tuple[int, int], ...], tuple[Fraction, Floats]]:
    """Clients with their draws -> probability and weights."""
    found: dict[tuple[tuple[int, int], ...], tuple[Fraction, Floats]] = {}
    for chance, cohort in outcomes:
        names = cohort.clients if relabel is None else relabel[cohort.clients]
        order = np.argsort(names)
        key = tuple(zip(names[order].tolist(), cohort.draws[order].tolist(), strict=True))
        before, _ = found.get(key, (Fraction(0), None))
        found[key] = before + chance, cohort.weights[order].astype(np.float64)
    return found


def _possible_cohorts(trial: Trial) -> Iterable[tuple[int, Cohort]]:
    """(round, cohort): all that can come out, or some."""
    for round, state in trial.states():
        law = trial.law(state, round)
        some = trial.sample(state, round, None, LOOK) if law is None else [c for _, c in law]
        yield from ((round, cohort) for cohort in some)


def _weights(cohorts: list[Cohort], n: int) -> Floats:  # (cohorts, n)
    out = np.zeros((len(cohorts), n))
    for row, cohort in zip(out, cohorts, strict=True):
        row[cohort.clients] = cohort.weights
    return out


def _without_largest(federation: Federation) -> Ints:
    largest = int(np.argmax(federation.importance))
    return np.setdiff1d(federation.present, [largest])


CLAIM_CHECKS: dict[Claim, Check] = {
    Claim.UNBIASED: check_unbiased,
    Claim.SUMS_TO_ONE: check_sums_to_one,
    Claim.EXACTLY_M: check_exactly_m,
    Claim.NO_WORSE_THAN_MD: check_no_worse_than_md,
    Claim.NO_SUM_WORSE_THAN_MD: check_no_sum_worse_than_md,
    Claim.EVEN_OVER_SAMPLES: check_even_over_samples,
}
"""How each claim is proved."""
