"""Noise on sums on Flower: by the server, by the clients, and a run that stops at its budget."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import fedcohort
from fedcohort._internal.errors import BadInput, TooFewClients
from fedcohort.privacy import ClientPolicy
from fedcohort.privacy._accounting import gaussian_epsilon
from fedcohort.server import Fault
from fedcohort.simulation import Quadratic, simulate

pytest.importorskip("flwr")
pytest.importorskip("dp_accounting")
from flwr.app import Message

from fedcohort import flower
from fedcohort.flower import _wire as wire
from fedcohort.privacy import price
from helpers.flower_play import WORK, Coming, Hostile, N, app, play, task

AS_DRAWN = {"dropouts": "none", "quorum": 0.0, "evaluate": "nobody"}
PRIVATE = {**AS_DRAWN, "importance": "equal"}


def grid():
    return flower.InProcessGrid(app(), N)


def trace_of(folder):
    (trace,) = fedcohort.Comparison.load(folder).traces
    return trace


def test_the_server_adds_the_noise_that_the_simulator_adds(tmp_path):
    words = "gaussian:clip=0.3,noise=0.5,seed=0"
    strategy, theta = play(
        grid(), "uniform:m=3", aggregator=words, folder=tmp_path / "run", **AS_DRAWN
    )
    alike = simulate(task(), "uniform:m=3", rounds=4, seed=3, work=WORK, aggregator=words)
    np.testing.assert_allclose(theta, alike.model, rtol=0, atol=1e-12)
    told, wanted = trace_of(tmp_path / "run").settings["privacy"], alike.settings["privacy"]
    assert told["epsilon"] == pytest.approx(wanted["epsilon"])
    assert told["guarantee"] == wanted["guarantee"]
    assert strategy.ledger.epsilons()["training"] == pytest.approx(told["epsilon"])
    # By default the noise is for the largest weight that a draw can have.
    heaviest = price("uniform:m=3", task().sizes, 1, 1.0, 1e-5).largest_weight
    assert told["deviation"] == pytest.approx(0.3 * 0.5 * heaviest)


def test_a_run_stops_when_its_budget_is_spent_and_goes_on_with_nothing(tmp_path):
    words = "gaussian:clip=1,noise=2,epsilon=2.5,seed=0"
    options = {"aggregator": words, "folder": tmp_path / "run", **PRIVATE}
    strategy, theta = play(grid(), "binomial:m=2", rounds=50, **options)
    done = strategy.session.state.round
    costs = [price("binomial:m=2", [1] * N, t, 2.0, 1e-5).epsilon for t in (done, done + 1)]
    assert costs[0] <= 2.5 < costs[1]
    trace = trace_of(tmp_path / "run")
    assert trace.rounds == done
    assert trace.settings["privacy"]["epsilon"] == pytest.approx(costs[0])
    assert "budget is spent" in trace.settings["stopped"]
    again, same = play(grid(), "binomial:m=2", rounds=50, **options)
    assert again.session.state.round == done
    np.testing.assert_array_equal(theta, same)


def test_clients_that_are_away_cost_more(tmp_path):
    class Away(Coming):
        def get_node_ids(self):
            self.asked = getattr(self, "asked", 0) + 1
            self.hidden = {1} if self.asked > 3 else set()
            return super().get_node_ids()

    words = "gaussian:noise=3,seed=0"
    strategy, _ = play(Away(app(), N), "binomial:m=2", aggregator=words, **PRIVATE)
    memory = strategy.session.state.aggregator
    assert memory.number == 4
    assert 0 < memory.away < 4
    told = strategy.session.promised()["privacy"]
    full = price("binomial:m=2", [1] * N, 4, 3.0, 1e-5).epsilon
    assert told["epsilon"] > full
    assert "no amplification" in told["guarantee"]


def test_clients_add_the_noise_for_a_secure_sum():
    """Enough answers have all of it: the sum is that of plain answers, and noise as large."""
    words = "gaussian:clip=0.2,noise=1e-9,weight=0.125,clients=8"
    _, theta = play(grid(), "full", aggregator=words, **PRIVATE)
    words = "gaussian:clip=0.2,noise=1e-9,weight=0.125,seed=0"
    _, plain = play(grid(), "full", aggregator=words, **PRIVATE)
    np.testing.assert_allclose(theta, plain, atol=1e-8)
    # 8 answers where 4 would do have twice the variance; planted: once.
    wide = Quadratic(np.zeros((N, 1_000)), sizes=[10] * N)
    apps = flower.client_app(flower.task_client(wide, WORK), simulated=True)
    loud = "gaussian:clip=0.2,noise=1000,weight=0.125,clients=4"
    strategy = flower.CohortStrategy("full", clients=N, seed=3, aggregator=loud, **PRIVATE)
    first = flower.first_model(wide, 3)
    moved = strategy.start(flower.InProcessGrid(apps, N), first, num_rounds=1).arrays["theta"]
    shape = float((moved.numpy() ** 2).sum()) / (2 * (1000 * 0.2 * 0.125) ** 2)
    low, high = chi2(1_000).ppf([5e-7, 1 - 5e-7])
    assert low < shape < high
    assert not low < 2 * shape < high


def test_answers_of_clients_hide_what_they_would_tell():
    seen = []

    class Watching(flower.InProcessGrid):
        def deliver(self, message: Message):
            reply = super().deliver(message)
            if message.metadata.message_type == "train":
                seen.append(reply.content)
            return reply

    words = "gaussian:clip=0.2,noise=1,clients=2"
    play(Watching(app(), N), "full", rounds=1, aggregator=words, **PRIVATE)
    assert len(seen) == N
    for content in seen:
        assert set(content) == {wire.CHANGE, wire.CONFIG}


def test_too_few_answers_are_not_summed_up():
    words = "gaussian:clip=0.2,noise=1,clients=5"
    strategy, theta = play(grid(), "uniform:m=3", aggregator=words, **PRIVATE)
    np.testing.assert_array_equal(theta, flower.first_model(task(), 3)["theta"].numpy())
    assert strategy.session.state.aggregator.number == 0
    assert strategy.session.promised()["privacy"]["epsilon"] == 0


def test_an_answer_without_noise_is_rejected():
    def lie(message: Message, reply: Message) -> Message:
        del reply.content[wire.CONFIG]
        return reply

    words = "gaussian:clip=0.2,noise=1,clients=2"
    strategy, _ = play(Hostile(lie), aggregator=words, **PRIVATE)
    assert strategy.gate.counts[Fault.WRONG_KEYS] == 4


@pytest.mark.parametrize(
    ("words", "more", "match"),
    [
        ("gaussian", {}, "drop-out rule 'none'"),
        ("gaussian", {"dropouts": "none"}, "quorum of 0"),
        ("gaussian:clients=3,capped=true", {"dropouts": "hajek"}, "drop-out rule 'none'"),
        ("gaussian:clients=3", {**AS_DRAWN, "per_draw": True}, "leave per_draw out"),
        ("gaussian:clients=3,quantile=0.5", AS_DRAWN, "leave one out"),
    ],
)
def test_what_has_no_bound_is_refused_before_the_first_round(words, more, match):
    with pytest.raises(BadInput, match=match):
        flower.CohortStrategy("uniform:m=3", clients=N, aggregator=words, **more)


# -- FedSampling -------------------------------------------------------------------------------


def sampling_app(tmp_path, **policy):
    allowed = ClientPolicy(
        folder=lambda context: tmp_path / str(context.node_config["partition-id"]), **policy
    )
    return flower.client_app(flower.task_client(task(), WORK), simulated=True, policy=allowed)


SAMPLING = {"evaluate": "nobody", "largest_size": None, "importance": "equal"}


def test_shares_of_the_sum_of_sizes_are_given_where_clients_agree(tmp_path):
    words = "fedsampling:K=40,M=100,mechanism=sum,when_imprecise=accept"
    agreed = sampling_app(tmp_path, mechanisms=("sum",), updates_in_plain=True)
    strategy, _ = play(flower.InProcessGrid(agreed, N), words, rounds=2, **SAMPLING)
    assert strategy.ledger.epsilons() == {"private_share": 3.0}
    assert strategy.ledger.by_purpose()["private_share"].messages == 2 * N
    refusing = sampling_app(tmp_path / "others", updates_in_plain=True)
    with pytest.raises(TooFewClients, match="agree to ClientPolicy"):
        play(flower.InProcessGrid(refusing, N), words, rounds=2, **SAMPLING)


def test_a_counted_step_is_that_of_the_simulator(tmp_path):
    words = "fedsampling:K=40,mechanism=exact,step=counted"
    agreed = sampling_app(tmp_path, updates_in_plain=True)
    options = {"evaluate": "nobody", "largest_size": None}
    _, theta = play(flower.InProcessGrid(agreed, N), words, **options)
    alike = simulate(task(), words, rounds=4, seed=3, work=WORK)
    np.testing.assert_allclose(theta, alike.model, rtol=0, atol=1e-12)
    secretive = sampling_app(tmp_path / "others")
    with pytest.raises(TooFewClients, match="how many samples took part"):
        play(flower.InProcessGrid(secretive, N), words, rounds=1, **options)


@pytest.mark.parametrize("clients", ["", ",clients=2"])
def test_a_scheme_that_draws_a_client_twice_without_a_law_keeps_its_budget(tmp_path, clients):
    """The first client fills whole strata of 'target'; it counts once in a round."""
    sizes, rounds = [200] + [7] * 10, 6
    unequal = Quadratic(np.linspace(-1, 1, 11)[:, None], sizes=sizes)

    class Labelled:
        def __init__(self, context):
            honest = flower.task_client(unequal, WORK)(context)
            self.size, self.update = honest.size, honest.update
            self.label_counts = (
                self.size * np.eye(6, dtype=int)[context.node_config["partition-id"] % 6]
            )

    grid = flower.InProcessGrid(flower.client_app(Labelled), 11)
    words = f"gaussian:clip=0.5,noise=4.0,epsilon=2.6,weight=0.1666667{clients}"
    strategy = flower.CohortStrategy(
        "target:m=6", clients=11, seed=3, aggregator=words, folder=tmp_path / "run", **AS_DRAWN
    )
    strategy.start(grid, flower.first_model(unequal, 3), num_rounds=rounds)
    trace = trace_of(tmp_path / "run")
    assert trace.rounds == rounds
    assert trace.cohort_draws.max() > 1
    weights = np.zeros((rounds, 11))
    for r in range(rounds):
        weights[r, trace.cohort(r).clients] = trace.cohort(r).weights
    exact = gaussian_epsilon(np.sqrt((weights**2).sum(axis=0).max()) * 6 / 4.0, 1e-5)
    assert exact * (1 - 1e-6) <= trace.settings["privacy"]["epsilon"] <= 2.6
