"""The simulated clients offer quantities by name, and compute them for all who are asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcohort import Ask, Signal
from fedcohort._internal.errors import NotOffered
from fedcohort.selection import LABEL_HISTOGRAM, UPDATE
from fedcohort.simulation._clients import SimulatedClients
from fedcohort.training import MLP, LocalWork, Quadratic, Softmax

EVERYONE = np.arange(3)
WORK = LocalWork(steps=2, batch=5, lr=0.1)


def classifier(kind=Softmax):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(90, 4)), rng.integers(0, 3, 90)
    parts = [np.arange(0, 50), np.arange(50, 90), np.arange(0)]
    return kind(x, y, x[:30], y[:30], parts, 3, dtype=np.float64)


def clients(task, round: int = 0) -> SimulatedClients:
    theta = np.random.default_rng(1).normal(size=task.dimension)
    return SimulatedClients(task, WORK, 0, round, theta)


@pytest.mark.parametrize("kind", [Softmax, MLP])
def test_the_losses_of_samples_have_the_loss_as_their_mean(kind) -> None:
    task = classifier(kind)
    here = clients(task)
    of_samples = here.rows("sample_losses", EVERYONE)
    assert [len(row) for row in of_samples] == task.sizes.tolist()
    means = [row.mean() if len(row) else 0.0 for row in of_samples]
    np.testing.assert_allclose(means, here.rows("loss", EVERYONE))


def test_the_samples_of_a_quadratic_client_are_alike() -> None:
    here = clients(Quadratic([[0.0], [1.0], [2.0]], sizes=[2, 0, 1]))
    losses = here.rows("loss", EVERYONE)
    found = [row.tolist() for row in here.rows("sample_losses", EVERYONE)]
    assert found == [[losses[0]] * 2, [], [losses[2]]]


@pytest.mark.parametrize("kind", [Softmax, MLP])
def test_layers_are_the_flat_vector_by_name(kind) -> None:
    task = classifier(kind)
    here = clients(task)
    for of in ("update", "gradient", "model"):
        for k, layers in enumerate(here.rows("layers", EVERYONE, of)):
            flat = here.theta if of == "model" else here.rows(of, EVERYONE)[k]
            np.testing.assert_array_equal(
                np.concatenate([a.ravel() for a in layers.values()]), flat
            )
            assert list(layers)[-1].endswith(".bias")
            assert list(layers.values())[-1].shape == (3,)


def test_one_that_trains_trains_all_who_were_asked_once() -> None:
    class Counting(Quadratic):
        trained: list[int]

        def updates(self, theta, clients, work, rngs, data_rate=1.0):
            self.trained.append(len(clients))
            return super().updates(theta, clients, work, rngs, data_rate)

    task = Counting([[0.0], [1.0], [2.0]])
    task.trained = []
    both = Signal("both", "b", lambda client: [client.update()[0], client.layers()["theta"][0]])
    told = clients(task).answer(Ask(both, EVERYONE))
    assert task.trained == [3]
    np.testing.assert_array_equal(told[:, 0], told[:, 1])


BATTERY = Signal("battery", "how full", lambda client: client.battery, needs="battery", shape=())


def test_facts_are_supplied_with_the_task() -> None:
    task = classifier()
    task.facts = {"battery": [0.1, 0.2, 0.3], "place": np.eye(3)}
    ask = Ask(BATTERY, np.array([2, 0]))
    assert clients(task).answer(ask).tolist() == [0.3, 0.1]
    place = Signal("place", "where it stands", lambda client: client.place)
    assert clients(task).answer(Ask(place, np.array([1]))).tolist() == [[0.0, 1.0, 0.0]]
    assert {"battery", "place", "label_counts", "layers"} <= clients(task).offers


def test_facts_are_made_up_only_where_the_signal_says_how() -> None:
    here = clients(classifier())
    with pytest.raises(NotOffered, match=r"Client 1 .* no 'battery'.*'battery' needs: the task"):
        here.answer(Ask(BATTERY, np.array([1, 0])))
    told = replace(BATTERY, example=lambda rng, sizes: rng.uniform(size=sizes["classes"]))
    rows = here.answer(Ask(told, EVERYONE))
    assert rows.shape == (3, 3)
    assert len(np.unique(rows)) == 9
    np.testing.assert_array_equal(rows, clients(classifier(), 5).answer(Ask(told, EVERYONE)))


def test_a_task_without_labels_says_so() -> None:
    here = clients(Quadratic([[0.0], [1.0], [2.0]]))
    assert here.offers.isdisjoint({"label_counts", "feature_counts", "battery"})
    with pytest.raises(NotOffered, match=r"no 'label_counts', which the signal 'label_histogram'"):
        here.answer(Ask(LABEL_HISTOGRAM, EVERYONE))
    alone = clients(Quadratic([[0.0], [1.0], [2.0]])).answer(Ask(UPDATE, np.array([1])))
    np.testing.assert_array_equal(alone, here.updates(EVERYONE)[1:2])
