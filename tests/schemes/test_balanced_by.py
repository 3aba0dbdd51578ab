"""What cohorts can be balanced by: labels, their public part, noise, any quantity of clients."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort import Federation, LocalWork, Selector, scheme, simulate
from fedcohort._internal.errors import BadParameter, NotOffered
from fedcohort._internal.random import stream
from fedcohort.designs import Rows
from fedcohort.testing import check_scheme
from fedcohort.theory._moments import estimated_variance
from fedcohort.training import Softmax

N, M = 60, 6
EQUAL = Federation.from_sizes([10] * N)
HEIGHT = np.linspace(-1, 1, N) ** 3
LABELS = stream(0, "labels").multinomial(200, stream(1, "x").dirichlet(np.full(5, 0.2), N))
FEDERATION = Federation.from_sizes([200] * N)


@pytest.mark.parametrize("name", ["balanced", "local-pivotal", "pivotal"])
def test_a_quantity_of_the_clients_hardly_varies(name: str) -> None:
    told = lambda ask: HEIGHT[ask.clients]  # noqa: E731
    design = Selector(scheme(name, m=M, by="height"), EQUAL, seed=0, ask=told).design()
    found = estimated_variance(design, HEIGHT[:, None], 300, stream(0, "x"))
    md = Rows.alike(EQUAL.shares, M).aggregate_variance(HEIGHT)
    assert found.high < 0.5 * md


def test_a_quantity_may_be_zero_or_missing() -> None:
    told = np.where(np.arange(N) % 2, 1.0, 0.0)
    told[:3] = np.nan
    selector = Selector(scheme("balanced", m=M, by="side"), EQUAL, seed=0,
                        ask=lambda ask: told[ask.clients])  # fmt: skip
    law = selector.design()
    known = selector.start()
    assert known.known.tolist() == [False] * 3 + [True] * (N - 3)
    drawn = [told[law.draw(stream(i, "x")).clients] for i in range(20)]
    assert {int(np.nansum(row)) for row in drawn} <= {2, 3, 4}  # half of the six, but for the end


def test_bad_words_are_told() -> None:
    with pytest.raises(BadParameter, match="or the name of a quantity of clients"):
        scheme("balanced", by="two words")
    with pytest.raises(BadParameter, match="It is for labels"):
        scheme("balanced", by="public-labels", epsilon=1.0)


@pytest.fixture(scope="module")
def task() -> Softmax:
    rng = np.random.default_rng(5)
    x, y = rng.random((240, 6)), np.repeat(np.arange(4), 60)
    return Softmax(x, y, x, y, np.array_split(np.arange(240), 12), 4, dtype=np.float64)


def test_the_public_part_of_the_labels_is_asked_once(task: Softmax) -> None:
    words = "balanced:m=4,by=public-labels"
    with pytest.raises(NotOffered, match=r"must have facts = .'public_label_counts'"):
        simulate(task, words, rounds=1)
    task.facts = {"public_label_counts": task.label_histograms // 5}
    trace = simulate(task, words, rounds=3, work=LocalWork(steps=1))
    (asked,) = [row for row in trace.ledger if row["purpose"] == "public_label_histogram"]
    assert asked["messages"] == 2 * 12
    whole = simulate(task, "balanced:m=4,by=labels", rounds=3, work=LocalWork(steps=1))
    for round in range(3):  # the same shares give the same cohorts
        assert trace.cohort(round) == whole.cohort(round)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["balanced:by=height,m=2"])
def test_all_checks_pass(words: str) -> None:
    assert all(each.passed for each in check_scheme(words))


def test_the_local_cube_is_balanced_too() -> None:
    told = lambda ask: LABELS[ask.clients]  # noqa: E731
    shares = LABELS / LABELS.sum(axis=1, keepdims=True)
    md = Rows.alike(FEDERATION.shares, M).aggregate_variance(shares)
    design = Selector(scheme("balanced", m=M, local=True), FEDERATION, seed=0, ask=told).design()
    assert estimated_variance(design, shares, 60, stream(0, "x")).high < 0.5 * md


def test_noise_costs_variance_and_no_bias() -> None:
    """The more noise, the nearer to a cohort that is balanced by nothing."""
    shares = LABELS / LABELS.sum(axis=1, keepdims=True)
    found = []
    for scale in (0, 20, 2_000):
        noisy = LABELS + stream(0, "noise").integers(-scale, scale + 1, LABELS.shape)
        asked = scheme("balanced", m=M, epsilon=1.0)
        design = Selector(
            asked, FEDERATION, seed=0, ask=lambda ask, x=noisy: x[ask.clients]
        ).design()
        np.testing.assert_allclose(design.mean(), FEDERATION.importance, rtol=1e-12)
        found.append(estimated_variance(design, shares, 80, stream(0, "x")).variance)
    assert found[0] < found[1] < found[2]
