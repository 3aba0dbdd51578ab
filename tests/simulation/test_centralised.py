from __future__ import annotations

import numpy as np
import pytest

from fedcohort import LocalWork, compare, report, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.random import stream
from fedcohort.server import Adam
from fedcohort.simulation import MLP, Centralised, Problem, Quadratic, Random, Softmax
from fedcohort.training._task import batches

WORK = LocalWork(steps=20, batch=7, lr=0.5, mu=0.3)


@pytest.fixture(scope="module")
def digits() -> Softmax:
    problem = Problem("digits", "one-class-per-client", {"n": 20, "per_client": 30})
    return problem.task()  # type: ignore[return-value]


def test_a_round_is_one_step_on_samples_of_all_data(digits: Softmax) -> None:
    trace = Centralised(samples=50).run(digits, rounds=3, seed=4, work=WORK)
    theta = np.asarray(digits.initial(4), dtype=float)
    x, y = digits.data.samples(slice(None))
    for round in range(3):
        step = LocalWork(steps=1, batch=50, lr=0.5)
        rows, lengths = batches(stream(4, "train", round, 0), len(y), step)
        chosen = rows[0, : lengths[0]]
        assert len(np.unique(chosen)) == 50
        theta = theta - 0.5 * digits.model.gradient(theta, x[chosen], y[chosen])
    np.testing.assert_allclose(trace.model, theta, atol=1e-5)


def test_with_all_samples_it_is_full_participation_with_one_step(digits: Softmax) -> None:
    total = int(digits.sizes.sum())
    step = LocalWork(steps=1, batch=None, lr=0.5)
    central = Centralised(samples=total).run(digits, rounds=5, work=step)
    whole = simulate(digits, "full", rounds=5, work=step)
    np.testing.assert_allclose(central.model, whole.model, atol=1e-5)
    np.testing.assert_allclose(central.train_loss, whole.train_loss, atol=1e-5)
    np.testing.assert_allclose(central.client_losses, whole.client_losses, atol=1e-4)


def test_it_is_no_scheme_and_nobody_takes_part(digits: Softmax) -> None:
    trace = Centralised(samples=50).run(digits, rounds=3, work=WORK, availability=Random(0.1))
    assert (trace.scheme, trace.label) == ("centralised", "centralised")
    assert trace.messages.sum() == trace.bytes_up.sum() == len(trace.cohort_clients) == 0
    assert [row["discloses"] for row in trace.ledger] == ["all data"]
    assert [told.discloses for told in trace.disclosures] == ["all data"]
    assert not trace.invited.any()
    np.testing.assert_array_equal(trace.sizes, digits.sizes)
    assert len(trace.client_losses) == len(digits.sizes)


def test_beside_schemes_in_a_comparison_and_its_report(digits: Softmax, tmp_path: object) -> None:
    comparison = compare(
        digits,
        ["md", scheme("fedsampling", K=60, M=60, when_imprecise="accept")],
        rounds=4,
        seeds=2,
        centralised=60,
        jobs=1,
        folder=tmp_path / "runs",  # type: ignore[operator]
        work=LocalWork(steps=1, batch=None, lr=0.5),
        optimiser=Adam(eta_g=0.1),
    )
    assert comparison.labels == ("md", "fedsampling", "centralised")
    assert len(comparison.of("centralised")) == 2
    assert set(report.summary(comparison)["scheme"]) == set(comparison.labels)
    page = report.write(comparison, tmp_path / "report.html")  # type: ignore[operator]
    assert "centralised" in page.read_text(encoding="utf-8")


def test_pooling_leaves_the_task_alone() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((12, 4)), rng.integers(0, 3, 12)
    task = MLP(x, y, x, y, clients=[range(5), range(5, 12)], classes=3, hidden=4)
    pooled = task.pooled()
    assert pooled.sizes.tolist() == [12]
    assert task.sizes.tolist() == [5, 7]
    theta = task.initial(0)
    np.testing.assert_allclose(
        pooled.evaluate(theta[None]).train_loss, task.evaluate(theta[None]).train_loss
    )
    assert pooled.label_histograms.sum() == 12


def test_what_cannot_be_pooled_and_bad_numbers() -> None:
    with pytest.raises(BadInput, match="cannot be brought together"):
        Centralised(3).run(Quadratic([[1.0]]), rounds=1)
    with pytest.raises(BadParameter, match="'samples' parameter of centralised"):
        Centralised(samples=0)
