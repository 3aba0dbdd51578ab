import numpy as np
import pytest

from fedcohort import Comparison
from fedcohort.maths._statistics import gini
from fedcohort.report import _clients as clients


def test_participation_counts_rounds(make):
    comparison = make(("md",), seeds=2)
    table = clients.participation(comparison)
    assert table["rounds"].sum() == pytest.approx(3 * 20)
    assert (table["fewest"] <= table["rounds"]).all()
    assert (table["rounds"] <= table["most"]).all()


def test_the_picture_shows_every_participation_once(make):
    trace = make().traces[0]
    picture = clients.participation_picture(trace)
    assert picture.shape == (12, 20)
    assert np.array_equal(picture.sum(axis=1), trace.participation)
    for round in range(20):
        assert np.flatnonzero(picture[:, round]).tolist() == trace.cohort(round).clients.tolist()
    coarse = clients.participation_picture(trace, 4, 5)
    assert coarse.shape == (4, 5)
    assert coarse.mean() == pytest.approx(picture.mean())


def test_the_histogram_counts_every_client(make):
    table = clients.participation_histogram(make())
    assert table.groupby("scheme")["clients"].sum().tolist() == pytest.approx([12, 12])


def test_the_lorenz_curve_encloses_the_gini(make):
    comparison = make(("md",), seeds=1)
    table = clients.lorenz(comparison, points=12 * 50 + 1)
    area = np.trapezoid(table["participations"], table["clients"])
    assert 1 - 2 * area == pytest.approx(gini(comparison.traces[0].participation.astype(float)))
    assert table["participations"].iloc[[0, -1]].tolist() == [0, 1]
    assert (np.diff(table["participations"], 2) > -1e-12).all()  # convex


def test_label_distance_is_that_of_a_plain_loop(make):
    trace = make(clients=7, classes=4).traces[0]
    shares = trace.label_histograms / trace.label_histograms.sum(axis=1, keepdims=True)
    slow = []
    for round in range(trace.rounds):
        cohort = trace.cohort(round)
        mix = sum(w * shares[i] for i, w in zip(cohort.clients, cohort.weights, strict=True))
        slow.append(0.5 * np.abs(mix / mix.sum() - trace.importance @ shares).sum())
    assert clients.label_distance(trace) == pytest.approx(slow, abs=1e-12)


def test_an_empty_cohort_has_no_labels(make):
    ends = 3 * np.arange(1, 21)
    ends[1:] -= 3  # nobody in the second round
    short = {
        name: np.delete(getattr(make().traces[0], name), [3, 4, 5])
        for name in ("cohort_clients", "cohort_weights", "cohort_draws")
    }
    comparison = make(("md",), seeds=2, cohort_ends=ends, **short)
    distance = clients.label_distance(comparison.traces[0])
    assert np.flatnonzero(np.isnan(distance)).tolist() == [1]
    assert np.isnan(clients.labels_over_rounds(comparison)["distance"][1])


def test_everyone_together_has_the_labels_of_the_federation(make):
    n, rounds = 6, 4
    sizes = 10 + np.arange(n)
    everyone = {
        "cohort_ends": n * np.arange(1, rounds + 1),
        "cohort_clients": np.tile(np.arange(n), rounds),
        "cohort_weights": np.tile(sizes / sizes.sum(), rounds),
        "cohort_draws": np.ones(n * rounds, dtype=np.int64),
    }
    trace = make(("full",), seeds=1, rounds=rounds, clients=n, **everyone).traces[0]
    assert clients.label_distance(trace) == pytest.approx(0, abs=1e-12)


def test_no_labels_no_table(make):
    assert clients.labels_over_rounds(make(classes=0)).empty


def test_the_worst_come_first_and_are_described(make):
    losses = np.linspace(0, 1, 12)
    table = clients.worst_clients(make(("b", "a"), client_losses=losses), 3)
    assert table["client"].tolist() == [11, 10, 9] * 2
    assert table["labels"][0] == "2 (100%)"
    assert clients.loss_quantiles(make(("a",), client_losses=losses))["loss"].max() == 1


def test_nobody_ever_chosen(make):
    empty = np.empty(0, dtype=np.int64)
    comparison = make(
        ("md",), seeds=1, cohort_ends=np.zeros(20, dtype=np.int64), cohort_clients=empty,
        cohort_weights=np.empty(0), cohort_draws=empty,
    )  # fmt: skip
    assert clients.participation_picture(comparison.traces[0]).sum() == 0
    assert clients.lorenz(comparison)["participations"].iloc[-1] == 1
    assert isinstance(comparison, Comparison)
