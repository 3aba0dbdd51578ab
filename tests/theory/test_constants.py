"""(A, B, w): closed forms in Fractions, the inequality for all vectors, and that it is reached."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from fedcohort import Federation, scheme
from fedcohort._internal.errors import BadInput, TooLarge
from fedcohort.advice import catalogue_constants
from fedcohort.cli import app
from fedcohort.designs import Bernoulli, Everyone, Rows, Simple, Stratified
from fedcohort.selection import Shares
from fedcohort.theory import constants, enumerated_moments
from fedcohort.theory._pilot import Known

F = Fraction
SIZES = [5, 4, 3, 2, 1]
FEDERATION = Federation.from_sizes(SIZES)
SHARES = FEDERATION.shares
P = [F(s, 15) for s in SIZES]
M = 2


def normalised(ratios):
    """A and w of the ratios A / w_i."""
    a = 1 / sum(1 / each for each in ratios)
    return a, [a / each for each in ratios]


def closed_forms():
    """Design, A, B, w, as known for decades or printed by Tyurin et al."""
    n = len(P)
    nice = F(n - M, M * (n - 1))
    poisson = [M * p for p in P]
    binomial = [F(M, n)] * n
    return {
        "md": (Rows.alike(SHARES, M), F(1, M), F(1, M), P),
        "uniform": (Simple(SHARES, M), nice, nice, [F(1, n)] * n),
        "poisson": (
            scheme("poisson", m=M).law(FEDERATION),
            *_independent(poisson),
        ),
        "binomial": (scheme("binomial", m=M).law(FEDERATION), *_independent(binomial)),
        "full": (Everyone(SHARES), F(0), F(0), [F(1, n)] * n),
    }


def _independent(q):
    """A = 1 / sum q/(1-q), B = 0, w ~ q/(1-q)."""
    a, w = normalised([(1 - each) / each for each in q])
    return a, F(0), w


def covariance_of(design):
    return enumerated_moments(design.enumerate(), design.n).covariance


def slack(covariance, a, b, w, p):
    """diag(A p^2 / w) - B p p' - Cov, in Fractions."""
    out = -np.array(covariance, dtype=object) - b * np.outer(p, p)
    for i, (each, share) in enumerate(zip(w, p, strict=True)):
        out[i, i] += a * share**2 / each
    return out


def is_positive_semidefinite(matrix):
    """By elimination in Fractions: no pivot below 0, and nothing beside a pivot of 0."""
    rest = np.array(matrix, dtype=object)
    while len(rest):
        pivot, beside = rest[0, 0], rest[0, 1:]
        if pivot < 0 or (pivot == 0 and any(beside)):
            return False
        rest = rest[1:, 1:] - (np.outer(beside, beside) / pivot if pivot else 0)
    return True


@pytest.mark.parametrize("name", sorted(closed_forms()))
def test_closed_forms_are_equalities(name):
    design, a, b, w = closed_forms()[name]
    assert not np.any(slack(covariance_of(design), a, b, w, P))
    found = constants(design, importance=FEDERATION.importance)
    assert (found.a, found.b) == pytest.approx((float(a), float(b)), abs=1e-15)
    assert found.w == pytest.approx([float(each) for each in w])
    assert found.how == "exact"


def test_an_importance_beside_the_chances():
    """m draws with chances q and weights p / (m q): A = B = 1/m, w = q."""
    q = [F(s, 10) for s in (1, 2, 3, 4)]
    p = Shares.of(np.array([4, 3, 2, 1]))
    design = Rows.hansen_hurwitz(Shares.of(np.array([1, 2, 3, 4])), p, 3)
    mean = [F(s, 10) for s in (4, 3, 2, 1)]
    assert not np.any(slack(covariance_of(design), F(1, 3), F(1, 3), q, mean))
    found = constants(design)
    assert (found.a, found.b) == pytest.approx((1 / 3, 1 / 3))
    assert found.w == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_clustered_sampling_has_the_constants_of_md_and_no_better_ones():
    """Two clusters of two: A = B = 1/m, w = p holds exactly and is the best there is.

    What clustering gains, it gains for updates that clusters share; a bound that has no place
    for pairs of clients cannot see it.
    """
    design = Rows.along(np.arange(4), Shares.of(np.array([1, 1, 1, 1])), 2)
    covariance, p = covariance_of(design), [F(1, 4)] * 4
    assert is_positive_semidefinite(slack(covariance, F(1, 2), F(1, 2), p, p))
    less, more = F(499, 1000), F(501, 1000)
    assert not is_positive_semidefinite(slack(covariance, less, F(0), p, p))
    assert not is_positive_semidefinite(slack(covariance, F(1, 2), more, p, p))
    found = constants(design)
    assert (found.a, found.b, found.how) == (pytest.approx(0.5), pytest.approx(0.5), "tight")
    assert found.w == pytest.approx([0.25] * 4)


def test_the_exact_check_is_no_yes_man():
    assert is_positive_semidefinite([[F(1), F(1)], [F(1), F(1)]])
    assert not is_positive_semidefinite([[F(1), F(2)], [F(2), F(1)]])
    assert not is_positive_semidefinite([[F(0), F(1)], [F(1), F(5)]])


def law(name, m, federation):
    """Of a scheme that begins with a random order."""
    return Known(federation).law(scheme(name, m=m), federation)


def designs():
    n = 5
    some = Shares.of(np.array([3, 2]))
    parts = (Simple(Shares.of(np.array([5, 4, 3])), 1), Rows.alike(some, 1))
    strata = (np.arange(3), np.arange(3, n))
    return {
        **{name: row[0] for name, row in closed_forms().items()},
        "clustered": Rows.along(np.arange(n), SHARES, M),
        "clustered, three rows": Rows.along(np.array([4, 0, 2, 1, 3]), SHARES, 3),
        "strata": Stratified(n, strata, parts, (F(4, 5), F(1, 5))),
        "systematic": law("systematic", M, FEDERATION),
        "pivotal": law("pivotal", M, FEDERATION),
        "a sure client": Bernoulli(SHARES, np.array([4, 2, 1, 3, 4]), 4),
    }


vectors = st.lists(st.lists(st.floats(-4, 4), min_size=2, max_size=2), min_size=5, max_size=5)


@given(vectors, st.sampled_from(sorted(designs())))
def test_it_holds_for_all_vectors(rows, name):
    design, x = designs()[name], np.array(rows)
    found = constants(design)
    variance = float(np.sum(x * (design.covariance() @ x)))
    assert variance <= found.bound(x) + 1e-9
    if found.how == "exact":
        assert variance == pytest.approx(found.bound(x), abs=1e-9)


@pytest.mark.parametrize(
    "name", ["clustered", "clustered, three rows", "strata", "systematic", "pivotal"]
)
def test_it_is_reached(name):
    """Neither a smaller A nor a larger B would do: some vector has nothing left."""
    design = designs()[name]
    found = constants(design)
    assert found.how == "tight"
    gap = np.diag(found.gamma) - found.b * np.outer(found.p, found.p) - design.covariance()
    assert np.linalg.eigvalsh(gap)[0] == pytest.approx(0, abs=1e-12)
    smaller = gap - 1e-3 * np.diag(found.gamma)
    larger = gap - 1e-3 * np.outer(found.p, found.p)
    assert np.linalg.eigvalsh(smaller)[0] < -1e-7
    assert np.linalg.eigvalsh(larger)[0] < -1e-7


@pytest.mark.parametrize("name", ["clustered", "strata", "systematic", "pivotal"])
def test_no_other_pair_is_better(name):
    """For the same w: a grid of B, each with the smallest A, by eigenvalues."""
    found = constants(designs()[name])
    covariance, p, gamma = designs()[name].covariance(), found.p, found.gamma
    root = np.sqrt(gamma)
    cost = found.unlike - found.b / 2
    for b in np.linspace(0, 1.5, 151):
        wanted = covariance + b * np.outer(p, p)
        scale = np.linalg.eigvalsh(wanted / np.outer(root, root))[-1]
        assert scale * gamma.sum() - b / 2 >= cost - 1e-9


def test_an_approximate_covariance_is_named_as_such():
    many = Federation.from_sizes(range(1, 31))
    labels = np.random.default_rng(0).integers(1, 9, (30, 4))
    rows = {row.name: row for row in catalogue_constants(many, 5, label_histograms=labels)}
    assert rows["local-pivotal"].how == "approximate"
    assert rows["md"].how == "exact"


def test_sure_clients_are_left_out_of_the_sum():
    found = constants(designs()["a sure client"])
    assert found.w[0] == found.w[4] == 0
    assert found.w.sum() == pytest.approx(1)
    x = np.zeros((5, 1))
    x[0] = 100.0
    assert found.bound(x) == 0


def test_unlike_is_gamma_and_alike_the_variance_of_the_sum_of_weights():
    for name, (design, *_) in closed_forms().items():
        found, bound = constants(design), design.covariance_bound()
        assert found.unlike == pytest.approx(bound.gamma.sum()), name
        assert found.alike == pytest.approx(design.weight_sum_variance(), abs=1e-12), name


def test_many_clients_have_a_bound_or_a_sentence(monkeypatch):
    monkeypatch.setitem(constants.__globals__, "DOMINANCE_LIMIT", 4)
    found = constants(designs()["clustered"])
    assert (found.how, found.a, found.b) == ("bound", pytest.approx(0.5), pytest.approx(0.5))
    clusters = Rows.along(np.arange(5), SHARES, 2)
    monkeypatch.setattr(Rows, "covariance_bound", lambda self: None)
    with pytest.raises(TooLarge, match="5 clients are more than 4"):
        constants(clusters)


def test_biased_designs_are_refused():
    biased = Simple(SHARES, 2, compensated=False)
    with pytest.raises(BadInput, match="unbiased"):
        constants(biased)
    with pytest.raises(BadInput, match="biased"):
        constants(Rows.alike(SHARES, 2), importance=[0.2] * 5)
    with pytest.raises(BadInput, match="each of 5 clients"):
        constants(Rows.alike(SHARES, 2)).bound(np.ones((4, 2)))


def test_the_catalogue_is_ordered_and_says_who_has_no_law():
    rows = {row.name: row for row in catalogue_constants(SIZES, M)}
    known = [row for row in rows.values() if row.a is not None]
    assert np.all(np.diff([row.unlike for row in known]) > -1e-12)
    assert known[0].name == "full"
    assert (rows["md"].w, rows["uniform"].w) == ("p", "1/n")
    assert rows["md"].unlike == pytest.approx(1 / 2)
    assert rows["uniform"].unlike == pytest.approx(11 / 24)  # gamma of uniform, as in section 1
    assert rows["clustered-size"].how == "tight"
    for name, words in [("pow-d", "losses"), ("fedavg", "biased"), ("optimal", "pilot")]:
        assert rows[name].a is None
        assert words in rows[name].note


def test_a_pilot_round_gives_more_schemes_a_law():
    updates = np.random.default_rng(0).normal(size=(5, 3))
    own = {"hcsfed": {"strata": 2}, "cluster": {"strata": 2}}
    found = catalogue_constants(SIZES, M, updates=updates, settings=own)
    rows = {row.name: row for row in found}
    for name in ("optimal", "hcsfed", "cluster"):
        assert rows[name].a is not None, name


def test_on_the_command_line(tmp_path):
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("\n".join(map(str, SIZES)))
    said = CliRunner().invoke(app(), ["advise", "--sizes", str(sizes), "-m", "2", "--constants"])
    assert said.exit_code == 0
    md = next(line for line in said.stdout.splitlines() if line.strip().startswith("md"))
    assert md.split() == ["md", "0.5", "0.5", "p", "0.5", "0", "exact"]
    assert "fedavg: The constants" in said.stdout
    told = CliRunner().invoke(
        app(), ["advise", "--sizes", str(sizes), "-m", "2", "--constants", "--json"]
    )
    assert json.loads(told.stdout)[0]["name"] == "full"
