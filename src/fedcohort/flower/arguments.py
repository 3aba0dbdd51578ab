"""What `CohortStrategy` may be told, and what it may be put into; all else is one sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import FrameType
from typing import Any

from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Strategy

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_real, is_whole
from fedcohort.flower.carrier import word_of
from fedcohort.flower.limits import Limits
from fedcohort.flower.population import Importance
from fedcohort.schemes import as_scheme
from fedcohort.selection._queries import UPDATE
from fedcohort.selection._scheme import Scheme
from fedcohort.server._noise import Gaussian
from fedcohort.server._state import Setup


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
