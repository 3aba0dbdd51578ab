"""Mods of Flower's on a client app, differential privacy above all: what they get to see is right.

They take what a client answers for parameters, so that a change would be clipped against the model.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, TooFewClients
from fedcohort.privacy import ClientPolicy
from fedcohort.selection import UPDATE_NORM

pytest.importorskip("flwr")
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp.mod import LocalDpMod, arrays_size_mod, fixedclipping_mod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

from fedcohort import flower
from fedcohort.flower import Work
from fedcohort.flower import _wire as wire
from helpers.flower_play import QUICK, WORK, N, play, task

FAR = np.array([50.0, 50.0])  # next to a step of NORM, and of a step without a mod
NORM = 0.001
TWO = SimpleNamespace(size=2)  # samples


def quiet(norm: float = NORM) -> LocalDpMod:
    """It clips, and adds next to nothing."""
    return LocalDpMod(clipping_norm=norm, sensitivity=1e-9, epsilon=1.0, delta=1e-5)


def far() -> ArrayRecord:
    return wire.to_record({"theta": FAR})


class Named(flower.InProcessGrid):
    """Nodes with names: nobody has to be greeted."""

    def get_nodes(self) -> Any:
        return [SimpleNamespace(node_id=n, name=f"c{p}") for n, p in self.partition.items()]


def step(grid: flower.InProcessGrid, scheme: str = "full", **options: Any) -> np.ndarray:
    config = options.pop("config", {})
    strategy = flower.CohortStrategy(
        scheme, **{"clients": N, "seed": 3, "limits": QUICK, **options}
    )
    result = strategy.start(grid, far(), num_rounds=1, train_config=ConfigRecord(config))
    return result.arrays["theta"].numpy() - FAR


def own_training(*mods: Any, local: Any = TWO) -> flower.CohortClientApp:
    """An app whose own function lowers every parameter by 1, and knows of shares."""
    clients = flower.client_app(lambda context: local, simulated=True)

    @clients.train(mods=list(mods))
    def train(message: Message, context: Any) -> Message:
        Work.of(message).participants(local.size)
        theta = message.content[wire.ARRAYS]["theta"].numpy()
        arrays = wire.to_record({"theta": theta - 1.0})
        counts = MetricRecord({"num-examples": local.size})
        return Message(RecordDict({wire.ARRAYS: arrays, "metrics": counts}), reply_to=message)

    return clients


# -- what the refusal of Flower's wrappers recommends ------------------------------------------


def test_clients_that_clip_and_add_noise_themselves_do_so() -> None:
    moved = step(flower.InProcessGrid(own_training(quiet()), N, raises=True))
    assert np.linalg.norm(moved) == pytest.approx(NORM, rel=1e-3)


@pytest.mark.parametrize(
    "scheme", ["fedsampling-naive:rate=0.2", "fedsampling:K=2,mechanism=exact"]
)
def test_a_client_without_a_sample_in_the_round_passes_its_mods_unchanged(scheme: str) -> None:
    """A step of +145 was made of it where one of at most -0.001 is right."""
    bare = step(flower.InProcessGrid(own_training(), N, raises=True), scheme)
    assert -1 < bare[0] < 0  # somebody is idle, somebody is not
    clipped = step(flower.InProcessGrid(own_training(quiet()), N, raises=True), scheme)
    np.testing.assert_allclose(clipped, bare * NORM / np.sqrt(2), rtol=1e-3)


def test_a_wrapper_around_flowers_own_strategy_clips() -> None:
    grid = flower.InProcessGrid(own_training(), N, raises=True)
    inner = FedAvg(fraction_evaluate=0.0, min_available_nodes=N, min_train_nodes=N)
    wrapped = DifferentialPrivacyServerSideFixedClipping(inner, 1e-9, NORM, N)
    moved = wrapped.start(grid, far(), num_rounds=1).arrays["theta"].numpy() - FAR
    assert np.linalg.norm(moved) == pytest.approx(NORM, rel=1e-3)


def test_a_question_about_updates_is_answered_by_what_would_be_sent() -> None:
    """An object's own way to train went past the mods of the function that is used instead."""
    local = SimpleNamespace(size=2, update=lambda model, work: {"theta": np.ones(2)})
    clients = own_training(quiet(), local=local)
    grid = flower.InProcessGrid(clients, 1, raises=True)
    config = ConfigRecord({wire.SIGNAL: UPDATE_NORM.name})
    content = RecordDict({wire.CONFIG: config, wire.ARRAYS: far()})
    (reply,) = grid.send_and_receive([Message(content, next(iter(grid.contexts)), wire.QUERY)])
    told = reply.content[wire.ANSWER][UPDATE_NORM.name].numpy()
    assert told == pytest.approx(NORM, rel=1e-3)


# -- mods of the whole app ---------------------------------------------------------------------


@pytest.mark.parametrize("mod", [quiet(), fixedclipping_mod])
def test_mods_of_an_app_that_trains_by_its_object_see_parameters(mod: Any) -> None:
    """A step of +50 was made of it where one of -24.75 is right."""
    few = {"identity": "name", "importance": "equal", "evaluate": "nobody"}  # no question

    def moved(mods: list[Any], norm: float) -> np.ndarray:
        clients = flower.client_app(flower.task_client(task(), WORK), simulated=True, mods=mods)
        return step(Named(clients, N, raises=True), config={"clipping_norm": norm}, **few)

    bare = moved([], NORM)
    np.testing.assert_allclose(bare, [-24.75, -24.5], atol=0.5)
    assert np.linalg.norm(moved([mod], NORM)) == pytest.approx(NORM, rel=1e-2)
    if mod is fixedclipping_mod:
        np.testing.assert_allclose(moved([mod], 1e3), bare, rtol=1e-12)  # nothing to clip


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_an_object_without_a_sample_in_the_round_passes_the_mods_of_its_app(dtype: Any) -> None:
    """What clips divides by the length of the change, which is zero."""
    model = wire.to_record(
        {"steps": np.array(7), "bias": np.array(0, dtype), "w": np.ones(3, dtype)}
    )
    local = SimpleNamespace(size=1)
    local.update = lambda model, work: pytest.fail("nothing to train on")

    def clips(message: Message, context: Any, go_on: Any) -> Message:
        if message.metadata.message_type != wire.TRAIN:
            return go_on(message, context)
        return fixedclipping_mod(message, context, go_on)

    policy = ClientPolicy(lowest_rate=1e-9)
    clients = flower.client_app(lambda context: local, policy=policy, mods=[clips])
    strategy = flower.CohortStrategy("fedsampling-naive:rate=1e-9", clients=N, limits=QUICK)
    grid = flower.InProcessGrid(clients, N, raises=True)
    config = ConfigRecord({"clipping_norm": NORM})
    result = strategy.start(grid, model, num_rounds=1, train_config=config)
    assert strategy.gate.summary() == {}
    for name, before in wire.from_record(model).items():
        after = result.arrays[name].numpy()
        assert after.shape == before.shape
        np.testing.assert_allclose(after, before, rtol=0, atol=float(np.finfo(dtype).eps))


@pytest.mark.parametrize("algorithm", ["sgd", "scaffold", "ifca:k=2"])
def test_a_mod_that_only_looks_changes_nothing(algorithm: str, tmp_path: Any) -> None:
    def model(which: str, mods: list[Any]) -> np.ndarray:
        policy = ClientPolicy(
            folder=lambda context: tmp_path / which / str(context.node_config["partition-id"])
        )
        local = flower.task_client(task(), WORK)
        clients = flower.client_app(local, simulated=True, policy=policy, mods=mods)
        return play(flower.InProcessGrid(clients, N, raises=True), algorithm=algorithm)[1]

    np.testing.assert_allclose(
        model("with", [arrays_size_mod]), model("without", []), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("change", [{"theta": np.ones(1)}, {"other": np.ones(2)}, {}])
def test_beneath_mods_a_change_of_another_shape_is_not_made_to_fit(change: Any) -> None:
    local = SimpleNamespace(size=1, update=lambda model, work: change)
    clients = flower.client_app(lambda context: local, mods=[arrays_size_mod])
    with pytest.raises(BadInput, match="the name and the shape of the array"):
        step(flower.InProcessGrid(clients, N, raises=True))


def test_a_mod_that_lets_no_question_pass_is_told_where_it_belongs() -> None:
    clients = flower.client_app(flower.task_client(task(), WORK), mods=[quiet()])
    says = r"LocalDpMod expects exactly one ArrayRecord.*training alone, by @app\.train\(mods="
    with pytest.raises(TooFewClients, match=says):
        step(flower.InProcessGrid(clients, N))
