"""What a client sends can end nothing but its own report; what a folder holds is not mixed up."""

from __future__ import annotations

import numpy as np
import pytest

import fedcohort
from fedcohort._internal.errors import BadInput, TooFewClients

pytest.importorskip("flwr")
from flwr.app import ConfigRecord, Error, Message

from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers.flower_play import QUICK, Coming, N, app, play


def test_two_silent_candidates_do_not_end_the_run() -> None:
    class Shy(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            asked = wire.config_of(message)
            if asked.get(wire.SIGNAL) == "loss" and asked.get(wire.ROUND) == 2 and self.shy():
                return None
            return super().deliver(message)

        turns = 0

        def shy(self) -> bool:
            self.turns += 1
            return self.turns <= 4  # two candidates, asked twice

    strategy, _ = play(Shy(app(), N), "pow-d:m=1,d=2", quorum=0.0)
    assert len(strategy.cohorts) == 4
    assert all(len(cohort) == 1 for cohort in strategy.cohorts)


@pytest.mark.parametrize(
    ("scheme", "says"),
    [
        ("pow-d:m=3,d=6", "6 of 8 clients did not answer the questions of pow-d, which cannot"),
        ("pow-d:m=1,d=2", "8 of 8 clients did not answer the questions of pow-d, which cannot"),
        ("optimal:m=3", "optimal asks for 'update_norm' .* and none of 8 clients answered"),
    ],
)
def test_where_all_clients_refuse_the_sentence_says_so_and_quotes_one(scheme, says) -> None:
    """It was "The 'm' parameter of pow-d must be at most the number of clients (2)"."""

    class Refusing(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            if wire.config_of(message).get(wire.SIGNAL, wire.HELLO) != wire.HELLO:
                return Message(Error(2, "I refuse"), reply_to=message)
            return super().deliver(message)

    with pytest.raises(TooFewClients, match=f"{says}.* said 'I refuse'"):
        play(Refusing(app(), N), scheme)


@pytest.mark.parametrize(
    ("first", "then", "says"),
    [
        ({"optimiser": "adam"}, {"optimiser": "sgd"}, "the optimiser adam"),
        ({"aggregator": "memory"}, {"aggregator": "plain"}, "the aggregator memory"),
        ({"aggregator": "plain"}, {"aggregator": "memory"}, "the aggregator plain"),
        ({"seed": 3}, {"seed": 4}, "the seed 3"),
        ({"seed": None}, {"seed": 7}, "a seed that was drawn"),
        ({"importance": "equal"}, {"importance": "size"}, "importance equal"),
    ],
)
def test_a_folder_is_not_continued_with_another_server(first, then, says, tmp_path) -> None:
    play(flower.InProcessGrid(app(), N), "md:m=3", rounds=2, folder=tmp_path, **first)
    with pytest.raises(BadInput, match=f"holds a run with {says}"):
        play(flower.InProcessGrid(app(), N), "md:m=3", rounds=4, folder=tmp_path, **then)


def test_what_was_asked_before_a_crash_stays_in_the_ledger(tmp_path, monkeypatch) -> None:
    from fedcohort.flower._session import Folder

    def dies(*_) -> None:
        raise KeyboardInterrupt

    scheme = "optimal:m=3"
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "chosen", dies)
        with pytest.raises(KeyboardInterrupt):
            play(flower.InProcessGrid(app(), N), scheme, rounds=2, folder=tmp_path)
    again, _ = play(flower.InProcessGrid(app(), N), scheme, rounds=2, folder=tmp_path)
    assert again.ledger.by_purpose()["greeting"].messages == 4 * N  # of both servers


def test_answers_of_several_draws_are_booked_each() -> None:
    strategy, _ = play(flower.InProcessGrid(app(), N), "md:m=12", per_draw=True)
    cost = strategy.ledger.by_purpose()["training"]
    assert cost.messages == 2 * 12 * 4
    assert cost.bytes_up == 12 * 4 * 2 * 8


def test_states_are_sorted_by_number(tmp_path) -> None:
    from fedcohort.flower._session import Folder

    for number in (999_999, 1_000_000):
        (tmp_path / f"state-{number:06d}.npz").touch()
    assert Folder(tmp_path)._states()[-1].name == "state-1000000.npz"


def test_newcomers_with_another_kind_of_key_do_not_end_a_run() -> None:
    def config(number: int):
        return {"client-key": "x"} if number == N else {}

    grid = Coming(app(), N + 1, node_config=config)
    grid.hidden = {N}
    strategy = flower.CohortStrategy("md:m=2", clients=N, seed=3, limits=QUICK)
    arrays = flower.first_model(fedcohort.training.Quadratic(np.zeros((N, 2))), 3)
    list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    strategy.aggregate_train(1, [])
    grid.hidden = set(range(N))
    list(strategy.configure_train(2, arrays, ConfigRecord(), grid))
    assert strategy.session.state.federation.ids == tuple(range(N))
