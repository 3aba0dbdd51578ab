"""As Flower users know it: the log, the arguments of FedAvg, who evaluates, three changed lines."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import re
import threading
from pathlib import Path

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter, FedcohortError, TooFewClients

pytest.importorskip("flwr")
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.server import strategy as older
from flwr.serverapp import strategy as strategies
from flwr.serverapp.strategy import FedAvg

from fedcohort import flower
from fedcohort.flower._fedavg_arguments import ELSEWHERE, Familiar
from fedcohort.schemes import SCHEMES
from fedcohort.server import _history as history
from helpers.flower_play import QUICK, Counting, N, app, play, task

ROOT = Path(__file__).parents[2]


def told(**metrics: float):
    """An evaluate or train reply that adds metrics; a metric may depend on the partition."""
    clients = app()

    @clients.evaluate()
    def evaluate(message: Message, context) -> Message:
        assert message.content["config"]["server-round"] >= 1
        i = context.node_config["partition-id"]
        mine = {k: float(v(i)) if callable(v) else v for k, v in metrics.items()}
        return Message(RecordDict({"metrics": MetricRecord(mine)}), reply_to=message)

    return clients


def evaluated(**options):
    """Who evaluates, by round, and the metrics."""
    clients = options.pop("app", None) or told(loss=1.0)
    grid = Counting(clients, N)
    strategy = flower.CohortStrategy(options.pop("scheme", "md:m=3"), seed=3, **options)
    result = strategy.start(grid, flower.first_model(task(), 3), num_rounds=2)
    return sorted(who for kind, who in grid.seen if kind == "evaluate"), result


# -- who evaluates ---------------------------------------------------------------------------


def test_by_default_everyone_who_can_evaluates_and_the_cost_is_said(caplog) -> None:
    caplog.set_level("INFO")
    who, result = evaluated(clients=N)
    assert who == sorted([*range(N), *range(N)])
    assert set(result.evaluate_metrics_clientapp) == {1, 2}
    assert "everyone; each is sent the model once a round, 0.00 MB (less:" in caplog.text
    assert "metrics (every round): what its evaluate function reports" in caplog.text


def test_by_default_those_who_cannot_are_not_asked(caplog) -> None:
    caplog.set_level("INFO")
    grid = Counting(told(loss=1.0), N)
    node = next(node for node, i in grid.partition.items() if i == 2)
    grid.apps[node] = app()
    strategy, _ = play(grid, rounds=1)
    assert [who for kind, who in grid.seen if kind == "evaluate"].count(2) == 0
    assert not strategy.gate.counts
    grid = Counting(app(), N)
    play(grid, rounds=1)
    assert not [kind for kind, _ in grid.seen if kind == "evaluate"]
    assert "nobody: no client has an @app.evaluate()" in caplog.text


def test_a_scheme_that_hides_sizes_asks_nobody_unasked(caplog) -> None:
    caplog.set_level("INFO")
    hides = {"scheme": "fedsampling:K=40,mechanism=exact"}
    who, _ = evaluated(clients=N, **hides)
    assert who == []
    assert "nobody, so that no size is told" in caplog.text
    who, _ = evaluated(clients=N, evaluate="everyone", **hides)
    assert len(who) == 2 * N


@pytest.mark.parametrize(
    ("scheme", "importance", "warns"),
    [
        ("fedsampling:K=40", "size", True),
        ("fedsampling:K=40", "equal", False),
        ("fedsampling:K=40,mechanism=exact", "size", False),  # it is said to know them
        ("md", "size", False),
    ],
)
def test_a_scheme_that_hides_sizes_warns_before_they_are_asked_for(
    scheme, importance, warns, caplog
) -> None:
    flower.CohortStrategy(scheme, clients=N, importance=importance).summary()
    said = "fedsampling hides how many samples a client has, but importance='size' asks"
    assert (said in caplog.text) == warns
    assert ("write importance='equal'" in caplog.text) == warns


def test_a_share_evaluates_the_same_each_time_and_another_in_every_round() -> None:
    first, _ = evaluated(clients=N, evaluate=0.5)
    again, _ = evaluated(clients=N, fraction_evaluate=0.5)
    assert first == again
    assert len(first) == N
    assert len(set(first)) > N // 2  # two rounds, not the same four
    assert len(evaluated(clients=N, evaluate=0.01)[0]) == 2
    assert len(evaluated(clients=N, evaluate=0.01, min_evaluate_nodes=3)[0]) == 6


# -- arguments of FedAvg ---------------------------------------------------------------------


def test_every_argument_of_fedavg_is_known_and_in_the_table_of_the_docs() -> None:
    arguments = set(inspect.signature(FedAvg.__init__).parameters) - {"self"}
    assert arguments == set(Familiar.__annotations__)
    page = (ROOT / "docs" / "flower.md").read_text(encoding="utf-8")
    rows = {name for name in arguments if re.search(rf"^\| .*`{name}`", page, re.MULTILINE)}
    assert rows == arguments


def test_arguments_with_a_meaning_here_are_taken() -> None:
    assert evaluated(min_available_nodes=N, fraction_evaluate=0.0)[0] == []
    assert len(evaluated(clients=N, fraction_evaluate=1.0)[0]) == 2 * N
    flower.CohortStrategy("full", clients=3, arrayrecord_key="arrays", configrecord_key="config")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"fraction_train": 0.5},
            r"For 0.5 of 8 write CohortStrategy\('fedavg:weights=normalised,m=4', clients=8\), "
            r"which chooses and weighs as FedAvg does, or \('uniform:m=4', clients=8\)",
        ),
        ({"fraction_train": 0}, r"where nobody is to train, use Flower's FedAvg\(fraction_train=0"),
        ({"fraction_train": -1}, "'fraction_train' parameter of CohortStrategy must be left out"),
        ({"evaluate_fn": print}, r"start\(\) takes it: write strategy.start\(.*evaluate_fn="),
        ({"proximal_mu": 0.1}, r'train_config=ConfigRecord\(\{"proximal-mu": 0.1\}\)'),
        ({"min_train_nodes": 2}, "m of its scheme is how many clients train"),
        ({"arrayrecord_key": "model"}, r'Read msg.content\["arrays"\]'),
        ({"configrecord_key": "c"}, r'Read msg.content\["config"\]'),
        ({"min_available_nodes": 5}, "'min_available_nodes' of FedAvg is 'clients'"),
        ({"evaluate": "cohort", "fraction_evaluate": 1.0}, "give one of them, not both"),
    ],
)
def test_what_means_nothing_here_is_answered_by_what_to_write(given, says) -> None:
    with pytest.raises((BadInput, BadParameter), match=says):
        flower.CohortStrategy("md", clients=N, **given)


@pytest.mark.parametrize("least", [None, 1, 3])
@pytest.mark.parametrize("fraction", [0.01, 0.3, 1.0])
def test_as_many_as_fedavg_samples_itself(fraction, least) -> None:
    """What the sentence says of training, and who evaluates, are FedAvg's own numbers."""
    kinds = ("train", "evaluate")
    named = {f"min_{kind}_nodes": least for kind in kinds if least is not None}
    theirs = FedAvg(fraction_train=fraction, fraction_evaluate=fraction, **named)
    arrays, grid = flower.first_model(task(), 3), flower.InProcessGrid(told(loss=1.0), N)
    train, evaluate = (
        len(list(getattr(theirs, f"configure_{kind}")(1, arrays, ConfigRecord(), grid)))
        for kind in kinds
    )
    with pytest.raises(BadInput, match=rf"'uniform:m={train}', clients={N}"):
        flower.CohortStrategy("md", clients=N, fraction_train=fraction, **named)
    named.pop("min_train_nodes", None)
    who, _ = evaluated(clients=N, fraction_evaluate=fraction, **named)
    assert len(who) == 2 * evaluate


def test_one_client_alone_is_told_that_fedavg_waits_for_two() -> None:
    with pytest.raises(BadInput, match="'uniform:m=2', clients=2"):
        flower.CohortStrategy("md", clients=1, fraction_train=0.1)


def test_the_arguments_of_every_other_strategy_are_answered() -> None:
    named = ("FedAdagrad", "FedAdam", "FedAvgM", "FedProx", "FedTrimmedAvg", "FedYogi", "Krum")
    answered = {"self", *Familiar.__annotations__, *ELSEWHERE}
    old = {"Krum", "FedAvg", "FedAvgM", "FedProx", "FaultTolerantFedAvg"}
    for module, names in ((strategies, {*named, "MultiKrum", "QFedAvg"}), (older, old)):
        for name in names:
            taken = set(inspect.signature(getattr(module, name).__init__).parameters)
            assert taken - answered <= {"min_completion_rate_evaluate"}, name
    start = set(inspect.signature(flower.CohortStrategy.start).parameters)
    assert start <= answered


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_an_answer_tells_to_write_can_be_written(name) -> None:
    with pytest.raises(BadInput, match=f"^CohortStrategy has no '{name}': .*[^.]\\.$") as raised:
        flower.CohortStrategy("md", clients=N, **{name: 1})
    for argument, spec in re.findall(
        r'(algorithm|optimiser|aggregator)="([^"]+)"', str(raised.value)
    ):
        given = {argument: spec, "dropouts": "none", "quorum": 0}
        flower.CohortStrategy("binomial:m=3", clients=N, **given)


def test_a_stock_client_of_fedprox_trains_by_what_the_answer_tells_to_write() -> None:
    with pytest.raises(BadInput) as raised:
        flower.CohortStrategy("full", clients=N, proximal_mu=0.1)
    written = re.search(r"train_config=(.*\}\))", str(raised.value)).group(1)
    config, clients, read = eval(written), flower.ClientApp(), []  # noqa: S307

    @clients.train()
    def train(message: Message, context) -> Message:
        read.append(message.content["config"]["proximal-mu"])
        return Message(RecordDict({"arrays": message.content["arrays"]}), reply_to=message)

    grid, first = flower.InProcessGrid(clients, N), flower.first_model(task(), 3)
    strategy = flower.CohortStrategy("full", clients=N, importance="equal")
    strategy.start(grid, first, num_rounds=1, train_config=config)
    assert read == [0.1] * N
    prox = flower.CohortStrategy("full", clients=N, limits=QUICK, algorithm="fedprox:mu=0.1")
    with pytest.raises(TooFewClients, match=re.escape(written)):
        prox.start(grid, first, num_rounds=1)


@pytest.mark.parametrize(
    "bad",
    [
        {"fraction_evaluate": 1.5},
        {"min_evaluate_nodes": -1},
        {"weighted_by_key": 3},
        {"train_metrics_aggr_fn": 3},
        {"evaluate": 1.5},
    ],
)
def test_a_bad_value_is_one_sentence(bad) -> None:
    with pytest.raises(BadParameter, match=f"The '{next(iter(bad))}' parameter of CohortStrategy"):
        flower.CohortStrategy("md", clients=N, **bad)


def test_neither_clients_nor_a_word_that_nobody_knows() -> None:
    with pytest.raises(BadInput, match="needs 'clients', how many to wait for"):
        flower.CohortStrategy("md")
    with pytest.raises(TypeError, match=r"no argument 'fraction_evalute'\. Did you mean"):
        flower.CohortStrategy("md", clients=N, fraction_evalute=1.0)
    with pytest.raises(TypeError, match=r"no argument 'xxx") as raised:
        flower.CohortStrategy("md", clients=N, **{"x" * 9000: 1})
    assert len(str(raised.value)) < 150


# -- metrics ---------------------------------------------------------------------------------


def test_metrics_need_no_number_of_samples_and_do_not_show_it() -> None:
    """Flower ends the run where it is missing, and leaves it out of what it shows."""
    _, result = evaluated(clients=N, app=told(loss=lambda i: i))
    sizes = np.arange(1, N + 1)
    expected = float(np.arange(N) @ sizes / sizes.sum())
    assert result.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(expected)
    _, result = evaluated(clients=N, app=told(loss=lambda i: i, **{"num-examples": 4}))
    assert dict(result.evaluate_metrics_clientapp[1]) == {"loss": pytest.approx(expected)}


def test_metrics_may_be_weighed_by_one_of_them() -> None:
    counts = {"loss": lambda i: i, "mine": lambda i: float(i < 2)}
    _, result = evaluated(clients=N, app=told(**counts), weighted_by_key="mine")
    assert dict(result.evaluate_metrics_clientapp[1]) == {"loss": 0.5}


def test_a_key_that_nobody_reports_weighs_nothing_and_is_named_once(caplog) -> None:
    """It is the default of FedAvg, so it is copied; all metrics vanished without a word."""
    clients = told(loss=lambda i: i)
    _, usual = evaluated(clients=N, app=clients)
    _, result = evaluated(clients=N, app=clients, weighted_by_key="num-examples")
    for number in (1, 2):
        shown = dict(result.evaluate_metrics_clientapp[number])
        assert shown == dict(usual.evaluate_metrics_clientapp[number])
    assert caplog.text.count("no client reports 'num-examples', by which weighted_by_key=") == 1


def test_functions_of_the_users_make_the_metrics(caplog) -> None:
    clients = told(loss=lambda i: i)

    @clients.train()
    def train(message: Message, context) -> Message:
        i = context.node_config["partition-id"]
        metrics = MetricRecord({"loss": float(i), "num-examples": 1})
        content = RecordDict({"arrays": message.content["arrays"], "metrics": metrics})
        return Message(content, reply_to=message)

    def worst(records: list[RecordDict], key: str) -> MetricRecord:
        losses = [next(iter(record.metric_records.values()))["loss"] for record in records]
        return MetricRecord({"worst": max(losses), "all": sorted(losses), key: 0})

    _, result = evaluated(
        clients=N,
        scheme="full",
        app=clients,
        train_metrics_aggr_fn=worst,
        evaluate_metrics_aggr_fn=worst,
    )
    train_metrics = result.train_metrics_clientapp[1]
    assert train_metrics["worst"] == N - 1
    assert train_metrics["all"] == list(range(N))
    assert train_metrics["cohort-size"] == N
    assert result.evaluate_metrics_clientapp[2] == MetricRecord(
        {"worst": float(N - 1), "all": [float(i) for i in range(N)], "num-examples": 0}
    )
    assert not caplog.text.count("failed")


@pytest.mark.parametrize("returns", [None, MetricRecord({"a": 1}), 7])
def test_a_function_that_fails_ends_no_round(returns, caplog) -> None:
    """It reads what clients send, and no client may end a run."""

    def breaks(records: list[RecordDict], key: str) -> MetricRecord:
        if returns is not None:
            return returns
        return MetricRecord({"x": next(iter(records[0].metric_records.values()))["typo"]})

    _, result = evaluated(clients=N, evaluate_metrics_aggr_fn=breaks)
    metrics = dict(result.evaluate_metrics_clientapp[2])
    if isinstance(returns, MetricRecord):
        assert metrics == {"a": 1}
    else:
        assert metrics == {"loss": pytest.approx(1.0)}
        assert "evaluate_metrics_aggr_fn failed (" in caplog.text
    if returns is None:
        assert "test_like_flower.py, line" in caplog.text or "KeyError" in caplog.text


# -- a strategy of one's own -----------------------------------------------------------------


class Reader(flower.CohortStrategy):
    """Logs every reply before the round is aggregated, as subclasses of FedAvg do."""

    def aggregate_train(self, server_round, replies):
        assert type(replies) is list
        self.read = [*getattr(self, "read", []), len([r for r in replies if r.has_content()])]
        return super().aggregate_train(server_round, replies)


@pytest.mark.parametrize("threads", [0, N])
@pytest.mark.parametrize(("rule", "counted"), [("wait", N), ("first:k=5", 5)])
def test_a_subclass_may_read_the_replies_first(threads, rule, counted) -> None:
    strategy = Reader("full", clients=N, seed=3, limits=QUICK, stragglers=rule)
    strategy.start(
        flower.InProcessGrid(app(), N, threads=threads), flower.first_model(task(), 3), num_rounds=2
    )
    assert strategy.void == 0
    assert strategy.read == [counted] * 2
    assert [len(cohort) for cohort in strategy.cohorts] == [counted] * 2


def test_a_reply_that_a_subclass_leaves_out_does_not_count() -> None:
    class Choosy(flower.CohortStrategy):
        def aggregate_train(self, server_round, replies):
            return super().aggregate_train(server_round, replies[1:])

    strategy = Choosy("full", clients=N, seed=3, limits=QUICK, dropouts="none")
    strategy.start(flower.InProcessGrid(app(), N), flower.first_model(task(), 3), num_rounds=1)
    assert len(strategy.cohorts[0]) == N - 1
    assert strategy.gate.summary() == {"missing": 1}


@pytest.mark.parametrize("threads", [0, 2])
def test_the_in_process_grid_sends_and_receives_as_flowers_grids_do(threads) -> None:
    """It waits for all replies, or until the timeout, and a reply is pulled once."""
    may_reply = threading.Event()
    if not threads:
        may_reply.set()
    clients = flower.ClientApp()

    @clients.train()
    def train(message: Message, context) -> Message:
        may_reply.wait()
        return Message(RecordDict(), reply_to=message)

    grid = flower.InProcessGrid(clients, 3, threads=threads)

    def messages():
        return [Message(RecordDict(), node, "train") for node in grid.get_node_ids()]

    if threads:
        assert grid.send_and_receive(messages(), timeout=0.0) == []
    may_reply.set()
    sent = messages()
    replies = grid.send_and_receive(iter(sent))
    assert type(replies) is list
    names = {message.metadata.message_id for message in sent}
    assert {reply.metadata.reply_to_message_id for reply in replies} == names
    assert list(grid.pull_messages(names)) == []


# -- a stock app, before and after -----------------------------------------------------------


def logs():
    spec = importlib.util.spec_from_file_location("logs", ROOT / "docs" / "make_flower_logs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kinds(lines: list[str]) -> list[str]:
    """What sort of lines a log has: without numbers, names and metrics."""
    ours = ("├──>", "└──>", "│", "├──F", "├──M", "└──M")
    out = []
    for line in lines:
        said = line.partition(":")[2].strip()
        if "MetricRecord" in said or not said.startswith((*ours, "{", "'")):
            out.append(re.sub(r"\{.*|Fed\w+|Cohort\w+|[\d.]+", "", said))
    return out


def test_three_lines_of_a_stock_app_change_and_its_log_keeps_every_line(tmp_path) -> None:
    script = logs()
    after = script.changed(tmp_path)
    changed = 0
    for file in sorted((script.STOCK / script.PACKAGE).glob("*.py")):
        other = after / script.PACKAGE / file.name
        pair = [path.read_text(encoding="utf-8").splitlines() for path in (file, other)]
        changed += sum(line.startswith("+ ") for line in difflib.ndiff(*pair))
    assert changed == 3
    stock, ours = script.log_of(script.STOCK), script.log_of(after)
    lost = list(difflib.ndiff(kinds(stock), kinds(ours)))
    heads = ("- ├── Weighted by", "- ├── ArrayRecord key", "- └── ConfigRecord key")
    lost = [line for line in lost if line.startswith("- ") and not line.startswith(heads)]
    assert not lost, lost
    assert sum("Cohort, with weights: " in line for line in ours) == 3
    assert any("Initial global evaluation results: {'loss': 2.30" in line for line in ours)
    page = script.page(stock, ours)
    assert page.count("<pre>") == 2
    kept = script.PAGE.read_text(encoding="utf-8")
    assert kept.split("<table>")[0] == page.split("<table>")[0], "run make flower-logs"


def test_without_a_line_that_tells_sizes_the_error_says_which() -> None:
    clients = flower.ClientApp()

    @clients.train()
    def train(message: Message, context) -> Message: ...

    with pytest.raises(TooFewClients, match=r"give it to client_app\(size=.*importance='equal'"):
        play(flower.InProcessGrid(clients, N))


# -- what one tries first --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"fraction_train": 0.5},
            r"For 0\.5 of 10 write CohortStrategy\('fedavg:.*m=5', clients=10",
        ),
        ({"clients": 5}, "needs a scheme, which says who trains .* CohortStrategy\\('uniform:m=3'"),
        ({"scheme": "md:m=2", "clients": 5, "limits": 60}, "'limits' parameter of CohortStrategy"),
    ],
)
def test_a_strategy_that_lacks_something_says_what_to_write(options, says) -> None:
    with pytest.raises(FedcohortError, match=says):
        flower.CohortStrategy(**options)


@pytest.mark.parametrize("arrays", [None, {"a": np.zeros(3)}, [np.zeros(3)]])
def test_a_model_is_an_array_record(arrays) -> None:
    strategy = flower.CohortStrategy("md:m=2", clients=N)
    with pytest.raises(BadParameter, match=r"'initial_arrays' .* Write ArrayRecord\("):
        strategy.start(Counting(app(), N), arrays, num_rounds=1)


@pytest.mark.parametrize("rounds", [-1, 2.5, "3"])
def test_rounds_are_counted(rounds) -> None:
    with pytest.raises(BadParameter, match="'num_rounds' parameter of start must be an int"):
        play(Counting(app(), N), rounds=rounds)


def test_no_round_is_the_model_as_it_was() -> None:
    """As with Flower's own: the model is evaluated, and nobody trains."""
    strategy = flower.CohortStrategy("md:m=2", clients=N, seed=3)
    first, seen = flower.first_model(task(), 3), []
    result = strategy.start(
        Counting(app(), N), first, num_rounds=0, evaluate_fn=lambda *given: seen.append(given[0])
    )
    assert result.arrays == first
    assert seen == [0]


def test_a_second_start_says_that_nothing_is_left_to_do(caplog) -> None:
    strategy = flower.CohortStrategy("md:m=2", clients=N, seed=3)
    grid, first = Counting(app(), N), flower.first_model(task(), 3)
    strategy.start(grid, first, num_rounds=2)
    assert "nothing to do" not in caplog.text
    strategy.start(grid, first, num_rounds=2)
    assert "nothing to do: 2 of 2 rounds are done" in caplog.text
    assert len(strategy.cohorts) == 2


def scored(number: int, arrays) -> MetricRecord:
    return MetricRecord({"rounds": float(number)})


def test_a_run_stops_when_should_stop_says_so_and_goes_on_when_started_again(tmp_path) -> None:
    """As in flwr 1.43: it is called after every round, when the metrics of the round are there."""
    asked = []

    def should_stop(server_round, result) -> bool:
        shown = result.train_metrics_clientapp, result.evaluate_metrics_clientapp
        asked.append((server_round, [max(each) for each in shown]))
        return result.evaluate_metrics_serverapp[server_round]["rounds"] >= 2

    def started(rounds: int, folder=None, **options):
        strategy = flower.CohortStrategy("md:m=3", clients=N, seed=3, folder=folder)
        first = flower.first_model(task(), 3)
        grid = flower.InProcessGrid(told(loss=1.0), N)
        result = strategy.start(grid, first, num_rounds=rounds, evaluate_fn=scored, **options)
        return strategy, result.arrays

    stopped, model = started(20, tmp_path, should_stop=should_stop)
    assert asked == [(1, [1, 1]), (2, [2, 2])]
    assert len(stopped.cohorts) == 2
    assert model == started(2)[1]
    assert "should_stop" in history.read(tmp_path)[0]["stopped"]
    assert started(3, tmp_path)[1] == started(3)[1]


@pytest.mark.parametrize("kept", [True, False])
def test_the_result_of_a_resumed_run_contains_the_earlier_rounds(kept, tmp_path) -> None:
    """A new strategy on the same folder, or a second start() of the same strategy."""
    folder = tmp_path if kept else None

    def made():
        options = {"seed": 3, "train_metrics_aggr_fn": lost, "folder": folder}
        return flower.CohortStrategy("md:m=3", clients=N, **options)

    def started(strategy, rounds: int, arrays):
        grid = flower.InProcessGrid(told(loss=1.0), N)
        return strategy.start(grid, arrays, num_rounds=rounds, evaluate_fn=scored)

    first, model = made(), flower.first_model(task(), 3)
    half = started(first, 2, model)
    result = started(made() if kept else first, 4, half.arrays)
    folder = None
    whole = started(made(), 4, model)
    assert result.arrays == whole.arrays
    for name in ("train_metrics_clientapp", "evaluate_metrics_clientapp"):
        assert getattr(result, name) == getattr(whole, name)
        assert sorted(getattr(result, name)) == [1, 2, 3, 4]
    assert dict(result.evaluate_metrics_serverapp) == {
        number: MetricRecord({"rounds": float(number)}) for number in (1, 2, 3, 4)
    }


def test_on_round_gets_the_record_of_every_round_with_all_that_was_measured() -> None:
    records = []
    strategy = flower.CohortStrategy("md:m=3", clients=N, seed=3, train_metrics_aggr_fn=lost)
    strategy.start(
        flower.InProcessGrid(told(loss=1.0), N),
        flower.first_model(task(), 3),
        num_rounds=2,
        evaluate_fn=scored,
        on_round=records.append,
    )
    assert [record.round for record in records] == [0, 1]
    assert [record.cohort for record in records] == strategy.cohorts
    for record in records:
        measured = {"train/lost": 7.0, "evaluate/loss": 1.0, "server/rounds": record.round + 1.0}
        assert record.metrics == pytest.approx(measured)
    assert [e for record in records for e in record.entries] == list(strategy.ledger.entries)


def lost(records: list[RecordDict], key: str) -> MetricRecord:
    return MetricRecord({"lost": 7.0})


@pytest.mark.parametrize("name", ["should_stop", "on_round"])
def test_what_start_calls_is_a_function(name) -> None:
    strategy = flower.CohortStrategy("md:m=2", clients=N)
    with pytest.raises(BadParameter, match=f"The '{name}' parameter of start must be a function"):
        strategy.start(Counting(app(), N), flower.first_model(task(), 3), **{name: 3})


def test_apps_that_are_none_get_a_sentence() -> None:
    with pytest.raises(BadInput, match=r"'client_fn', which is of Flower's older .* @app\.train"):
        flower.ClientApp(client_fn=lambda context: None)
    with pytest.raises(BadParameter, match="'app' parameter of InProcessGrid"):
        flower.InProcessGrid(None, 3)


def test_the_table_of_what_is_learnt_has_every_scheme() -> None:
    page = (ROOT / "docs" / "flower.md").read_text("utf-8")
    told = page.partition("## What the server learns, and secure aggregation")[2].partition(
        "\n## "
    )[0]
    words = re.findall(r"`([a-z][a-z*\[\]-]*)`", told)
    known = {
        each for word in words for each in (word.replace("[-x]", ""), word.replace("[-x]", "-x"))
    }
    lacking = [
        name for name in SCHEMES
        if name not in known and not any(name.startswith(w[:-1]) for w in known if w.endswith("*"))
    ]  # fmt: skip
    assert lacking == []
