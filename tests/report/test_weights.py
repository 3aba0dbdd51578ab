import numpy as np
import pytest

from fedcohort import scheme, simulate
from fedcohort.report import _weights as weights
from fedcohort.report._runs import federation_of, law_of
from fedcohort.simulation import Comparison
from fedcohort.theory import moments
from fedcohort.training import Quadratic


def run(name, rounds=400, seeds=2, **parameters):
    task = Quadratic(np.eye(5), sizes=[5, 4, 3, 2, 1])
    traces = [simulate(task, scheme(name, **parameters), rounds=rounds, seed=s)
              for s in range(seeds)]  # fmt: skip
    return Comparison(tuple(traces), {})


@pytest.mark.parametrize("name", ["md", "uniform", "poisson", "clustered-size", "full"])
def test_theory_is_that_of_the_scheme_and_what_is_measured_is_near(name):
    comparison = run(name, **({} if name == "full" else {"m": 2}))
    row = weights.weight_table(comparison).iloc[0]
    exact = moments(law_of(comparison.traces[0]))
    assert row.variance_theory == exact.sigma
    assert row.distinct_theory == exact.expected_distinct
    assert row.sum_theory == pytest.approx(1)
    # 800 rounds: far outside five standard errors (level 1e-6) only if the law is another
    assert row.variance == pytest.approx(exact.sigma, rel=0.25, abs=1e-9)
    assert row.distinct == pytest.approx(exact.expected_distinct, abs=0.2)
    assert row["sum"] == pytest.approx(1, abs=0.12)


def test_the_wrong_law_would_be_noticed():
    comparison = run("md", m=2)
    federation = federation_of(comparison.traces[0])
    wrong = moments(scheme("uniform", m=2).law(federation))
    row = weights.weight_table(comparison).iloc[0]
    assert row.distinct != pytest.approx(wrong.expected_distinct, abs=0.1)
    assert row.sum_variance != pytest.approx(wrong.weight_sum_variance, abs=0.05)


def test_bias_is_seen():
    row = weights.weight_table(run("fedavg", m=2)).iloc[0]
    assert row.bias_theory == pytest.approx(row.bias, abs=0.05)
    assert row.bias_theory > 0.1


def test_no_theory_where_the_law_is_not_known(make):
    assert law_of(run("optimal", m=2, rounds=3).traces[0]) is None
    settings = {**make().traces[0].settings, "scheme": "of somebody else"}
    assert law_of(make(settings=None).traces[0]) is not None
    strange = make(("x",), seeds=1).traces[0]
    object.__setattr__(strange, "settings", settings)
    assert law_of(strange) is None
    away = {**make().traces[0].settings, "availability": {"name": "random"}}
    object.__setattr__(strange, "settings", away)
    assert law_of(strange) is None
    table = weights.weight_table(Comparison((strange,), {}))
    assert np.isnan(table["variance_theory"][0])


def test_moments_are_those_of_a_dense_matrix(make):
    comparison = make(("md",), seeds=2)
    rows = []
    for trace in comparison.traces:
        for round in range(trace.rounds):
            dense = np.zeros(12)
            cohort = trace.cohort(round)
            dense[cohort.clients] = cohort.weights
            rows.append(dense)
    mean, variance = weights.weight_matrix_moments(comparison.traces)
    assert mean == pytest.approx(np.mean(rows, axis=0))
    assert variance == pytest.approx(np.var(rows, axis=0))
    table = weights.client_weights(comparison)
    assert table["mean_error"].to_numpy() == pytest.approx(np.sqrt(variance / 40))
