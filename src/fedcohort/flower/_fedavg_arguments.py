"""Arguments of Flower's FedAvg, as `CohortStrategy` takes them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypedDict

from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Strategy

from fedcohort._internal.errors import BadInput, BadParameter, brief, shown
from fedcohort._internal.parameters import is_real, is_whole
from fedcohort.flower._evaluation import EVALUATORS, Evaluators
from fedcohort.flower._exchange import Limits
from fedcohort.flower._monitoring import Aggregate, Averaging
from fedcohort.flower._population import Importance
from fedcohort.flower._transport import word_of
from fedcohort.flower._wire import ARRAYS, CONFIG
from fedcohort.schemes import as_scheme
from fedcohort.selection._queries import UPDATE
from fedcohort.selection._scheme import Scheme
from fedcohort.server._noise import Gaussian
from fedcohort.server._state import Setup

# What `CohortStrategy` may be told, and what it may be put into; all else is one sentence.


def check(
    quorum: float,
    largest: float,
    largest_size: float | None,
    importance: Importance,
    identity: str,
    folder: str | os.PathLike[str] | None,
    limits: Limits | None,
) -> None:
    """Refuse values that mean nothing."""
    _require("quorum", is_real(quorum) and 0 <= quorum <= 1, "a number in [0, 1]", quorum)
    _require("largest", is_real(largest) and largest > 0, "a number above 0", largest)
    sized = largest_size is None or (is_real(largest_size) and largest_size >= 1)
    _require("largest_size", sized, "a number of at least 1, or None", largest_size)
    known = isinstance(importance, Mapping) or importance in ("size", "equal")
    _require("importance", known, "'size', 'equal' or a mapping from keys", importance)
    _require("identity", identity in ("asked", "name"), "'asked' or 'name'", identity)
    paths = isinstance(folder, str | os.PathLike) or folder is None
    _require("folder", paths, "a path or None", folder)
    waits = limits is None or isinstance(limits, Limits)
    _require("limits", waits, "fedcohort.flower.Limits(...) or None", limits)


def given_scheme(scheme: Scheme[Any] | str | None) -> Scheme[Any]:
    """The scheme; whoever writes `CohortStrategy` for `FedAvg` and no more is told what it is."""
    if scheme is None:
        raise BadInput(
            "CohortStrategy needs a scheme, which says who trains and how much each counts, as in "
            "CohortStrategy('uniform:m=3', clients=10)."
        )
    return as_scheme(scheme)


def check_start(arrays: object, rounds: Any, **functions: object) -> None:
    """Refuse what no run can begin with."""
    if not isinstance(arrays, ArrayRecord):
        remedy = "Write ArrayRecord(model.state_dict()), or first_model(task, seed=0)."
        got = type(arrays).__name__
        raise BadParameter("initial_arrays", "start", "an ArrayRecord of flwr.app", got, remedy)
    if not is_whole(rounds) or rounds < 0:
        raise BadParameter("num_rounds", "start", "an int of at least 0", rounds)
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise BadParameter(name, "start", "a function, or None", function)


def _require(name: str, fits: bool, must: str, got: object) -> None:
    if not fits:
        raise BadParameter(name, "CohortStrategy", must, got)


def asks_of_clients(setup: Setup) -> bool:
    """Whether clients must be able to do more than to train and to send what they learnt."""
    scheme = setup.scheme
    more = setup.asks or scheme.listens - {UPDATE} or scheme.subsampling or scheme.counts_samples
    return bool(more or word_of(setup.algorithm))


def require_per_draw(setup: Setup) -> None:
    """Refuse what needs one answer of a client in a round, where there is one for every draw."""
    algorithm, rule, aggregator = setup.algorithm, setup.stragglers, setup.aggregator
    if rule.withdraws:
        raise BadInput(
            f"'{rule.name}' counts the answers of clients, but per_draw=True has a client answer "
            "once per draw: leave per_draw out."
        )
    if algorithm.stateful or algorithm.payloads:
        raise BadInput(
            f"The local algorithm '{algorithm.name}' remembers and reports once per client and "
            "round, but per_draw=True invites a client once per draw: leave per_draw out."
        )
    if isinstance(aggregator, Gaussian) and aggregator.clients is not None:
        raise BadInput(
            "Where clients add noise for a secure sum (gaussian:clients=...) each sends one answer "
            "with all its weight, but per_draw=True invites it once per draw: leave per_draw out."
        )


def refuse_wrappers(strategy: Strategy, frame: FrameType | None) -> None:
    """Refuse another strategy around this one, as Flower's for differential privacy.

    ``frame`` is whoever calls. A wrapper may do so through a function of its own; a loop that is
    no strategy is welcome, and so is whatever lets this one run its own loop.
    """
    while frame is not None:
        caller = frame.f_locals.get("self")
        if caller is strategy and frame.f_code.co_name == "start":
            return
        if isinstance(caller, Strategy) and caller is not strategy:
            raise BadInput(
                f"{type(caller).__name__} cannot be put around CohortStrategy: answers here are "
                "changes, or count with unequal weights, replacements go past a wrapper, and the "
                "model is kept without its noise, so that nothing would be private. Let clients "
                "clip and add noise themselves, by @app.train(mods=[LocalDpMod(...)]) of "
                "flwr.clientapp.mod, or put the wrapper around Flower's own FedAvg."
            )
        frame = frame.f_back


# The arguments of Flower's strategies: taken where they mean the same, answered otherwise.


class Familiar(TypedDict, total=False):
    """What ``FedAvg(...)`` takes in flwr 1.41 and 1.42."""

    fraction_train: float
    fraction_evaluate: float
    min_train_nodes: int
    min_evaluate_nodes: int
    min_available_nodes: int
    weighted_by_key: str
    arrayrecord_key: str
    configrecord_key: str
    train_metrics_aggr_fn: Aggregate | None
    evaluate_metrics_aggr_fn: Aggregate | None


LONGEST = 80
"""How much of a name is compared with those that there are."""
LEAST = 2
"""``min_train_nodes`` and ``min_evaluate_nodes`` of FedAvg, where nobody says otherwise."""

_START = "start() takes it: write strategy.start(grid, initial_arrays, {name}=...)"
_SCHEME = "its scheme says how many clients train: write 'fedavg:m=3,weights=normalised', say"
_ADAPTIVE = 'write optimiser="adam:eta_g=0.1,beta1=0.9,beta2=0.99,tau=0.001", or "yogi", "adagrad"'
_QUORUM = "failures are counted: write quorum=0.5 for the share of clients that must answer"
_MOMENTUM = 'write optimiser="sgd:eta_g=1.0,momentum=0.9"'
_NOISE = (
    'write aggregator="gaussian:clip=0.5,noise=1.39" with dropouts="none" and quorum=0, and read '
    "what it promises in docs/privacy.md"
)
_BULYAN = 'there is no Bulyan here: write aggregator="krum:f=1" or "median"'
_FAIR = "there is no q-FedAvg here: a scheme that prefers clients with a high loss is 'pow-d:m=3'"

ELSEWHERE = {
    **dict.fromkeys(
        ("grid", "initial_arrays", "num_rounds", "timeout", "train_config", "evaluate_config",
         "evaluate_fn", "should_stop", "on_round"), _START,
    ),
    "proximal_mu": "write strategy.start(..., train_config=ConfigRecord({\"proximal-mu\": 0.1})), "
    "as your train function reads it from FedProx",
    **dict.fromkeys(("eta", "beta_1", "beta_2", "tau"), _ADAPTIVE),
    "eta_l": "clients take their steps themselves: set it in their train function",
    **dict.fromkeys(("server_learning_rate", "server_momentum"), _MOMENTUM),
    "beta": 'write aggregator="trimmed-mean:share=0.1"',
    **dict.fromkeys(
        ("num_malicious_nodes", "num_malicious_clients"), 'write aggregator="krum:f=1"'
    ),
    **dict.fromkeys(
        ("num_nodes_to_select", "num_clients_to_keep"), 'write aggregator="krum:f=1,keep=3"'
    ),
    **dict.fromkeys(("selection_rule", "first_aggregation_rule"), _BULYAN),
    **dict.fromkeys(
        ("q", "q_param", "client_learning_rate", "qffl_learning_rate", "train_loss_key"), _FAIR
    ),
    **dict.fromkeys(
        ("noise_multiplier", "clipping_norm", "num_sampled_clients", "initial_clipping_norm",
         "target_clipped_quantile", "clip_norm_lr", "clipped_count_stddev", "clip_norm"), _NOISE,
    ),
    **dict.fromkeys(("fraction_fit", "min_fit_clients"), _SCHEME),
    "min_evaluate_clients": "write min_evaluate_nodes=2",
    "min_available_clients": "write clients=10",
    "on_fit_config_fn": "write strategy.start(..., train_config=ConfigRecord({...})); what changes "
    "from round to round goes into configure_train, which a subclass may extend",
    "on_evaluate_config_fn": "write strategy.start(..., evaluate_config=ConfigRecord({...})); what "
    "changes from round to round goes into configure_evaluate, which a subclass may extend",
    **dict.fromkeys(("accept_failures", "min_completion_rate_fit"), _QUORUM),
    "initial_parameters": "write strategy.start(grid, initial_arrays)",
    "fit_metrics_aggregation_fn": "it is train_metrics_aggr_fn now",
    "evaluate_metrics_aggregation_fn": "it is evaluate_metrics_aggr_fn now",
    "inplace": "leave it out",
}  # fmt: skip
"""What to write for arguments of ``start()``, of other strategies and of Flower's older ones."""


@dataclass(frozen=True)
class Understood:
    """The same in our words."""

    clients: int
    evaluate: Evaluators
    least: int
    """How many evaluate at least, where a share of the clients does."""
    train: Averaging
    evaluation: Averaging


def understood(clients: int | None, evaluate: Evaluators, given: Mapping[str, Any]) -> Understood:
    """What is meant by the arguments of FedAvg; what means nothing here gets a sentence."""
    _known(given)
    waits = _same("clients", clients, "min_available_nodes", given.get("min_available_nodes"))
    fits = waits is None or (is_whole(waits) and waits >= 1)
    _require("clients", fits, "an int of at least 1", waits)
    _refuse_training(given, 10 if waits is None else waits)
    if waits is None:
        raise BadInput(
            "CohortStrategy needs 'clients', how many to wait for before the first round, as in "
            "CohortStrategy('uniform:m=3', clients=10)."
        )
    for name, used in (("arrayrecord_key", ARRAYS), ("configrecord_key", CONFIG)):
        if given.get(name, used) != used:
            raise BadParameter(
                name,
                "CohortStrategy",
                f"{used!r}",
                given[name],
                f'Read msg.content["{used}"] in your train and evaluate functions.',
            )
    fraction = given.get("fraction_evaluate")
    if fraction is not None:
        fits = is_real(fraction) and 0 <= fraction <= 1
        _require("fraction_evaluate", fits, "a number in [0, 1]", fraction)
        fraction = {0.0: "nobody", 1.0: "everyone"}.get(float(fraction), float(fraction))
    who = _same("evaluate", evaluate, "fraction_evaluate", fraction)
    share = isinstance(who, float) and 0 < who < 1
    must = f"one of {EVALUATORS}, or a share of the clients in (0, 1)"
    _require("evaluate", who is None or share or who in EVALUATORS, must, who)
    # A share in our own words is that share; in FedAvg's it is what FedAvg would sample.
    least = given.get("min_evaluate_nodes", 1 if fraction is None else LEAST)
    fits = is_whole(least) and least >= 0
    _require("min_evaluate_nodes", fits, "an int of at least 0", least)
    key = given.get("weighted_by_key")
    _require("weighted_by_key", key is None or isinstance(key, str), "the name of a metric", key)
    train, evaluation = (_averaging(f"{what}_metrics_aggr_fn", given, key) for what in _KINDS)
    return Understood(waits, who, least, train, evaluation)


_KINDS = ("train", "evaluate")


def _averaging(name: str, given: Mapping[str, Any], key: str | None) -> Averaging:
    function = given.get(name)
    fits = function is None or callable(function)
    _require(name, fits, "a function of a list of RecordDict and a key", function)
    return Averaging(name, function, key)


def _known(given: Mapping[str, Any]) -> None:
    """A keyword that is neither ours nor FedAvg's is a mistake, as of any function."""
    for name in given:
        if name in ELSEWHERE:
            answer = ELSEWHERE[name].replace("{name}", name)
            raise BadInput(f"CohortStrategy has no '{name}': {answer}.")
        if name not in Familiar.__annotations__:
            near = difflib.get_close_matches(name[:LONGEST], Familiar.__annotations__, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise TypeError(f"CohortStrategy has no argument '{brief(name)}'.{hint}")


def _same(ours: str, value: Any, theirs: str, familiar: Any) -> Any:
    """The one that is given, of two names for a thing."""
    if value is not None and familiar is not None and value != familiar:
        raise BadInput(
            f"'{theirs}' of FedAvg is '{ours}' of CohortStrategy; give one of them, not both."
        )
    return value if familiar is None else familiar


def _refuse_training(given: Mapping[str, Any], clients: int) -> None:
    """Who trains is the scheme's to say."""
    fraction: Any = given.get("fraction_train")
    least: Any = given.get("min_train_nodes")
    if fraction is not None:
        if is_real(fraction) and fraction == 0:
            raise BadInput(
                "CohortStrategy has no 'fraction_train', and chooses who trains in every round: "
                "where nobody is to train, use Flower's FedAvg(fraction_train=0.0)."
            )
        _require("fraction_train", is_real(fraction) and 0 < fraction <= 1, "left out", fraction)
        # As FedAvg samples, which waits until there are so many.
        m = max(int(fraction * clients), least if is_whole(least) else LEAST)
        told = f"m={m}', clients={max(m, clients)})"
        raise BadInput(
            "CohortStrategy has no 'fraction_train': its scheme says how many clients train. For "
            f"{shown(fraction)} of {clients} write CohortStrategy('fedavg:weights=normalised,"
            f"{told}, which chooses and weighs as FedAvg does, or ('uniform:{told}, which chooses "
            "alike and has no bias."
        )
    if least is not None:
        raise BadInput(
            "CohortStrategy has no 'min_train_nodes': m of its scheme is how many clients train, "
            "as in 'uniform:m=3', and quorum=0.5 the share of them that must answer."
        )
