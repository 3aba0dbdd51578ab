"""All that fedcohort.flower relies on in flwr, by name: a new release fails here first."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import logging
import sys
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flwr")
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedcohort import flower
from fedcohort.flower import _exchange as arrivals
from fedcohort.flower import _exchange as exchange
from fedcohort.flower import _in_process as inprocess
from fedcohort.flower import _wire as wire

SOURCES = sorted(Path(flower.__file__).parent.glob("*.py"))
PUBLIC = {"flwr", "flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy"}
METHODS = {
    "configure_train": ["server_round", "arrays", "config", "grid"],
    "aggregate_train": ["server_round", "replies"],
    "configure_evaluate": ["server_round", "arrays", "config", "grid"],
    "aggregate_evaluate": ["server_round", "replies"],
    "summary": [],
}


def parameters(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_modules_import_public_modules_of_flwr_alone(source) -> None:
    """Other imports of flwr stand in a function or below TYPE_CHECKING."""
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith("flwr"):
            assert statement.module in PUBLIC
            module = importlib.import_module(statement.module)
            assert all(hasattr(module, name.name) for name in statement.names)


@pytest.mark.parametrize("private", ["task_identity", "run"])
def test_a_private_module_that_is_gone_stops_nothing(private, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, f"flwr.supercore.{private}", None)
    spec = importlib.util.spec_from_file_location("another_inprocess", inprocess.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    assert module.InProcessGrid(ClientApp(), 2).get_node_ids()


def test_the_abstract_methods_of_a_strategy() -> None:
    assert set(METHODS) == Strategy.__abstractmethods__
    for name, given in METHODS.items():
        assert parameters(getattr(Strategy, name)) == given
        assert parameters(getattr(flower.CohortStrategy, name)) == given


def test_the_parameters_of_start() -> None:
    """Ours takes all that flwr's takes, in the same order; should_stop is of flwr 1.43."""
    theirs, ours = parameters(Strategy.start), parameters(flower.CohortStrategy.start)
    assert ours[: len(theirs)] == theirs
    assert ours[-2:] == ["should_stop", "on_round"]


def test_what_a_result_holds() -> None:
    metrics = ["train_metrics_clientapp", "evaluate_metrics_clientapp"]
    assert {"arrays", *metrics, "evaluate_metrics_serverapp"} == set(vars(Result()))


def test_the_methods_of_a_grid() -> None:
    used = {
        "get_node_ids": [],
        "get_nodes": [],
        "push_messages": ["messages"],
        "pull_messages": ["message_ids"],
        "send_and_receive": ["messages", "timeout"],
    }
    for name, given in used.items():
        assert parameters(getattr(Grid, name)) == given
    assert Grid.__abstractmethods__ <= {*used, "set_run", "run", "create_message"}
    nodes = list(flower.InProcessGrid(ClientApp(), 2).get_nodes())
    assert all({"node_id", "name"} <= set(type(node).DESCRIPTOR.fields_by_name) for node in nodes)


def in_memory():
    from flwr.superlink.grid import InMemoryGrid

    state = SimpleNamespace(store_message_ins=lambda message: message.metadata.message_id)
    return InMemoryGrid(SimpleNamespace(state=lambda: state))


def over_http():
    from flwr.superlink.grid.http_grid import HttpGrid

    grid = HttpGrid(token="none")  # noqa: S106
    grid._run = SimpleNamespace(run_id=1)
    grid._try_push_messages = lambda run, messages: [m.metadata.message_id for m in messages]
    return grid


@pytest.mark.parametrize("grid", [in_memory, over_http])
def test_a_grid_writes_message_ids_into_the_messages_that_it_pushes(grid) -> None:
    flower.InProcessGrid(ClientApp(), 1)  # it gives this process an identity
    sent = [Message(RecordDict(), node, "train", group_id="1") for node in (7, 8)]
    names = list(grid().push_messages(sent))
    assert names == [message.metadata.message_id for message in sent]
    assert len(set(names)) == 2
    assert all(names)


def test_what_a_reply_tells_of_its_message() -> None:
    grid = flower.InProcessGrid(ClientApp(), 1)
    (node,) = grid.get_node_ids()
    message = Message(RecordDict(), node, "train", group_id="3")
    message.metadata.__dict__["_message_id"] = "its name"
    assert message.metadata.message_id == "its name"
    for content in (RecordDict(), Error(2, "oh")):
        reply = Message(content, reply_to=message)
        assert reply.metadata.reply_to_message_id == "its name"
        assert reply.metadata.src_node_id == node
        assert reply.metadata.group_id == "3"
        assert reply.metadata.message_type == "train"
        assert reply.has_error() == isinstance(content, Error) != reply.has_content()
    assert (reply.error.code, reply.error.reason) == (2, "oh")


def test_error_codes_and_who_sends_them() -> None:
    from flwr.common import constant

    names = [
        "UNKNOWN",
        "LOAD_CLIENT_APP_EXCEPTION",
        "CLIENT_APP_RAISED_EXCEPTION",
        "MESSAGE_UNAVAILABLE",
        "REPLY_MESSAGE_UNAVAILABLE",
        "NODE_UNAVAILABLE",
    ]
    assert [getattr(constant.ErrorCode, name) for name in names] == list(range(len(names)))
    assert (arrivals.UNREAD, inprocess.RAISED) == (0, 2)
    assert constant.SUPERLINK_NODE_ID == arrivals.SUPERLINK


def test_what_a_simulation_puts_around_the_error_of_a_client() -> None:
    from flwr.clientapp.client_app import ClientAppException

    assert str(ClientAppException("its words")).partition(exchange.FRAME)[2] == "its words"


def test_message_types_and_the_functions_of_a_client_app() -> None:
    app, grid = ClientApp(mods=[]), flower.InProcessGrid(ClientApp(), 1)
    for register in (app.train(mods=[]), app.evaluate(), app.query(wire.ACTION)):

        @register
        def answer(message: Message, context: Context) -> Message:
            return Message(RecordDict(), reply_to=message)

    (node,) = grid.get_node_ids()
    for kind in (wire.TRAIN, wire.EVALUATE, wire.QUERY):
        assert app(Message(RecordDict(), node, kind), grid.contexts[node]).has_content()


def test_what_a_context_holds() -> None:
    context = Context(1, 2, {"partition-id": 3}, RecordDict(), {"lr": 0.1})
    assert (context.run_id, context.node_id) == (1, 2)
    assert (context.node_config["partition-id"], context.run_config["lr"]) == (3, 0.1)
    context.state["kept"] = ConfigRecord({"a": b"bytes", "b": True, "c": "text", "d": [1, 2]})
    assert context.state.config_records["kept"]["a"] == b"bytes"


def test_records_and_how_arrays_are_packed() -> None:
    array = Array(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    assert (array.dtype, tuple(array.shape), array.stype) == ("float32", (2, 3), "numpy.ndarray")
    assert array.data[:6] == b"\x93NUMPY"
    again = Array(array.dtype, array.shape, array.stype, array.data)
    np.testing.assert_array_equal(ArrayRecord({"w": again})["w"].numpy(), array.numpy())
    content = RecordDict({"arrays": ArrayRecord({"w": array}), "m": MetricRecord({"x": 1.0})})
    assert set(content.array_records) == {"arrays"}
    assert set(content.metric_records) == {"m"}
    with pytest.raises(TypeError):
        MetricRecord({"x": np.int64(1)})


def test_the_log_and_the_commands() -> None:
    assert logging.getLogger("flwr").handlers  # what is logged below it is shown
    commands = {entry.name for entry in distribution("flwr").entry_points}
    assert {"flwr", "flower-superlink", "flower-supernode"} <= commands
