"""The loops of other frameworks with our cohorts and weights, against a plain loop.

Against the real package where it is installed; otherwise against a stand-in of its documented
interface, which says only that we call what we mean to call.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import fedcohort
from fedcohort import Federation, Selector
from fedcohort._internal.errors import BadInput, FedcohortWarning, TooFewClients
from fedcohort.adapters._loop import flat
from fedcohort.adapters.fedlab import FedLabCarrier
from fedcohort.adapters.nvflare import FlareCarrier
from fedcohort.selection import LOSS
from fedcohort.server import Fault, Gate, Ledger

N, ROUNDS, SEED = 6, 5, 4
X = np.linspace(-1.0, 2.0, N)
SIZES = np.arange(1, N + 1)
SITES = [f"site-{i}" for i in range(N)]
POISSON = fedcohort.scheme("poisson", m=3, cap=True)  # weights that do not sum to 1


def plain_loop(scheme, eta_g: float = 1.0, rounds: int = ROUNDS) -> tuple[np.ndarray, list]:
    """theta + eta_g * sum omega_i (x_i - theta) / 2: what all of them must come to."""
    selector = Selector(scheme, Federation.from_sizes(SIZES), seed=SEED)
    theta, cohorts = np.zeros(1), []
    while len(cohorts) < rounds:
        cohort = selector.select()
        selector.observe()
        theta = theta + eta_g * (cohort.weights @ (0.5 * (X[cohort.clients] - theta[0])))
        cohorts.append(cohort.clients.tolist())
    return theta, cohorts


REAL = {name: importlib.util.find_spec(name) is not None for name in ("nvflare", "pfl", "fedlab")}


def modules(monkeypatch, **parts: dict[str, object]) -> None:
    """Stand-in modules by dotted name ('__' for dots)."""
    for path, names in parts.items():
        dotted = path.replace("__", ".")
        for end in range(1, dotted.count(".") + 2):
            name = ".".join(dotted.split(".")[:end])
            if name not in sys.modules:
                monkeypatch.setitem(sys.modules, name, ModuleType(name))
        for name, value in names.items():
            monkeypatch.setattr(sys.modules[dotted], name, value, raising=False)


# -- NVIDIA FLARE ----------------------------------------------------------------------------


class FLModelStandIn:
    def __init__(self, params=None, params_type="FULL", meta=None) -> None:
        self.params, self.params_type, self.meta = params, params_type, meta or {}


class FedAvgStandIn:
    """FedAvg.run of nvflare 2.9, without the network."""

    def __init__(self, *, aggregator, num_rounds, model, **_) -> None:
        self.aggregator, self.num_rounds, self.model = aggregator, num_rounds, model

    def run(self) -> None:
        model = FLModelStandIn(params=self.model)
        for current_round in range(self.num_rounds):
            self.current_round = current_round
            clients = self.sample_clients(None)
            self.aggregator.reset_stats()
            accept = self.aggregator.accept_model
            self.send_model(task_name="train", targets=clients, data=model, callback=accept)
            model = self.update_model(model, self.aggregator.aggregate_model())
        self.final = model

    def update_model(self, model, aggr_result):
        full = aggr_result.params_type == "FULL"
        for name, change in aggr_result.params.items():
            model.params[name] = change if full else model.params[name] + change
        return model

    def load_model(self):
        return FLModelStandIn(params={})

    def send_model(self, *, targets, **_):
        assert targets, "FLARE never finishes a task for nobody"


@pytest.fixture
def nvflare(monkeypatch):
    if not REAL["nvflare"]:
        modules(
            monkeypatch,
            nvflare__app_common__abstract__fl_model={
                "FLModel": FLModelStandIn,
                "ParamsType": SimpleNamespace(FULL="FULL", DIFF="DIFF"),
            },
            nvflare__app_common__aggregators__model_aggregator={"ModelAggregator": object},
            nvflare__app_common__workflows__fedavg={"FedAvg": FedAvgStandIn},
        )
    return importlib.import_module("nvflare.app_common.abstract.fl_model")


def quieted(controller) -> None:
    """A controller without events, logs and engine; the model is kept in ``final``."""
    controller.engine = SimpleNamespace(
        get_clients=lambda: [SimpleNamespace(name=name) for name in reversed(SITES)],
        get_cell=lambda: None,
    )
    for name in ("event", "info", "warning", "fire_event_with_data", "_maybe_cleanup_memory"):
        setattr(controller, name, lambda *a, **k: None)
    controller.save_model = lambda model: setattr(controller, "final", model)
    controller.get_num_standing_tasks = lambda: 0
    if REAL["nvflare"]:
        from nvflare.apis.fl_context import FLContext

        controller.fl_ctx = FLContext()


def flare_loop(nvflare, selector, full: bool, away: int = -1, **options):
    """Run the controller's own loop; clients answer at once, in any order."""
    from fedcohort.adapters.nvflare import cohort_fedavg

    controller = cohort_fedavg(
        selector, num_rounds=ROUNDS, model={"w": np.zeros((1, 1)), "b": np.zeros(1)}, **options
    )
    asked: list[list[str]] = []

    def send_model(task_name, targets, data, callback) -> None:
        asked.append(targets)
        for name in reversed(targets):
            i = SITES.index(name)
            if i == away:
                continue
            move = 0.5 * (X[i] - np.asarray(data.params["b"]))
            kind = nvflare.ParamsType.FULL if full else nvflare.ParamsType.DIFF
            base = np.asarray(data.params["b"]) if full else 0.0
            answer = {"w": np.atleast_2d(base + move), "b": base + move}
            meta = {"client_name": name}
            callback(nvflare.FLModel(params=answer, params_type=kind, meta=meta))

    def questions(task_name, data, targets, timeout):
        assert set(data.params) == {"w", "b"}  # a loss is one of the model
        losses = {name: float(SITES.index(name)) for name in targets}
        return [
            nvflare.FLModel(params={"answer": loss}, meta={"client_name": name})
            for name, loss in losses.items()
        ]

    controller.send_model, controller.send_model_and_wait = send_model, questions
    quieted(controller)
    controller.run()
    final = controller.final.params
    np.testing.assert_array_equal(np.ravel(final["w"]), np.ravel(final["b"]))
    return np.ravel(final["b"]), asked


@pytest.mark.parametrize("full", [True, False])
def test_flare_steps_as_a_plain_loop_does(nvflare, full: bool) -> None:
    selector = Selector(POISSON, Federation.from_sizes(SIZES, ids=SITES), seed=SEED)
    theta, asked = flare_loop(nvflare, selector, full, eta_g=0.5)
    expected, cohorts = plain_loop(POISSON, eta_g=0.5)
    np.testing.assert_allclose(theta, expected, atol=1e-15)
    assert asked == [[SITES[i] for i in cohort] for cohort in cohorts]


def test_flare_puts_questions_and_a_silent_client_counts_as_unchanged(nvflare) -> None:
    scheme = fedcohort.scheme("pow-d", m=2, d=N)
    federation = Federation.from_sizes(SIZES, ids=SITES)
    _, asked = flare_loop(nvflare, Selector(scheme, federation, seed=SEED), full=True)
    assert asked == [["site-4", "site-5"]] * ROUNDS  # the highest losses
    full = fedcohort.scheme("full")
    theta, _ = flare_loop(nvflare, Selector(full, federation, seed=SEED), full=True, away=5)
    weights, expected = SIZES / SIZES.sum(), 0.0
    for _ in range(ROUNDS):
        expected += float(weights[:5] @ (0.5 * (X[:5] - expected)))
    np.testing.assert_allclose(theta, expected, atol=1e-12)


# -- pfl-research ----------------------------------------------------------------------------


class StatisticsStandIn(dict):
    """MappedVectorStatistics of pfl: reweight keeps statistics / weight."""

    weight = 1.0

    def reweight(self, new_weight: float) -> None:
        for name in self:
            self[name] = self[name] * (new_weight / self.weight)
        self.weight = new_weight


@pytest.fixture
def pfl(monkeypatch):
    if not REAL["pfl"]:

        class Dataset:
            def _get_ops(self):
                return SimpleNamespace(distributed=SimpleNamespace(global_rank=0, world_size=1))

        modules(
            monkeypatch,
            pfl__aggregate__weighting={"WeightingStrategy": object},
            pfl__algorithm__federated_averaging={"FederatedAveraging": object},
            pfl__data__federated_dataset={"FederatedDatasetBase": Dataset},
            pfl__metrics={"Metrics": dict},
            pfl__stats={"MappedVectorStatistics": StatisticsStandIn},
        )
    return importlib.import_module("pfl.stats").MappedVectorStatistics


class PflModel:
    def __init__(self) -> None:
        self.theta = np.zeros(1)

    def apply_model_update(self, statistics):
        self.theta = self.theta + np.asarray(statistics["theta"])
        return self, {}


def pfl_round(parts, statistics_of, model: PflModel, users: list) -> None:
    """One round of pfl's SimulatedBackend: each user, postprocessors, sum, the model."""
    dataset, weights, algorithm = parts
    total = None
    for user, _seed in dataset.get_cohort(99):
        users.append(user)
        statistics = statistics_of({"theta": 0.5 * (X[user] - model.theta)})
        statistics.reweight(10)  # whatever came before
        statistics, _ = weights.postprocess_one_user(
            stats=statistics, user_context=SimpleNamespace(user_id=user)
        )
        # pfl.stats adds values *and* weights; the value over the weight is the mean update.
        value = np.asarray(statistics["theta"])
        total = value if total is None else total + value
    algorithm.process_aggregated_statistics(None, None, model, {"theta": total})


def test_pfl_steps_as_a_plain_loop_does(pfl) -> None:
    from fedcohort.adapters.pfl import cohort_parts

    scheme = fedcohort.scheme("uniform", m=3)  # weights n/m p_i: their sums differ from 1
    selector = Selector(scheme, Federation.from_sizes(SIZES), seed=SEED)
    parts = cohort_parts(selector, lambda user: user)
    model, users = PflModel(), []
    for _ in range(ROUNDS):
        pfl_round(parts, pfl, model, users)
    expected, cohorts = plain_loop(scheme)
    assert users == [i for cohort in cohorts for i in cohort]
    np.testing.assert_allclose(model.theta, expected, atol=1e-12)


def test_pfl_refuses_a_scheme_that_listens_to_updates(pfl) -> None:
    from fedcohort.adapters.pfl import cohort_parts

    built = [c() for c in fedcohort.schemes.schemes().values() if c.listens]
    listening = [one for one in built if one.listens == {"update"}]
    if not listening:
        pytest.skip("no scheme listens")
    selector = Selector(listening[0], Federation.from_sizes([1] * 30), seed=0)
    with pytest.raises(BadInput, match="pfl keeps no single update"):
        cohort_parts(selector, lambda user: user)


@pytest.mark.parametrize(
    ("scheme", "server", "says"),
    [
        ("md:m=2", {"dropouts": "hajek"}, "cannot be made up for by 'hajek'; use 'none'"),
        ("md:m=2", {"dropouts": "redraw"}, "cannot be made up for by 'redraw'"),
        ("md:m=2", {"aggregator": "memory"}, "the aggregator 'memory' needs; use 'plain'"),
        ("clustered-similarity:m=2", {}, "clustered-similarity listens to update"),
    ],
)
def test_pfl_refuses_what_needs_single_updates(pfl, scheme, server, says) -> None:
    from fedcohort.adapters.pfl import cohort_parts

    selector = Selector(scheme, Federation.from_sizes(SIZES), seed=0)
    with pytest.raises(BadInput, match=says):
        cohort_parts(selector, lambda user: user, **server)


# -- FedLab ----------------------------------------------------------------------------------


class Tensor:
    """The little of a torch tensor that the bridge touches."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values, dtype=np.float64)

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values

    def new_tensor(self, values):
        return Tensor(values)


class HandlerStandIn:
    """SyncServerHandler of FedLab 1.3."""

    def __init__(self, model, global_round, sample_ratio, **_) -> None:
        self._model, self.global_round, self.round = model, global_round, 0
        self.client_buffer_cache: list = []

    @property
    def model_parameters(self):
        return self._model["theta"]

    @property
    def if_stop(self) -> bool:
        return self.round >= self.global_round

    @property
    def downlink_package(self):
        return [self.model_parameters]

    def load(self, payload) -> bool:
        self.client_buffer_cache.append(payload)
        assert len(self.client_buffer_cache) <= self.num_clients_per_round
        if len(self.client_buffer_cache) < self.num_clients_per_round:
            return False
        self.global_update(self.client_buffer_cache)
        self.round += 1
        self.client_buffer_cache = []
        return True


@pytest.fixture
def fedlab(monkeypatch):
    """A model, and a tensor of numbers, of the real thing or of the stand-in."""
    if REAL["fedlab"]:
        torch = pytest.importorskip("torch")
        linear = torch.nn.Linear(1, 1, bias=False).double()
        torch.nn.init.zeros_(linear.weight)
        return linear, lambda values: torch.tensor(values, dtype=torch.float64)
    tool = SimpleNamespace(
        deserialize_model=lambda model, tensor: model.update(theta=tensor),
    )
    modules(
        monkeypatch,
        fedlab__contrib__algorithm__basic_server={"SyncServerHandler": HandlerStandIn},
        fedlab__utils={"SerializationTool": tool},
    )
    return {"theta": Tensor([0.0])}, Tensor


def test_fedlab_steps_as_a_plain_loop_does(fedlab) -> None:
    from fedcohort.adapters.fedlab import cohort_handler

    model, tensor = fedlab
    selector = Selector(POISSON, Federation.from_sizes(SIZES), seed=SEED)
    handler = cohort_handler(selector, model, ROUNDS)
    cohorts = []
    while not handler.if_stop:  # FedLab's StandalonePipeline
        sampled = handler.sample_clients()
        cohorts.append(sampled)
        theta = handler.downlink_package[0].detach().numpy().astype(float)
        for client in sampled:
            handler.load([tensor((theta + 0.5 * (X[client] - theta)).tolist())])
    expected, drawn = plain_loop(POISSON, rounds=selector.round)
    assert cohorts == [cohort for cohort in drawn if cohort]
    np.testing.assert_allclose(
        handler.model_parameters.detach().numpy(), expected, rtol=1e-6, atol=1e-12
    )


def test_fedlab_wants_numbered_clients(fedlab) -> None:
    from fedcohort.adapters.fedlab import cohort_handler

    selector = Selector(POISSON, Federation.from_sizes(SIZES, ids=SITES), seed=SEED)
    with pytest.raises(BadInput, match="FedLab numbers its clients"):
        cohort_handler(selector, fedlab[0], ROUNDS)


# -- all of them -----------------------------------------------------------------------------


def built(name: str, selector: Selector, request, **server):
    """The part of a framework that carries the rounds of a selector."""
    if name == "nvflare":
        request.getfixturevalue("nvflare")
        from fedcohort.adapters.nvflare import cohort_fedavg

        return cohort_fedavg(selector, num_rounds=ROUNDS, model={"w": np.zeros(1)}, **server)
    if name == "pfl":
        request.getfixturevalue("pfl")
        from fedcohort.adapters.pfl import cohort_parts

        return cohort_parts(selector, lambda user: user, **server)
    from fedcohort.adapters.fedlab import cohort_handler

    return cohort_handler(selector, request.getfixturevalue("fedlab")[0], ROUNDS, **server)


FRAMEWORKS = ["nvflare", "pfl", "fedlab"]


@pytest.mark.parametrize("scheme", ["fedsampling:K=5,mechanism=exact", "fedsampling-naive"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_share_of_the_samples_is_refused_before_the_first_round(name, scheme, request) -> None:
    selector = Selector(scheme, Federation.from_sizes(SIZES, ids=range(N)), seed=0)
    with pytest.raises(BadInput, match="cannot have clients train on a share of their samples"):
        built(name, selector, request)


class Hidden(fedcohort.Scheme):
    """Takes half of the samples and does not say so."""

    name = "hidden"

    def select(self, state, federation, context, rng):
        return fedcohort.Cohort.equal([0, 1], data_rate=0.5)


def test_a_share_of_the_samples_that_nobody_declared_is_refused_too(fedlab, request) -> None:
    selector = Selector(Hidden(), Federation.from_sizes(SIZES), seed=0)
    with pytest.raises(BadInput, match="share of their samples, which hidden"):
        built("fedlab", selector, request).sample_clients()


class Loss(fedcohort.Scheme):
    """Listens to more than updates."""

    name = "loss-listener"
    listens = frozenset({LOSS})


@pytest.mark.parametrize("name", ["nvflare", "fedlab"])
def test_what_travels_beside_the_update_is_refused(name, request) -> None:
    selector = Selector(Loss(), Federation.from_sizes(SIZES), seed=0)
    with pytest.raises(BadInput, match="loss-listener listens to loss"):
        built(name, selector, request)


def test_an_optimiser_has_its_own_step(request) -> None:
    selector = Selector("md:m=2", Federation.from_sizes(SIZES), seed=0)
    with pytest.raises(BadInput, match="'eta_g' is the step of the plain optimiser"):
        built("fedlab", selector, request, eta_g=0.5, optimiser="adam")
    with pytest.raises(BadInput, match="FedLab cannot invite replacements"):
        FedLabCarrier(selector, dropouts="redraw")


def test_flare_replaces_a_silent_site_and_keeps_types(nvflare) -> None:
    """A silent site is replaced within the round, and a model of floats stays one."""
    federation = Federation.from_sizes(SIZES, ids=SITES)
    ledger = Ledger()
    selector = Selector("clustered-size:m=2", federation, seed=SEED, ledger=ledger)
    sent = []

    class Answering:
        """Everybody but site-5, at once."""

        def __init__(self, controller) -> None:
            self.controller = controller

        def __call__(self, task_name, data, targets, timeout=0, callback=None):
            sent.append((task_name, list(targets)))
            replies = [self.reply(name, data) for name in targets if name != "site-5"]
            if callback is None:
                return replies
            for reply in replies:
                callback(reply)
            return None

        def reply(self, name, data):
            move = np.float32(0.5) * (np.float32(X[SITES.index(name)]) - data.params["w"])
            kind = nvflare.ParamsType.DIFF
            meta = {"client_name": name}
            return nvflare.FLModel(params={"w": move}, params_type=kind, meta=meta)

    from fedcohort.adapters.nvflare import cohort_fedavg

    start = {"w": np.zeros(1, dtype=np.float32)}
    controller = cohort_fedavg(selector, model=start, num_rounds=ROUNDS, dropouts="redraw")
    quieted(controller)
    controller.send_model = controller.send_model_and_wait = Answering(controller)
    controller.run()
    assert controller.final.params["w"].dtype == np.float32
    assert selector.round == ROUNDS
    invitations = sum(len(targets) for _, targets in sent)
    assert len(sent) > ROUNDS  # site-5 was chosen, and somebody stood in
    assert ledger.by_purpose()["training"].bytes_down == 4 * invitations  # one float each


def test_an_update_that_is_not_usable_counts_as_not_sent(fedlab, request) -> None:
    _, tensor = fedlab
    selector = Selector("full", Federation.from_sizes(SIZES), seed=0)
    handler = built("fedlab", selector, request)
    clients = handler.sample_clients()
    for client in clients[:-1]:
        handler.load([tensor([float(client == 0)])])
    with pytest.warns(FedcohortWarning, match="count as not sent.* of 5: not_finite"):
        handler.load([tensor([np.nan])])
    weights = SIZES / SIZES.sum()
    np.testing.assert_allclose(handler.model_parameters.detach().numpy(), weights[0], rtol=1e-6)
    assert selector.ledger.total().messages == 2 * N - 1


def test_flare_asks_nobody_where_nobody_was_drawn(nvflare) -> None:
    from fedcohort.adapters.nvflare import cohort_fedavg

    selector = Selector("poisson:m=1", Federation.from_sizes(SIZES, ids=SITES), seed=SEED)
    controller = cohort_fedavg(selector, num_rounds=1, model={"w": np.zeros(1)})
    responses: list[object] = []
    controller.send_model(task_name="train", targets=[], data=None, callback=responses.append)
    assert responses == []


# -- sites that send something else ----------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"answer": [[1], [1, 2]]}, Fault.UNREADABLE),
        ({"answer": np.zeros(5)}, Fault.WRONG_SHAPE),
        ({"answer": "high"}, Fault.WRONG_TYPE),
        ({"answer": np.nan}, Fault.NOT_FINITE),
        ({"answer": 1e300}, Fault.OUT_OF_RANGE),
        ({"gain": 1.0}, Fault.UNREADABLE),
        ([1, 2], Fault.UNREADABLE),
        (None, Fault.UNREADABLE),
    ],
)
def test_a_site_that_answers_something_else_ends_no_selection(answer, fault) -> None:
    """The first row set the shape, and whatever numpy said of it ended the run."""
    replies = [SimpleNamespace(meta={"client_name": SITES[0]}, params=answer)]
    replies += [
        SimpleNamespace(meta={"client_name": name}, params={"answer": np.array(1.0 + i)})
        for i, name in enumerate(SITES[1:])
    ]
    strange = SimpleNamespace(meta=None, params={"answer": np.array(9.0)})
    selector = Selector("pow-d:m=2,d=6", Federation.from_sizes(SIZES, ids=SITES), seed=SEED)
    carrier = FlareCarrier(selector)
    carrier.controller = SimpleNamespace(asked=lambda *question: [*replies, strange])
    with pytest.warns(FedcohortWarning) as said:
        cohort = selector.select(None, carrier)
    assert cohort.clients.tolist() == [4, 5]
    assert carrier.gate.by_client == {(SITES[0], fault): 1}
    assert carrier.gate.counts[Fault.NOT_ASKED] == 1
    quoted = f"of 'site-0': {fault.name.lower()}: "
    assert any(quoted in str(each.message) for each in said)


def test_where_no_site_answers_well_the_last_one_is_quoted() -> None:
    reply = SimpleNamespace(meta={"client_name": SITES[2]}, params={"answer": "high"})
    selector = Selector("pow-d:m=2,d=6", Federation.from_sizes(SIZES, ids=SITES), seed=SEED)
    carrier = FlareCarrier(selector)
    carrier.controller = SimpleNamespace(asked=lambda *question: [reply])
    with (
        pytest.warns(FedcohortWarning, match="wrong_type"),
        pytest.raises(TooFewClients, match=r"Nobody answered .* of 'site-2': wrong_type"),
    ):
        selector.select(None, carrier)


@pytest.mark.parametrize(
    ("params", "fault"),
    [
        (None, Fault.UNREADABLE),
        ([1.0], Fault.UNREADABLE),
        ({"w": np.zeros(3)}, Fault.WRONG_KEYS),
        ({"w": np.zeros(1), "b": np.zeros(2)}, Fault.WRONG_SHAPE),  # one number fits any shape
        ({"w": np.zeros(3), "b": ["a", "b"]}, Fault.WRONG_TYPE),
        ({"w": np.zeros(3), "b": [[1.0], [1.0, 2.0]]}, Fault.UNREADABLE),
        ({"w": np.full(3, 1e300), "b": np.zeros(2)}, Fault.OUT_OF_RANGE),
        ({"w": np.zeros(3), "b": np.array([np.inf, 0.0])}, Fault.NOT_FINITE),
    ],
)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dropouts", ["none", "redraw"])
def test_a_site_that_trains_something_else_counts_as_silent(
    nvflare, params, fault, full: bool, dropouts: str
) -> None:
    if REAL["nvflare"]:
        pytest.skip("the real one accepts only what it has made itself")
    from fedcohort.adapters.nvflare import cohort_fedavg

    kind = nvflare.ParamsType.FULL if full else nvflare.ParamsType.DIFF

    def final(lies: bool) -> tuple[np.ndarray, Gate]:
        def replies(targets):
            good = {"w": np.ones(3), "b": np.ones(2)}
            for name in [*targets, "nobody-knows-me"] if lies else targets:
                sent = params if name == SITES[5] else good
                if lies or name != SITES[5]:
                    meta = {"client_name": name}
                    yield nvflare.FLModel(params=sent, params_type=kind, meta=meta)

        def send_model(task_name, targets, data, callback) -> None:
            for reply in replies(targets):
                callback(reply)

        def again(task_name, data, targets, timeout):
            return list(replies(targets))

        selector = Selector("pivotal:m=3", Federation.from_sizes(SIZES, ids=SITES), seed=SEED)
        model = {"w": np.zeros(3), "b": np.zeros(2)}
        made = cohort_fedavg(selector, num_rounds=ROUNDS, model=model, dropouts=dropouts)
        made.send_model, made.send_model_and_wait = send_model, again
        quieted(made)
        made.run()
        return flat(made.final.params.values()), made.gate

    with pytest.warns(FedcohortWarning, match="count as not sent"):
        theta, gate = final(lies=True)
    expected, _ = final(lies=False)
    np.testing.assert_array_equal(theta, expected)
    assert gate.by_client[SITES[5], fault] > 0
    assert {who for who, _ in gate.by_client} == {SITES[5]}
    assert gate.counts[Fault.NOT_ASKED] > 0


@pytest.mark.parametrize(
    ("upload", "fault"),
    [
        (["text"], Fault.WRONG_TYPE),
        (None, Fault.UNREADABLE),
        ([], Fault.UNREADABLE),
        ([np.zeros(3)], Fault.WRONG_SHAPE),
        ([np.array([1e300])], Fault.OUT_OF_RANGE),
        ([np.array([1j])], Fault.WRONG_TYPE),
    ],
)
def test_an_upload_that_is_something_else_counts_as_not_sent(
    upload, fault, fedlab, request
) -> None:
    _, tensor = fedlab
    selector = Selector("full", Federation.from_sizes(SIZES), seed=0)
    handler = built("fedlab", selector, request)
    for client in handler.sample_clients()[:-1]:
        handler.load([tensor([float(client == 0)])])
    with pytest.warns(FedcohortWarning, match=f"count as not sent.* of 5: {fault.name.lower()}"):
        handler.load(upload)
    weights = SIZES / SIZES.sum()
    np.testing.assert_allclose(handler.model_parameters.detach().numpy(), weights[0], rtol=1e-6)
