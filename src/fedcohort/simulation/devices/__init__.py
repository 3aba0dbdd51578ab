"""How fast clients are: models of their devices, one per file.

Each says of every client how many seconds it computes on a sample and how many bytes it moves
in a second; `fedcohort.simulation.clock` makes a round's duration of it. Other packages add theirs
through the entry point group ``fedcohort.device_models``.
"""

from __future__ import annotations

from typing import Any

from fedcohort.core.registry import Kind
from fedcohort.simulation.devices.base import DeviceModel, Speeds
from fedcohort.simulation.devices.equal import Equal
from fedcohort.simulation.devices.groups import Groups
from fedcohort.simulation.devices.lognormal import Lognormal
from fedcohort.simulation.devices.phones import Phones
from fedcohort.simulation.devices.table import Table

__all__ = [
    "DEVICES", "DeviceModel", "Equal", "Groups", "Lognormal", "Phones", "Speeds", "Table",
    "devices",
]  # fmt: skip

DEVICES: Kind[DeviceModel] = Kind("device model", __name__, DeviceModel)


def devices(which: DeviceModel | str, **parameters: Any) -> DeviceModel:
    """The device model of that name; a model is itself.

    >>> devices("lognormal:sigma=0.5").sigma
    0.5
    """
    return DEVICES.build(which, **parameters)
