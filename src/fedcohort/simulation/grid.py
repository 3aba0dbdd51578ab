"""The settings to try: which of them an arm has, and the arms that they make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName, shown
from fedcohort._internal.parameters import constraints, is_real, is_whole
from fedcohort._internal.parameters import value as plain_value
from fedcohort._internal.random import stream
from fedcohort.maths._draws import permutation
from fedcohort.simulation.arms import KINDS, Arm
from fedcohort.simulation.centralised import Centralised
from fedcohort.simulation.own_work import SETTINGS, OwnWork

Grid: TypeAlias = Mapping[str, Sequence[Any]]
"""Values by setting: ``{"lr": [0.01, 0.1], "pow-d.d": [10, 20]}``."""
WORK, SCHEME = OwnWork.name, "scheme"
LARGEST = 10_000
"""Configurations of one scheme: more are a slip."""


@dataclass(frozen=True)
class Axis:
    """A setting of one arm, and the values of it to try."""

    kind: str  # scheme, algorithm, optimiser, aggregator or work
    setting: str
    values: tuple[Any, ...]


Tried: TypeAlias = Arm | Centralised
Configuration: TypeAlias = tuple[tuple[Axis, Any], ...]
"""A value for every axis."""


def axes_of(
    arms: Mapping[str, Tried], grid: Grid, common: Mapping[str, Any]
) -> dict[str, list[Axis]]:
    """The settings of a grid that each arm has, by label.

    A name stands for the setting of whatever part has it: local work, the scheme, or what is
    the arm's own or in ``common`` of the rest (``optimiser``, ...). ``owner.setting`` says whose:
    the owner is a kind (``work``, ``optimiser``), the name of a part (``adam``), or the label of
    an arm, whose values then replace those for all.
    """
    if not grid:
        raise BadInput("A grid needs at least one setting, as in {'lr': [0.01, 0.1]}; got none.")
    out: dict[str, list[Axis]] = {label: [] for label in arms}
    used: set[str] = set()
    for label, arm in arms.items():
        parts = _parts(arm, common)
        found: dict[tuple[str, str], tuple[bool, Axis]] = {}
        for name, values in grid.items():
            place = _place(name, label, parts)
            if place is None:
                continue
            used.add(name)
            own = name.rpartition(".")[0] == label
            axis = Axis(*place, _values(name, values, parts[place[0]], place[1]))
            if place in found and found[place][0] == own:
                raise BadInput(f"The grid gives the setting '{place[1]}' of {label} twice.")
            if place not in found or own:
                found[place] = own, axis
        out[label] = [axis for _, axis in found.values()]
    for name in grid.keys() - used:
        have = {s for arm in arms.values() for p in _parts(arm, common).values() for s in _names(p)}
        raise UnknownName("setting of these schemes", name, have)
    return out


def _parts(arm: Tried, common: Mapping[str, Any]) -> dict[str, Any]:
    """What has settings, by kind; of local work just the word."""
    if isinstance(arm, Centralised):
        return {WORK: WORK}
    parts = {SCHEME: arm.scheme, WORK: WORK}
    for kind, known in KINDS.items():
        parts[kind] = arm.options.get(kind) or known.build(common.get(kind))
    return parts


def _names(part: Any) -> Sequence[str]:
    return SETTINGS if part == WORK else tuple(part.parameters)


def _place(name: str, label: str, parts: Mapping[str, Any]) -> tuple[str, str] | None:
    """The kind of part and its setting that a name in a grid means for an arm, if any."""
    owner, _, setting = name.rpartition(".")
    have = [kind for kind, part in parts.items() if setting in _names(part)]
    if owner and owner != label:
        named = [kind for kind in have if owner in {kind, getattr(parts[kind], "name", kind)}]
        have = named
    if len(have) > 1:
        ways = " or ".join(f"'{kind}.{setting}'" for kind in have)
        raise BadInput(f"'{name}' of {label} could be of several parts; write {ways}.")
    return (have[0], setting) if have else None


def _values(name: str, given: Any, part: Any, setting: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not hasattr(given, "__len__") or not len(given):
        raise BadInput(f"The grid must have a list of values for '{name}'; got {shown(given)}.")
    values = tuple(_read(each, part, setting) for each in given)
    if len({repr(each) for each in values}) < len(values):
        raise BadInput(f"The grid must have distinct values for '{name}'; got {shown(given)}.")
    return values


def _read(given: Any, part: Any, setting: str) -> Any:
    """A value; of a text, what the part's declared range reads in it."""
    given = given.item() if isinstance(given, np.generic) else given
    if not isinstance(given, str):
        return given
    declared = None if part == WORK else constraints(type(part)).get(setting)
    if declared is None:
        return plain_value(given)
    try:
        return declared.parse(given)
    except ValueError:
        raise BadParameter(setting, part.name, str(declared), given) from None


def configurations(axes: Sequence[Axis], label: str) -> list[Configuration]:
    """Every choice of a value for every axis; one, that changes nothing, without any."""
    count = int(np.prod([len(axis.values) for axis in axes], dtype=object)) if axes else 1
    if count > LARGEST:
        raise BadInput(
            f"The grid of {label} has {count} configurations, and {LARGEST} are allowed; give "
            "fewer values."
        )
    return [tuple(zip(axes, chosen, strict=True)) for chosen in product(*(a.values for a in axes))]


def smallest_choice(sizes: Iterable[int]) -> int:
    """The fewest configurations among schemes that have several; 1 where none has.

    A scheme that has none of the settings has nothing to choose, and must not keep the others
    from choosing.

    >>> smallest_choice([6, 3, 1])
    3
    """
    return min((size for size in sizes if size > 1), default=1)


def some_of(tried: list[Configuration], count: int, seed: int) -> list[Configuration]:
    """So many configurations, such that every value of every setting comes up about as often.

    One after another is drawn among those whose values have come up least; in the old order.
    """
    if count >= len(tried):
        return tried
    left = [tried[i] for i in permutation(stream(seed, "configurations"), len(tried)).tolist()]
    often: dict[tuple[Axis, str], int] = {}
    taken: list[Configuration] = []
    while len(taken) < count:
        seen = [sum(often.get((axis, repr(v)), 0) for axis, v in each) for each in left]
        taken.append(left.pop(int(np.argmin(seen))))
        for axis, value in taken[-1]:
            often[axis, repr(value)] = often.get((axis, repr(value)), 0) + 1
    return [each for each in tried if any(each is one for one in taken)]


A = TypeVar("A", bound=Tried)


def configured(arm: A, configuration: Configuration, common: Mapping[str, Any]) -> A:
    """The arm with these settings; one that is out of range is refused by its part."""
    parts, changes = _parts(arm, common), dict[str, dict[str, Any]]()
    for axis, value in configuration:
        changes.setdefault(axis.kind, {})[axis.setting] = value
    new: dict[str, Any] = {}
    for kind, settings in changes.items():
        if kind == WORK:
            own = arm.work.parameters if isinstance(arm.work, OwnWork) else {}
            new[kind] = {**own, **settings}
        else:
            new[kind] = replace(parts[kind], **settings)
    return replace(arm, **new)


def named(configuration: Configuration) -> dict[str, Any]:
    """The values by the names of the settings, with their kind where two are called the same."""
    settings = [axis.setting for axis, _ in configuration]
    return {
        s if settings.count(s) == 1 else f"{axis.kind}.{s}": value
        for s, (axis, value) in zip(settings, configuration, strict=True)
    }


def at_edge(
    arm: Tried, configuration: Configuration, common: Mapping[str, Any]
) -> Iterator[tuple[str, Any, str]]:
    """Settings with the least or largest value of their grid, where another could be taken."""
    for name, (axis, value) in zip(named(configuration), configuration, strict=True):
        if len(axis.values) < 2 or not all(map(is_real, axis.values)):
            continue
        for extreme, word, sign in ((min, "smallest", -1), (max, "largest", 1)):
            if value == extreme(axis.values) and _takes(arm, axis, _next(value, sign), common):
                yield name, value, word


def _next(value: Any, sign: int) -> Any:
    return value + sign if is_whole(value) else value + sign * 1e-6 * (abs(value) or 1.0)


def _takes(arm: Tried, axis: Axis, value: Any, common: Mapping[str, Any]) -> bool:
    try:
        configured(arm, ((axis, value),), common)
    except (BadParameter, BadInput):
        return False
    return True
