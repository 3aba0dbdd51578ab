"""Designs and schemes against numbers worked out by hand and by exact enumeration elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedcohort import Federation, RoundContext, scheme
from fedcohort._internal.errors import BadParameter
from fedcohort.designs import Bernoulli, Rows
from fedcohort.schemes.clustered import ClusteredSize
from fedcohort.selection import Claim, Cohort, Design, Distinct, Shares
from fedcohort.selection._design import exact_outcomes
from fedcohort.testing._claims import check_design
from fedcohort.theory import ExactMoments, enumerated_moments, moments

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))
SCHEMES = {
    "MD": "md",
    "Uniform": "uniform",
    "Binomial": "binomial",
    "PoissonBinomial": "poisson",
    "Clustered_alg1": "clustered-size",
}


def fractions(values: list[Any]) -> list[Any]:
    return [fractions(v) if isinstance(v, list) else Fraction(v) for v in values]


def alg1(sizes: list[int], m: int, **more: Any) -> Rows:
    federation = Federation.from_sizes(sizes)
    clustered = scheme("clustered-size", m=m, ties="index", **more)
    state = clustered.start(federation, np.random.default_rng(0))
    design = clustered.design(state, federation, RoundContext())
    assert isinstance(design, Rows)
    return design


def dense(rows: Rows) -> list[list[int]]:
    out = np.zeros((rows.rows, rows.n), dtype=np.int64)
    np.add.at(out, (rows.entries.row, rows.entries.client), rows.entries.mass)
    return out.tolist()  # type: ignore[no-any-return]


def exact(design: Design) -> ExactMoments:
    return enumerated_moments(design.enumerate(), design.n)


@pytest.mark.parametrize("case", GOLDEN["alg1"], ids=lambda case: case["id"])
def test_algorithm_1(case: dict[str, Any]) -> None:
    rows = alg1(case["sizes"], case["m"])
    assert rows.width == case["M"]
    assert dense(rows) == case["r_prime"]
    r = [[Fraction(mass, rows.width) for mass in row] for row in dense(rows)]
    assert r == fractions(case["r"])
    found = exact(rows)
    assert list(found.variance) == fractions(case["var_weight"])
    assert list(found.inclusion) == fractions(case["prob_sampled"])
    np.testing.assert_allclose(rows.variance(), found.variance.astype(float), atol=1e-15)
    np.testing.assert_allclose(rows.inclusion(), found.inclusion.astype(float), atol=1e-15)
    most = np.zeros(rows.n, dtype=np.int64)
    for _, cohort in rows.enumerate():
        most[cohort.clients] = np.maximum(most[cohort.clients], cohort.draws)
    assert most.tolist() == case["max_times"]


@pytest.mark.parametrize("case", GOLDEN["alg1"], ids=lambda case: case["id"])
def test_md_beside_algorithm_1(case: dict[str, Any]) -> None:
    md = scheme("md", m=case["m"]).law(Federation.from_sizes(case["sizes"]))
    assert md is not None
    found = exact(md)
    assert list(found.variance) == fractions(case["var_weight_md"])
    assert list(found.inclusion) == fractions(case["prob_sampled_md"])


@pytest.mark.parametrize(
    "case", [GOLDEN["alg1_literal_failure"], *GOLDEN["alg1_literal_failure_big"]]
)
def test_where_the_printed_algorithm_1_fails(case: dict[str, Any]) -> None:
    assert dense(alg1(case["sizes"], case["m"])) == case["correct"]


def literal_algorithm_1(sizes: list[int], m: int) -> list[list[int]]:
    """Lines 3 to 15 as printed, with b_0 = 0 (undefined) and l in line 11 (k in print)."""
    whole = sum(sizes)
    rows = [[0] * len(sizes) for _ in range(m + 1)]
    k, q, before = 1, 0, 0
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        q += m * sizes[i]
        a, b = divmod(q, whole)
        if a > k:
            rows[k][i] = whole - before
            for between in range(k + 1, a):
                rows[between][i] = whole
        rows[a][i] = b
        k, before = a, b
    return rows


def in_proportion(rows: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(mass, sum(row)) for mass in row] for row in rows if any(row)]


def test_version_printed_is_the_printed_algorithm_1() -> None:
    case = GOLDEN["alg1_literal_failure"]
    assert literal_algorithm_1(case["sizes"], case["m"]) == case["literal_k_init_1"]
    printed = alg1(case["sizes"], case["m"], version="printed")
    assert in_proportion(dense(printed)) == in_proportion(case["literal_k_init_1"])
    mean = exact(printed).mean
    assert list(mean) == [Fraction(1, 3), Fraction(2, 9), *(Fraction(p, 54) for p in (9, 13, 2))]


@pytest.mark.parametrize("case", GOLDEN["alg1_literal_failure_big"])
def test_version_printed_says_where_its_first_distribution_is_empty(case: dict[str, Any]) -> None:
    literal = literal_algorithm_1(case["sizes"], case["m"])
    assert literal == case["literal_k_init_1_rows_0_to_m"]
    with pytest.raises(BadParameter, match=r"below 1 / p_i of every client with version='printed'"):
        alg1(case["sizes"], case["m"], version="printed")


@given(st.lists(st.integers(0, 40), min_size=2, max_size=12), st.integers(1, 6))
def test_version_printed_for_any_sizes(sizes: list[int], m: int) -> None:
    assume(m * max(sizes) < sum(sizes))
    printed = alg1(sizes, m, version="printed")
    assert in_proportion(dense(printed)) == in_proportion(literal_algorithm_1(sizes, m))
    np.testing.assert_allclose(printed.matrix.sum(axis=1), 1)


def test_version_printed_claims_nothing_that_it_does_not_keep() -> None:
    assert Claim.UNBIASED in ClusteredSize().claims
    assert ClusteredSize(version="printed").claims == {Claim.SUMS_TO_ONE}
    with pytest.raises(BadParameter, match="dedicate_large"):
        ClusteredSize(version="printed", dedicate_large=True)


def test_cifar_sizes() -> None:
    case = GOLDEN["alg1_cifar"]
    sizes = [100] * 10 + [250] * 30 + [500] * 30 + [750] * 20 + [1000] * 10
    rows = alg1(sizes, case["m"])
    assert rows.width == case["M"]
    assert len(rows.entries.mass) == case["nonzeros"]
    assert np.bincount(rows.entries.row).tolist() == case["support_sizes"]
    assert np.count_nonzero(np.bincount(rows.entries.client) == 2) == case["clients_in_two"]
    m, p = case["m"], [Fraction(size, rows.width) for size in sizes]
    squares = sum(Fraction(int(mass), rows.width) ** 2 for mass in rows.entries.mass)
    assert sum(p) / m - squares / m**2 == Fraction(case["sum_var"])
    assert rows.variance().sum() == pytest.approx(case["sum_var_float"], rel=1e-13)
    md = scheme("md", m=m).law(Federation.from_sizes(sizes))
    assert md is not None
    assert md.variance().sum() == pytest.approx(case["sum_var_md_float"], rel=1e-13)


@pytest.mark.parametrize("case", GOLDEN["weight_statistics"], ids=lambda c: f"{c['p_id']}-{c['m']}")
@pytest.mark.parametrize("name", SCHEMES)
def test_weight_statistics(case: dict[str, Any], name: str) -> None:
    federation, m = Federation.from_sizes(case["sizes"]), case["m"]
    wanted = case["schemes"][name]
    design = (
        alg1(case["sizes"], m)
        if name == "Clustered_alg1"
        else scheme(SCHEMES[name], m=m).law(federation)
    )
    assert design is not None
    found, declared = exact(design), moments(design)
    assert list(found.mean) == fractions(case["p"])
    assert list(found.variance) == fractions(wanted["var"])
    assert found.weight_sum_variance == Fraction(wanted["var_sum"])
    assert found.distinct_mean == Fraction(wanted["E_N"])
    assert found.distinct_variance == Fraction(wanted["Var_N"])
    np.testing.assert_allclose(design.distinct(), found.distinct, atol=1e-12)
    np.testing.assert_allclose(declared.variance, found.variance.astype(float), atol=1e-15)
    assert declared.weight_sum_variance == pytest.approx(float(found.weight_sum_variance))
    if wanted["alpha"] is None:
        assert design.alpha is None
        assert found.covariance.tolist() == fractions(wanted["cov"])
        return
    assert design.alpha == pytest.approx(float(Fraction(wanted["alpha"])))
    sigma_gamma = case["Sigma_gamma"][name]
    assert sum(found.variance) == Fraction(sigma_gamma["Sigma"])
    assert declared.sigma == pytest.approx(float(Fraction(sigma_gamma["Sigma"])))
    assert declared.gamma == pytest.approx(float(Fraction(sigma_gamma["gamma"])))


def test_optimal_bernoulli() -> None:
    case = GOLDEN["optimal_bernoulli"]
    q = fractions(case["q"])
    shares = Shares.of(np.array([5, 4, 3, 2, 1]))
    design = Bernoulli(shares, np.array([int(chance * 10) for chance in q]), 10)
    found = exact(design)
    assert list(found.mean) == fractions(case["p"])
    assert list(found.variance) == fractions(case["var"])
    assert found.weight_sum_variance == Fraction(case["var_sum"])
    assert found.distinct_mean == Fraction(case["E_N"])
    assert found.distinct_variance == Fraction(case["Var_N"])
    check_design(design)


def test_covariances_of_clustered_sampling_may_be_larger_than_those_of_md() -> None:
    case = GOLDEN["eq63_counterexample"]  # against equation (63) of the paper
    rows = alg1([1, 1, 1, 1], case["m"])
    assert exact(rows).covariance.tolist() == fractions(case["cov_clustered"])
    md = exact(Rows.alike(Shares.of(np.ones(4, dtype=np.int64)), case["m"]))
    assert md.covariance[0, 1] == md.covariance[0, 2] == Fraction(case["cov_md"])


@pytest.mark.parametrize(("sizes", "m"), [([5, 4, 3, 2, 1], 2), ([9, 4, 2, 1, 1], 3)])
def test_clustered_sampling_chooses_every_client_more_often(sizes: list[int], m: int) -> None:
    # Equation (23); (56) prints the other direction.
    p = [Fraction(size, sum(sizes)) for size in sizes]
    chances = [Fraction(0)] * len(sizes)
    for chance, cohort in alg1(sizes, m).enumerate():
        for client in set(cohort.clients.tolist()):
            chances[client] += chance
    md = [1 - (1 - share) ** m for share in p]
    assert all(ours >= theirs for ours, theirs in zip(chances, md, strict=True))
    if m == 2:
        assert (chances[0], md[0]) == (Fraction(2, 3), Fraction(5, 9))


class AllOrNobody(Design):
    """With probability 1/2 everybody takes part, with weight 2 p_i, else nobody."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares

    n = property(lambda self: len(self.shares))
    value = property(lambda self: 2 * self.shares.floats)
    alpha = property(lambda self: -1.0)

    def draw(self, rng: Any) -> Cohort:
        everybody = np.arange(self.n)
        return Cohort.of(everybody, self.value) if rng.choose([1, 1]) else Cohort.empty()

    def expected_counts(self) -> Any:
        return np.full(self.n, 0.5)

    inclusion = expected_counts

    def count_variance(self) -> Any:
        return np.full(self.n, 0.25)

    def count_covariance_times(self, x: Any) -> Any:
        return np.broadcast_to(0.25 * x.sum(axis=0), x.shape)

    def distinct(self) -> Distinct:
        return Distinct(self.n / 2, self.n**2 / 4)

    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        value = [2 * self.shares.fraction(i) for i in range(self.n)]
        law = [(Fraction(1, 2), tuple((i, times) for i in range(self.n))) for times in (0, 1)]
        return exact_outcomes(iter(law), value)


def test_alpha_may_be_negative() -> None:
    case = GOLDEN["property1_counterexample"]  # against Property 1 of the paper
    design = AllOrNobody(Shares.of(np.array([3, 2, 1])))
    found = exact(design)
    assert list(found.mean) == fractions(case["p"])
    assert found.covariance.tolist() == fractions(case["cov"])
    assert found.weight_sum_variance == Fraction(case["var_sum"])
    assert design.alpha == float(Fraction(case["alpha"]))
    check_design(design)


def test_ten_draws_of_a_hundred() -> None:
    case = GOLDEN["md_all_distinct_100_10"]
    md = Rows.alike(Shares.of(np.full(100, 500)), 10)
    assert md.distinct().mean == pytest.approx(case["expected_distinct_clients"], rel=1e-13)
    digits = Rows.alike(Shares.of(np.full(10, 5_000)), 10)
    assert digits.distinct().mean == pytest.approx(case["expected_distinct_digits"], rel=1e-13)
    # All distinct: the largest possible number, by the law of the number of distinct clients.
    all_distinct = Fraction(1)
    for k in range(10):
        all_distinct *= Fraction(100 - k, 100)
    assert all_distinct == Fraction(case["fraction"])
    small = Rows.alike(Shares.of(np.ones(6, dtype=np.int64)), 3)
    three = sum(chance for chance, cohort in small.enumerate() if len(cohort) == 3)
    assert three == Fraction(6 * 5 * 4, 6**3)


def test_dedicated_rows_have_the_variance_of_the_proof() -> None:
    # Sizes 31, 29, 20, 20 with m = 4: client 1 straddles as 76 + 40, dedicated as 100 + 16.
    plain, dedicated = (
        exact(alg1([31, 29, 20, 20], 4, dedicate_large=flag)) for flag in (False, True)
    )
    assert plain.variance[1] == Fraction(4224, 10_000) / 16
    assert dedicated.variance[1] == Fraction(1344, 10_000) / 16
    assert list(plain.mean) == list(dedicated.mean)
