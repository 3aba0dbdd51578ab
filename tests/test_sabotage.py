"""Planted defects: each is caught by the generic checks, so the checks can be relied on.

A check that never fails proves nothing. Here designs and schemes are broken in the ways that
samplers do go wrong (a wrong weight, an off-by-one, replacement swapped, weights normalised,
...), and the check that should notice must notice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from fedcohort._internal.errors import CheckFailed
from fedcohort.designs import (
    Bernoulli,
    Cube,
    Everyone,
    FixedSize,
    LocalPivotal,
    Pivotal,
    Rows,
    Simple,
    Stratified,
    Systematic,
)
from fedcohort.designs import _balanced as pivotal_design
from fedcohort.designs._sequential import ListSequential
from fedcohort.maths import below, distinct, pick
from fedcohort.maths._draws import coins
from fedcohort.schemes.balanced import Systematic as SystematicScheme
from fedcohort.schemes.classical import MD, Binomial, Full, Poisson, Uniform
from fedcohort.schemes.clustered import ClusteredSize, Target
from fedcohort.schemes.optimal import Optimal
from fedcohort.selection import (
    LOSS,
    UPDATE_NORM,
    Ask,
    Citation,
    Claim,
    Cohort,
    Distinct,
    Federation,
    NoState,
    Real,
    Replies,
    RoundContext,
    Scheme,
    Shares,
    Signal,
    Whole,
    cohort_size,
)
from fedcohort.selection._cohort import counted
from fedcohort.testing import CHECKS, check_scheme, run_check
from fedcohort.testing._claims import check_design, same_law

PAPER = Citation("Nobody", "A defect", "Nowhere", 2000)


# Defects in designs: (class, attribute, broken attribute, a scheme that uses it, check).


def _wrong_weight(rows: Rows) -> Any:
    return np.full(rows.n, 1.0 / (rows.draws + 1))


def _distinct_instead_of_repeated(rows: Rows, rng: Any) -> Cohort:
    return counted(distinct(rng, rows.n, rows.draws), rows.value)


def _one_row_only(rows: Rows, rng: Any) -> Cohort:
    first = np.zeros(rows.draws, dtype=np.int64)
    drawn = pick(rng, rows.cumulative, rows.width, first)
    return counted(drawn if rows.clients is None else rows.clients[drawn], rows.value)


def _expected_as_inclusion(rows: Rows) -> Any:
    return np.minimum(1.0, rows.expected_counts())


def _independent_distinct(rows: Rows) -> Distinct:
    q = rows.inclusion()
    return Distinct(float(q.sum()), float((q * (1 - q)).sum()))


def _repeated_instead_of_distinct(simple: Simple, rng: Any) -> Cohort:
    drawn = np.unique(simple.support[below(rng, len(simple.support), simple.m)])
    return Cohort.of(drawn, simple.value[drawn])


def _normalised(simple: Simple, rng: Any) -> Cohort:
    chosen = simple.support[distinct(rng, len(simple.support), simple.m)]
    return Cohort.of(chosen, simple.value[chosen] / simple.value[chosen].sum())


def _covariance_of_replacement(simple: Simple, x: Any) -> Any:
    total = len(simple.support)
    q = simple.m / total
    out = np.zeros_like(x, dtype=np.float64)
    inside = x[simple.support]
    out[simple.support] = q * (1 - q) * (inside - inside.mean(axis=0))  # N / (N - 1) is missing
    return out


def _one_too_likely(bernoulli: Bernoulli, rng: Any) -> Cohort:
    shown = coins(rng, np.minimum(bernoulli.parts + 1, bernoulli.whole), bernoulli.whole)
    chosen = np.flatnonzero(shown & (bernoulli.parts > 0))
    return Cohort.of(chosen, bernoulli.value[chosen])


def _variance_without_complement(bernoulli: Bernoulli) -> Any:
    return bernoulli.inclusion()


def _everyone_alike(everyone: Everyone, rng: Any) -> Cohort:
    return Cohort.equal(everyone.shares.support)


def _even_without_data(everyone: Everyone, rng: Any) -> Cohort:
    return Cohort.of(np.arange(everyone.n), everyone.value)


def _one_step_too_few(design: Systematic, start: int) -> Any:
    steps = np.arange(max(1, design.size - 1)).astype(design._ends.dtype)
    return design._at(steps * design.whole + start)


def _ends_belong_to_the_client_before(design: Systematic, points: Any) -> Any:
    return design.order[np.searchsorted(design._ends, points, side="left")]


def _as_if_independent(design: Any, x: Any) -> Any:
    variance = design.count_variance()
    return (x.T * variance).T


def _never_at_the_end(design: Systematic, rng: Any) -> Cohort:
    """The last stretch of starts is forgotten."""
    places = max(1, len(design._cuts) - 1)
    at = int(below(rng, places, 1)[0])  # and all others are alike
    return design.cohort(design._members(design._starts()[at]))


def _first_of_the_line(design: Pivotal, rng: Any) -> Cohort:
    """Nobody asks chance: the first on the line come."""
    first = design._line[: design.size - len(design.sure)]
    return design.cohort(np.concatenate([design.sure, first]))


def _chain_without_memory(design: Pivotal) -> Any:
    """Nobody stays undecided for longer than one duel."""
    line = design._line
    return [0.0] * len(line), [-0.25] * len(line)


def _first_of_the_list(design: FixedSize, rng: Any) -> Cohort:
    """Nobody asks chance: the first of the undecided come."""
    left = design.open[: design.size - len(design.sure)]
    return design.cohort(np.concatenate([design.sure, left]))


def _weights_of_md(design: FixedSize) -> Any:
    return np.full(design.n, 1.0 / max(1, design.size))  # sure clients weigh p_i


DESIGN_DEFECTS: list[tuple[type, str, Any, str, str]] = [
    (Rows, "value", property(_wrong_weight), "md", "unbiased"),
    (Rows, "value", property(_wrong_weight), "clustered-size", "sums-to-one"),
    (Rows, "draw", _distinct_instead_of_repeated, "md", "moments"),
    (Rows, "draw", _one_row_only, "clustered-size", "moments"),
    (Rows, "draw", _one_row_only, "target", "unbiased"),
    (Rows, "inclusion", _expected_as_inclusion, "md", "moments"),
    (Rows, "distinct", _independent_distinct, "clustered-size", "moments"),
    (Rows, "alpha", property(lambda rows: 1.0 / rows.draws), "clustered-size", "moments"),
    (Simple, "draw", _repeated_instead_of_distinct, "uniform", "exactly-m"),
    (Simple, "draw", _repeated_instead_of_distinct, "uniform", "unbiased"),
    (Simple, "draw", _normalised, "uniform", "unbiased"),
    (Simple, "count_covariance_times", _covariance_of_replacement, "fedavg", "moments"),
    (Bernoulli, "draw", _one_too_likely, "binomial", "unbiased"),
    (Bernoulli, "draw", _one_too_likely, "poisson", "moments"),
    (Bernoulli, "count_variance", _variance_without_complement, "binomial", "moments"),
    (Everyone, "draw", _everyone_alike, "full", "unbiased"),
    (Everyone, "draw", _even_without_data, "full", "cohorts"),
    (Systematic, "_members", _one_step_too_few, "systematic", "exactly-m"),
    (Systematic, "_at", _ends_belong_to_the_client_before, "systematic", "unbiased"),
    (Systematic, "count_covariance_times", _as_if_independent, "systematic", "moments"),
    (Systematic, "draw", _never_at_the_end, "systematic", "moments"),
    (Pivotal, "draw", _first_of_the_line, "pivotal", "unbiased"),
    (Pivotal, "_chain", property(_chain_without_memory), "pivotal", "moments"),
    (Pivotal, "count_covariance_times", _as_if_independent, "pivotal", "moments"),
    (LocalPivotal, "draw", _first_of_the_list, "local-pivotal", "unbiased"),
    (Cube, "draw", _first_of_the_list, "balanced", "unbiased"),
    (Cube, "_enumerated", property(lambda d: np.eye(len(d.open))), "balanced", "moments"),
    (ListSequential, "draw", _first_of_the_list, "optimal-fixed", "unbiased"),
    (ListSequential, "count_covariance_times", _as_if_independent, "optimal-fixed", "moments"),
    (FixedSize, "value", property(_weights_of_md), "pivotal", "unbiased"),
    (FixedSize, "value", property(_weights_of_md), "systematic", "unbiased"),
    (
        LocalPivotal,
        "_enumerated",
        property(lambda d: np.eye(len(d.open))),
        "local-pivotal",
        "moments",
    ),
]


@pytest.mark.parametrize(("design", "attribute", "broken", "scheme", "check"), DESIGN_DEFECTS)
def test_a_defect_in_a_design_is_caught(
    design: type,
    attribute: str,
    broken: Any,
    scheme: str,
    check: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(design, attribute, broken)
    assert not run_check(check, scheme).passed


def test_an_off_by_one_in_a_cut_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(order: Any, shares: Shares, m: int, dedicate: bool = False) -> Rows:
        ends = np.cumsum(shares.parts[order] * m)
        ends[:-1] += 1  # one sample moves from the second client to the first
        return Rows(order, ends, shares.whole, 1, len(shares))

    monkeypatch.setattr(Rows, "along", shifted)
    assert not run_check("unbiased", "clustered-size").passed


def test_the_printed_algorithm_1_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # Line 13 as printed stores the cumulative remainder b_i instead of b_i - b_{i-1}.
    def printed(order: Any, shares: Shares, m: int, dedicate: bool = False) -> Rows:
        rows, k, q = [[] for _ in range(m)], 0, 0
        for i in order:
            q += m * int(shares.parts[i])
            a, b = divmod(q, shares.whole)
            if a == k:
                rows[k].append((i, b))
            else:
                rows[k].append((i, shares.whole - sum(mass for _, mass in rows[k])))
                if a < m:
                    rows[a].append((i, b))
            k = min(a, m - 1)
        laid = [(i, max(0, mass)) for row in rows for i, mass in row]
        clients, masses = (np.array(column) for column in zip(*laid, strict=True))
        return Rows(clients, np.cumsum(masses), shares.whole, 1, len(shares))

    monkeypatch.setattr(Rows, "along", printed)
    assert not run_check("unbiased", "clustered-size").passed


@pytest.mark.parametrize("name", ["pivotal", "local-pivotal"])
def test_a_duel_that_leans_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaning(tickets: Any, one: int, other: int, whole: int) -> tuple[int, int]:
        both = one + other
        if both < whole:
            return (both, 0) if tickets.heads(other, both) else (0, both)
        first = tickets.heads(whole - other, 2 * whole - both)
        return (whole, both - whole) if first else (both - whole, whole)

    monkeypatch.setattr(pivotal_design, "duel", leaning)
    assert not run_check("unbiased", name).passed


def test_that_systematic_sampling_may_be_worse_than_md_is_noticed() -> None:
    assert not run_check("no-sum-worse-than-md", Overconfident).passed


def stratified() -> Stratified:
    shares = Shares.of(np.array([5, 4, 3, 2, 1]))
    inside = (np.array([0, 2]), np.array([1, 3, 4]))
    parts = tuple(Simple(Shares.of(shares.parts[s]), 1) for s in inside)
    return Stratified(5, inside, parts, (Fraction(8, 15), Fraction(7, 15)))


def test_a_defect_in_strata_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    check_design(stratified())

    def unscaled(design: Stratified, rng: Any) -> Cohort:
        drawn = [part.draw(rng) for part in design.parts]
        places = [s[c.clients] for s, c in zip(design.strata, drawn, strict=True)]
        return Cohort.of(np.concatenate(places), np.concatenate([c.weights for c in drawn]))

    monkeypatch.setattr(Stratified, "draw", unscaled)
    with pytest.raises(CheckFailed):
        check_design(stratified())


# Rounding errors are no defects: an error of 4e-16 passes where one of 1e-9 fails.


@dataclass(frozen=True)
class Off(Scheme[NoState]):
    """Two draws by importance, with the share of client 0 off by the factor 1 + ``error``."""

    error: Annotated[float, Real(0, 1)] = 0.0

    name: ClassVar[str] = "off"
    paper: ClassVar[Citation] = PAPER
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.SUMS_TO_ONE})

    def shares(self, federation: Federation) -> Shares:
        wanted = federation.importance.copy()
        wanted[0] *= 1 + self.error
        return Shares.of_floats(wanted / wanted.sum())


class TargetIsOff(Off):
    """The weights have a wrong mean."""

    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})

    def law(self, federation: Federation) -> Rows:
        roots = np.sqrt(federation.importance)
        return Rows.hansen_hurwitz(Shares.of_floats(roots), self.shares(federation), 2)


class DrawIsOff(Off):
    """The cohort is drawn by other probabilities than the design declares."""

    def law(self, federation: Federation) -> Rows:
        return Rows.alike(federation.shares, 2)

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        return Rows.alike(self.shares(federation), 2).draw(rng)


class PositionIsFavored(Off):
    """The client at position 0 is drawn more often than the same client elsewhere."""

    def law(self, federation: Federation) -> Rows:
        return Rows.alike(self.shares(federation), 2)


class SumIsOff(Off):
    """The weights do not sum to 1."""

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        weights = federation.importance[federation.present]
        return Cohort.of(federation.present, weights * (1 + self.error))


@pytest.mark.parametrize(
    ("cls", "check"),
    [
        (TargetIsOff, "unbiased"),
        (DrawIsOff, "moments"),
        (PositionIsFavored, "equivariant"),
        (SumIsOff, "sums-to-one"),
    ],
)
def test_checks_tell_a_rounding_error_from_a_defect(cls: type[Off], check: str) -> None:
    assert [result for result in check_scheme(cls(error=4e-16)) if not result.passed] == []
    assert not run_check(check, cls(error=1e-9)).passed


class Unenumerable(Off):
    """All clients take part, with weights that differ from the importance in the last bit."""

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        rng.random()
        weights = np.nextafter(federation.importance[federation.present], 0)
        return Cohort.of(federation.present, weights * (1 - self.error))


def test_a_sample_allows_for_rounding_of_constant_weights() -> None:
    result = run_check("unbiased", Unenumerable)
    assert result.passed, result.detail
    assert not run_check("unbiased", Unenumerable(error=1e-9)).passed


def test_outcomes_of_probability_zero_may_be_left_out() -> None:
    cohorts = [Cohort.equal(np.array([i])) for i in range(3)]
    one = [(Fraction(1, 2), cohorts[0]), (Fraction(1, 2), cohorts[1])]
    rounded = [*one[:1], (Fraction(1, 2) - Fraction(4e-16), cohorts[1])]
    assert same_law(one, [*rounded, (Fraction(4e-16), cohorts[2])])
    assert same_law([*rounded, (Fraction(4e-16), cohorts[2])], one)
    for tiny in (Fraction(1e-9), Fraction(1e-12)):
        other = [*one[:1], (Fraction(1, 2) - tiny, cohorts[1]), (tiny, cohorts[2])]
        assert not same_law(one, other)
        assert not same_law(other, one)


# Defects in schemes: whole classes, each with the check that must fail.


class IgnoresAvailability(MD):
    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        everyone = Shares.of(np.ones(len(federation), dtype=np.int64))
        return Rows.alike(everyone, self.m).draw(rng)


class NormalisedBinomial(Binomial):
    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        cohort = self.law(federation).draw(rng)
        return Cohort.of(cohort.clients, cohort.weights / max(cohort.weights.sum(), 1e-9))


class NotTheDesign(Uniform):
    """The weights are right on average, but the design belongs to another scheme."""

    def design(self, state: NoState, federation: Federation, context: RoundContext) -> Any:
        return Rows.alike(federation.shares, cohort_size(self.m, federation, self.name))

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        return self.law(federation).draw(rng)


class WrongClaim(Uniform):
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.NO_WORSE_THAN_MD})


class Overconfident(SystematicScheme):
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.NO_SUM_WORSE_THAN_MD})


class OneLess(Uniform):
    def law(self, federation: Federation) -> Simple:
        m = cohort_size(self.m, federation, self.name)
        return Simple(federation.shares, max(1, m - 1))


class PrefersTheFirst(Uniform):
    """Unbiased, but client 0 takes part always: the law depends on positions."""

    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})

    def law(self, federation: Federation) -> Bernoulli:  # type: ignore[override]
        parts = np.ones(len(federation), dtype=np.int64)
        parts[0] = 2
        return Bernoulli(federation.shares, parts, 2)


class OneDivided(Optimal):
    """Weights 1 / q_i instead of p_i / q_i."""

    def given(self, norms: Any, federation: Federation) -> Bernoulli:
        right = super().given(norms, federation)
        alike = Shares.of(np.ones(len(federation), dtype=np.int64))
        return replace(right, target=alike)


class CappedWithoutCompensation(Poisson):
    def law(self, federation: Federation) -> Bernoulli:
        shares = federation.shares
        design = Bernoulli(shares, np.minimum(shares.parts * self.m, shares.whole), shares.whole)
        design.__dict__["value"] = np.full(len(shares), 1.0 / self.m)
        return design


class WeightsNaN(Full):
    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        cohort = Everyone(federation.shares).draw(rng)
        cohort.weights[0] = np.nan
        return cohort


class Unsorted(Uniform):
    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        cohort = self.law(federation).draw(rng)
        cohort.clients[:] = cohort.clients[::-1].copy()
        return cohort


class BySampling(MD):
    """Draws by numpy itself, so that nothing can be enumerated, and not by importance."""

    def design(self, state: NoState, federation: Federation, context: RoundContext) -> None:
        return None

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        drawn = rng.choice(federation.present, size=self.m)
        return counted(drawn, np.full(len(federation), 1.0 / self.m))


@dataclass(frozen=True, eq=False)
class Counts:
    of: Any


@dataclass(frozen=True)
class Counting(Scheme[Counts]):
    """Sound: counts who replied. The classes below break it."""

    m: Annotated[int, Whole(1)] = 10

    name: ClassVar[str] = "counting"
    paper: ClassVar[Citation] = PAPER
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})
    listens: ClassVar[frozenset[Signal]] = frozenset({LOSS})
    State: ClassVar[type] = Counts

    def start(self, federation: Federation, rng: Any) -> Counts:
        return Counts(np.zeros(len(federation), dtype=np.int64))

    def select(self, state: Counts, federation: Federation, context: RoundContext, rng: Any) -> Any:
        return Rows.alike(federation.shares, self.m).draw(rng)

    def observe(
        self, state: Counts, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Counts:
        counts = state.of.copy()
        counts[replies.clients] += 1
        return Counts(counts)


class ChangesStateInSelect(Counting):
    def select(
        self, state: Counts, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        cohort = Rows.alike(federation.shares, self.m).draw(rng)
        state.of[cohort.clients] += 1
        return cohort


class ChangesStateInObserve(Counting):
    def observe(
        self, state: Counts, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Counts:
        state.of[replies.clients] += 1
        return state


class AsksUndeclared(Counting):
    def select(self, state: Counts, federation: Federation, context: RoundContext, rng: Any) -> Any:
        yield Ask(UPDATE_NORM, federation.present)
        return Rows.alike(federation.shares, self.m).draw(rng)


class ReadsUndeclared(Counting):
    def observe(
        self, state: Counts, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Counts:
        return Counts(state.of + len(replies.signals["update"]))


class KeepsOldPositions(Counting):
    """What it knows of one client is taken for another's when a third one joins."""

    def adapt(self, state: Counts, federation: Federation, came_from: Any, rng: Any) -> Counts:
        return state


class ForgetsOnSaving(Counting):
    """A set is neither an array, nor a number, nor a string."""

    def observe(
        self, state: Counts, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Counts:
        return Counts({1, 2})


TICKETS = itertools.count()


class DrawsFromAStore(Counting):
    """Randomness that is not in the seed: every call is another."""

    def select(
        self, state: Counts, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        chosen = federation.present[next(TICKETS) % len(federation.present)]
        return Cohort.equal([chosen])


class HashesStrings(Counting):
    """The same in one process, another in the next."""

    def select(
        self, state: Counts, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        number = hash(f"round {context.round}") % len(federation.present)
        return Cohort.equal([federation.present[number]])


class ReadsNames(Counting):
    """Cohorts that depend on how clients are called."""

    def select(
        self, state: Counts, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        named = isinstance(federation.ids[0], str)
        return Cohort.equal([federation.present[-1 if named else 0]])


class Unchecked(MD):
    def __post_init__(self) -> None:
        pass


@dataclass(frozen=True)
class NoRange(Scheme[NoState]):
    m: int = 2
    name: ClassVar[str] = "no-range"
    paper: ClassVar[Citation] = PAPER

    def law(self, federation: Federation) -> Rows:
        return Rows.alike(federation.shares, self.m)


@dataclass
class Mutable(Scheme[NoState]):  # type: ignore[misc]
    name: ClassVar[str] = "mutable"
    paper: ClassVar[Citation] = PAPER
    __hash__ = object.__hash__

    def law(self, federation: Federation) -> Everyone:
        return Everyone(federation.shares)


class TiesByPosition(Target):
    """Inside a group by position, though sizes differ."""

    def design(self, state: Any, federation: Federation, context: RoundContext) -> Rows:
        order = np.argsort(state.of, kind="stable")
        return Rows.along(order, federation.shares, self.m)


SCHEME_DEFECTS: list[tuple[Callable[..., Any], str]] = [
    (IgnoresAvailability, "cohorts"),
    (NormalisedBinomial, "unbiased"),
    (NotTheDesign, "moments"),
    (WrongClaim, "no-worse-than-md"),
    (OneLess, "exactly-m"),
    (PrefersTheFirst, "equivariant"),
    (TiesByPosition, "equivariant"),
    (OneDivided, "unbiased"),
    (CappedWithoutCompensation, "unbiased"),
    (WeightsNaN, "cohorts"),
    (Unsorted, "cohorts"),
    (BySampling, "unbiased"),
    (ChangesStateInSelect, "pure"),
    (ChangesStateInObserve, "pure"),
    (AsksUndeclared, "signals"),
    (ReadsUndeclared, "signals"),
    (ForgetsOnSaving, "state"),
    (KeepsOldPositions, "newcomers"),
    (DrawsFromAStore, "pure"),
    (DrawsFromAStore, "deterministic"),
    (HashesStrings, "deterministic"),
    (ReadsNames, "arrival"),
    (Unchecked, "parameters"),
    (NoRange, "declaration"),
    (Mutable, "declaration"),
]


@pytest.mark.parametrize(("cls", "check"), SCHEME_DEFECTS)
def test_a_defect_in_a_scheme_is_caught(cls: type[Scheme[Any]], check: str) -> None:
    result = run_check(check, cls)
    assert not result.passed, result.detail
    with pytest.raises(CheckFailed):
        run_check(check, cls, stop=True)


@pytest.mark.parametrize("check", CHECKS)
def test_the_sound_relative_of_the_broken_schemes_passes(check: str) -> None:
    result = run_check(check, Counting)
    assert result.passed, result.detail


def test_the_table_holds_every_check() -> None:
    results = check_scheme(ChangesStateInSelect)
    assert [result.name for result in results] == list(CHECKS)
    assert {result.name for result in results if not result.passed} >= {"pure"}
    assert all(result.detail for result in results)


def test_statistics_alone_passes_a_sound_scheme() -> None:
    class Sound(BySampling):
        def select(
            self, state: NoState, federation: Federation, context: RoundContext, rng: Any
        ) -> Cohort:
            drawn = rng.choice(len(federation), size=self.m, p=federation.importance)
            return counted(drawn, np.full(len(federation), 1.0 / self.m))

    skewed = {"skewed": Federation.from_sizes([5, 4, 3, 2, 1])}
    result = run_check("unbiased", Sound, federations=skewed)
    assert result.passed, result.detail
    assert result.applies


def test_clustered_size_needs_its_shuffle_only_for_ties() -> None:
    # With distinct sizes the seed of the ties does not matter.
    federation = Federation.from_sizes([5, 4, 3, 2, 1])
    laws = {
        ClusteredSize(m=2).design(state, federation, RoundContext()).entries.client.tobytes()
        for state in (ClusteredSize.State(seed) for seed in range(5))
    }
    assert len(laws) == 1
