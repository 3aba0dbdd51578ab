"""The arguments of Flower's ``FedAvg``: taken where they mean the same here, answered otherwise."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import is_real, is_whole
from fedcohort.flower.evaluation import EVALUATORS, Evaluators
from fedcohort.flower.metrics import Aggregate, Averaging
from fedcohort.flower.wire import ARRAYS, CONFIG


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
    if waits is None:
        raise BadInput(
            "CohortStrategy needs 'clients', how many to wait for before the first round, as in "
            "CohortStrategy('uniform:m=3', clients=10)."
        )
    _require("clients", is_whole(waits) and waits >= 1, "an int of at least 1", waits)
    _refuse_training(given, waits)
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
    least = given.get("min_evaluate_nodes", 1)
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
        if name not in Familiar.__annotations__:
            near = difflib.get_close_matches(name, Familiar.__annotations__, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise TypeError(f"CohortStrategy has no argument '{name}'.{hint}")


def _same(ours: str, value: Any, theirs: str, familiar: Any) -> Any:
    """The one that is given, of two names for a thing."""
    if value is not None and familiar is not None and value != familiar:
        raise BadInput(
            f"'{theirs}' of FedAvg is '{ours}' of CohortStrategy; give one of them, not both."
        )
    return value if familiar is None else familiar


def _refuse_training(given: Mapping[str, Any], clients: int) -> None:
    """Who trains is the scheme's to say."""
    fraction = given.get("fraction_train")
    if fraction is not None:
        m = "m"
        if is_real(fraction) and 0 < fraction <= 1:
            m = str(max(1, int(fraction * clients)))  # as FedAvg rounds it
        raise BadInput(
            "CohortStrategy has no 'fraction_train': its scheme says how many clients train. For "
            f"{fraction} of {clients} write CohortStrategy('uniform:m={m}', clients={clients})."
        )
    if given.get("min_train_nodes") is not None:
        raise BadInput(
            "CohortStrategy has no 'min_train_nodes': m of its scheme is how many clients train, "
            "as in 'uniform:m=3', and quorum=0.5 the share of them that must answer."
        )


def _require(name: str, fits: bool, must: str, got: object) -> None:
    if not fits:
        raise BadParameter(name, "CohortStrategy", must, got)
