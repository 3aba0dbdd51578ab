"""Nothing that a client sends ends a run; a run that learns nothing does not end well."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, CannotSave, TooFewClients
from fedcohort.selection import LOSS
from fedcohort.server import Fault
from fedcohort.server import _history as history

pytest.importorskip("flwr")
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import (
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
)

from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers.attacks import evaluating
from helpers.flower_play import QUICK, ROUNDS, N, app, play, silent, task
from helpers.lies import (
    Jammed,
    Killed,
    Lying,
    Twice,
    answer,
    kills,
    metrics,
    nothing,
    reading,
    unreadable,
    update,
)
from helpers.scripted import Scripted

# -- whatever goes wrong in reading ------------------------------------------------------------


def test_a_report_that_makes_any_reader_fail_is_a_fault_of_its_sender() -> None:
    strategy, theta = play(Lying(unreadable))
    assert strategy.gate.by_client[2, Fault.UNREADABLE] == ROUNDS
    assert "IndexError('tuple index out of range')" in strategy.gate.quote()
    assert [len(cohort) for cohort in strategy.cohorts] == [N - 1] * ROUNDS
    assert np.isfinite(theta).all()


@pytest.mark.filterwarnings("default::fedcohort._internal.errors.FedcohortWarning")
@pytest.mark.parametrize("kind", [wire.HELLO, "loss", "train"])
def test_so_it_is_in_every_exchange(kind: str) -> None:
    grid = Lying(unreadable, [kind])
    strategy, theta = play(grid, "pow-d:m=3,d=7", clients=N - 1, quorum=0.0)
    assert strategy.gate.counts[Fault.UNREADABLE] > 0
    assert strategy.void == 0
    assert np.isfinite(theta).all()


def test_an_answer_on_which_flower_fails_is_lost_alone() -> None:
    grid = Jammed(app(), N)
    strategy, _ = play(grid)
    assert [len(cohort) for cohort in strategy.cohorts] == [N - 1] * ROUNDS
    assert strategy.gate.by_client[2, Fault.FAILED] == ROUNDS
    assert "Object not found" in strategy.gate.quote()


def test_where_nothing_can_be_read_no_client_is_to_blame() -> None:
    class Down(flower.InProcessGrid):
        def pull_messages(self, message_ids):
            raise OSError("the SuperLink is gone")

    with pytest.raises(OSError, match="the SuperLink is gone"):
        play(Down(app(), N))


def test_where_no_shape_is_declared_the_one_that_most_tell_counts() -> None:
    """Also where the liar is the first client."""
    free = replace(LOSS, shape=None)

    class Listening(Scripted):
        listens = frozenset({free})

        def start(self, federation, rng):
            yield from ()
            return Seen()

        def observe(self, state, federation, cohort, replies):
            return Seen((*state.shapes, replies.signals["loss"].shape))

        State = None

    @dataclasses.dataclass(frozen=True)
    class Seen:
        shapes: tuple = ()

    Listening.State = Seen
    scheme = Listening(tuple(range(N)), (1 / N,) * N)
    strategy, _ = play(Lying(answer("loss", np.zeros(3)), liars=[0]), scheme, quorum=0.0, rounds=2)
    assert strategy.session.state.scheme.shapes == ((N - 1,), (N - 1,))
    assert strategy.gate.by_client == {(0, Fault.WRONG_SHAPE): 2}


# -- what is said of it ------------------------------------------------------------------------


@pytest.mark.filterwarnings("default::fedcohort._internal.errors.FedcohortWarning")
@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (answer("gain", np.array(1.0)), "wrong_keys: must have exactly ['loss'], not ['gain']"),
        (answer("loss", np.zeros(5)), "wrong_shape: 'loss' must have the shape (), not (5,)"),
        (unreadable, "unreadable: IndexError('tuple index out of range')"),
    ],
)
def test_a_bad_answer_to_a_question_is_quoted_at_once(lie, says, caplog) -> None:
    play(Lying(lie, ["loss"]), "pow-d:m=3,d=8", rounds=1)
    said = [record.getMessage() for record in caplog.records if "rejected: " in record.getMessage()]
    (line,) = said  # it is not said again after training
    assert f"The last report that was rejected, of 2: {says}." in line


def test_a_bad_evaluation_is_quoted_in_its_own_round_also_in_the_last(caplog) -> None:
    grid = Lying(metrics(loss=float("nan")), ["evaluate"], client=evaluating())
    play(grid, rounds=2, evaluate="everyone")
    said = [record.getMessage() for record in caplog.records if "rejected: " in record.getMessage()]
    assert len(said) == 2
    for line in said:
        assert "rejected: {'not_finite': 1}" in line
        assert "of 2: not_finite: metrics that are no numbers: ['loss']" in line


# -- metrics -----------------------------------------------------------------------------------


def test_what_clients_say_of_an_evaluation_is_averaged_without_what_is_no_number() -> None:
    lie = metrics(loss=float("nan"), accuracy=0.5)  # an honest client may have such a metric
    strategy = flower.CohortStrategy("full", clients=N, seed=3, evaluate="everyone")
    grid = Lying(lie, ["evaluate"], client=evaluating())
    told = strategy.start(grid, flower.first_model(task(), 3), num_rounds=2)
    for number in (1, 2):
        assert told.evaluate_metrics_clientapp[number]["loss"] == pytest.approx(1.0)
        assert told.evaluate_metrics_clientapp[number]["accuracy"] == 0.5
    assert strategy.gate.counts == {Fault.NOT_FINITE: 2}


def losses(records, key: str) -> MetricRecord:
    return MetricRecord({"losses": sorted(record["metrics"]["loss"] for record in records)})


@pytest.mark.parametrize("kind", ["train", "evaluate"])
@pytest.mark.parametrize("told", [{"loss": float("nan")}, {"loss": 1e300}, {"gain": 1.0}, {}])
def test_a_function_of_the_users_sees_no_report_that_is_unlike_the_others(
    kind: str, told: dict[str, float], caplog
) -> None:
    """One NaN was a mean of NaN, one key that was missing the end of the function."""
    clients = evaluating()

    @clients.train()
    def train(message: Message, context) -> Message:
        content = {"arrays": message.content["arrays"], "metrics": MetricRecord({"loss": 1.0})}
        return Message(RecordDict(content), reply_to=message)

    function = {f"{kind}_metrics_aggr_fn": losses}
    strategy = flower.CohortStrategy("full", clients=N, seed=3, limits=QUICK, **function)
    grid = Lying(metrics(**told), [kind], client=clients)
    result = strategy.start(grid, flower.first_model(task(), 3), num_rounds=1)
    shown = {"train": result.train_metrics_clientapp, "evaluate": result.evaluate_metrics_clientapp}
    assert shown[kind][1]["losses"] == [1.0] * (N - 1)
    assert f"1 of 8 reports are kept from {kind}_metrics_aggr_fn" in caplog.text


def test_what_a_function_does_to_the_reports_changes_nothing(caplog) -> None:
    def breaks(records, key: str) -> MetricRecord:
        for record in records:
            record["metrics"]["loss"] = 7.0
        raise ValueError("oh")

    strategy = flower.CohortStrategy(
        "full", clients=N, seed=3, limits=QUICK, evaluate_metrics_aggr_fn=breaks
    )
    grid = flower.InProcessGrid(evaluating(), N)
    result = strategy.start(grid, flower.first_model(task(), 3), num_rounds=1)
    assert result.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(1.0)


def test_answers_to_an_evaluation_count_once() -> None:
    strategy = flower.CohortStrategy("full", clients=N, seed=3, evaluate="everyone")
    told = strategy.start(Twice(evaluating(), N), flower.first_model(task(), 3), num_rounds=1)
    assert strategy.gate.counts[Fault.TWICE] == 3 * N  # who are you, training, evaluation
    assert told.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(1.0)


@pytest.mark.parametrize("value", [1e308, 2**63 - 1, float("nan")])
def test_huge_or_odd_metrics_of_training_reach_neither_mean_nor_disk(
    value: float, tmp_path
) -> None:
    strategy = flower.CohortStrategy("full", clients=N, seed=3, folder=tmp_path)
    grid = Lying(metrics(loss=value, **{"a\nb": 1.0}))
    result = strategy.start(grid, flower.first_model(task(), 3), num_rounds=1)
    assert not {"loss", "a\nb"} & set(result.train_metrics_clientapp[1])
    assert history.read(tmp_path)[1][0].metrics == {}


@pytest.mark.parametrize("who", ["everyone", "cohort"])
def test_to_evaluate_without_a_function_is_told_before_the_first_round(who: str) -> None:
    with pytest.raises(BadInput, match=rf"evaluate='{who}' needs an @app.evaluate\(\) function"):
        play(flower.InProcessGrid(app(), N), evaluate=who)


def test_some_without_an_evaluate_function_are_a_warning(caplog) -> None:
    grid = flower.InProcessGrid(evaluating(), N)
    grid.apps[next(iter(grid.apps))] = app()
    strategy, _ = play(grid, evaluate="everyone", rounds=1)
    assert "1 of 8 have none" in caplog.text
    assert strategy.gate.counts == {Fault.FAILED: 1}


class Named(flower.InProcessGrid):
    def get_nodes(self):
        return [SimpleNamespace(node_id=node, name=f"node-{node}") for node in self.contexts]


def test_nobody_who_evaluates_is_told_where_nobody_was_asked_before(caplog) -> None:
    """Nodes that are known by name and asked for nothing may run any app."""
    play(Named(app(), N), identity="name", importance="equal", evaluate="everyone", rounds=1)
    assert "no client evaluated the model. The last client that failed said" in caplog.text


# -- rounds and runs that fail -----------------------------------------------------------------


def test_a_void_round_is_a_warning(caplog) -> None:
    with pytest.raises(TooFewClients, match=r"All 2 rounds failed") as caught:
        play(Lying(nothing, liars=range(N)), rounds=2)
    assert "round 1 is void, the model stays: 0 % of the draws were answered" in caplog.text
    assert "must have exactly [\"'arrays' or 'update'\"], not []" in caplog.text
    assert "wrong_keys" in str(caught.value)


def test_wrong_keys_are_told_with_the_expected_ones(caplog) -> None:
    play(Lying(update(weights=np.zeros(2))), rounds=1)
    assert "of 2: wrong_keys: must have exactly ['theta'], not ['weights']" in caplog.text


def test_one_good_round_is_a_run_and_none_after_a_restart_is_none(tmp_path) -> None:
    class Then(type(silent(*range(N)))):  # type: ignore[misc]
        """All are silent from the second round on, or from the first."""

        good = 1

        def deliver(self, message: Message) -> Message | None:
            late = wire.config_of(message).get(wire.ROUND, 0) >= self.good
            return super().deliver(message) if late else flower.InProcessGrid.deliver(self, message)

    strategy, _ = play(Then(app(), N), rounds=3)
    assert strategy.void == 2
    bad = Then(app(), N)
    bad.good = 0
    with pytest.raises(TooFewClients, match="All 1 rounds failed"):
        play(bad, rounds=1, folder=tmp_path)
    with pytest.raises(TooFewClients, match="All 2 rounds failed"):
        play(bad, rounds=2, folder=tmp_path)
    good, _ = play(flower.InProcessGrid(app(), N), rounds=3, folder=tmp_path)
    assert good.void == 0
    play(bad, rounds=4, folder=tmp_path)  # one round of the run was good


def test_a_misfit_of_nodes_that_are_known_by_name_is_told_before_the_first_round() -> None:
    """They used to be asked for nothing, and to fail in the first round."""
    settings = {"identity": "name", "importance": "equal", "rounds": 1}
    sized = flower.client_app(size=lambda context: 5)
    with pytest.raises(TooFewClients, match=r"pow-d asks for 'loss' .* no client can tell it"):
        play(Named(sized, N), "pow-d:m=2,d=4", **settings)
    with pytest.raises(TooFewClients, match=r"All 8 nodes raised an error .* by .*client_app"):
        play(Named(ClientApp(), N), "full", algorithm="fedprox:mu=0.1", **settings)


# -- runs that end, and files that are none ----------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "scheme"), [("train", "full"), ("loss", "pow-d:m=7,d=8"), (wire.HELLO, "full")]
)
def test_a_client_that_ends_the_server_ends_it_again_until_it_is_gone(
    kind: str, scheme: str, tmp_path
) -> None:
    for _ in range(2):
        with pytest.raises(Killed):
            play(Lying(kills, [kind]), scheme, rounds=1, folder=tmp_path)
    strategy, _ = play(flower.InProcessGrid(app(), N), scheme, rounds=2, folder=tmp_path)
    assert strategy.session.state.round == 2
    assert strategy.void == 0


def test_a_run_that_is_ended_by_hand_goes_on_with_everybody(tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt):
        play(Lying(reading(KeyboardInterrupt())), rounds=1, folder=tmp_path)
    strategy, _ = play(flower.InProcessGrid(app(), N), rounds=1, folder=tmp_path)
    assert len(strategy.cohorts[0]) == N


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_history_that_is_no_file_gets_a_sentence(tmp_path, make) -> None:
    play(flower.InProcessGrid(app(), N), rounds=1, folder=tmp_path)
    (tmp_path / "history.jsonl").unlink()
    make(tmp_path / "history.jsonl")
    with pytest.raises(CannotSave, match=r"history.jsonl' cannot be written: .*it is (a f|no pl)"):
        play(flower.InProcessGrid(app(), N), rounds=2, folder=tmp_path)


# -- wrappers ----------------------------------------------------------------------------------

WRAPPERS = [
    lambda s: DifferentialPrivacyServerSideFixedClipping(s, 1.0, 0.1, N),
    lambda s: DifferentialPrivacyClientSideFixedClipping(s, 1.0, 0.1, N),
    lambda s: DifferentialPrivacyServerSideAdaptiveClipping(s, 0.1, N),
    lambda s: DifferentialPrivacyClientSideAdaptiveClipping(s, 0.1, N),
]


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_wrappers_for_differential_privacy_are_refused_with_what_to_use(wrap) -> None:
    """They were silently wrong: a step of norm 50 where 0.02 was promised."""
    strategy = flower.CohortStrategy("full", clients=N, seed=3, limits=QUICK)
    wrapped = wrap(strategy)
    says = rf"{type(wrapped).__name__} cannot be put around CohortStrategy.*LocalDpMod.*FedAvg"
    with pytest.raises(BadInput, match=says):
        wrapped.start(flower.InProcessGrid(app(), N), flower.first_model(task(), 3), num_rounds=1)


def test_a_wrapper_with_a_helper_is_refused_and_a_loop_of_ones_own_is_not() -> None:
    def helped(strategy, *arguments):
        return strategy.configure_train(*arguments)

    class Wrapper(flower.CohortStrategy):
        def configure_train(self, *arguments):
            return helped(self.inner, *arguments)

    def made(kind=flower.CohortStrategy):
        return kind("full", clients=N, seed=3, limits=QUICK)

    wrapper, arrays = made(Wrapper), flower.first_model(task(), 3)
    wrapper.inner = made()
    with pytest.raises(BadInput, match="Wrapper cannot be put around CohortStrategy"):
        wrapper.start(flower.InProcessGrid(app(), N), arrays, num_rounds=1)
    grid, strategy = flower.InProcessGrid(app(), N), made()
    messages = helped(strategy, 1, arrays, ConfigRecord(), grid)
    new, _ = strategy.aggregate_train(1, grid.send_and_receive(messages))
    assert new is not None

    class Before(flower.CohortStrategy):
        """Runs another strategy to its end first."""

        def configure_train(self, server_round, arrays, config, grid):
            made().start(grid, arrays, num_rounds=1)
            return super().configure_train(server_round, arrays, config, grid)

    made(Before).start(flower.InProcessGrid(app(), N), arrays, num_rounds=1)


def test_a_strategy_of_your_own_may_have_a_loop_of_its_own() -> None:
    class Mine(flower.CohortStrategy):
        def configure_train(self, server_round, arrays, config, grid):
            return super().configure_train(server_round, arrays, config, grid)

    Mine("full", clients=N, seed=3).start(
        flower.InProcessGrid(app(), N), flower.first_model(task(), 3), num_rounds=1
    )
