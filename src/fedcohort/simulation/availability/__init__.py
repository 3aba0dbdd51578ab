"""Who is there: models of availability, one per file.

Each says for a round which clients can take part, from a generator of that round alone, so
that schemes are compared on the same weather. Other packages add theirs through the entry point
group ``fedcohort.availability_models``.
"""

from __future__ import annotations

from typing import Any

from fedcohort.core.registry import Kind
from fedcohort.simulation.availability.always import Always
from fedcohort.simulation.availability.base import Availability, InTime
from fedcohort.simulation.availability.cyclic import Cyclic
from fedcohort.simulation.availability.devices import Devices
from fedcohort.simulation.availability.random import Random

__all__ = [
    "AVAILABILITIES", "Always", "Availability", "Cyclic", "Devices", "InTime", "Random",
    "availability",
]  # fmt: skip

AVAILABILITIES: Kind[Availability] = Kind(
    "availability model", __name__, Availability, default="always"
)


def availability(which: Availability | str | None = None, **parameters: Any) -> Availability:
    """The availability model of that name; None is everyone, and a model is itself.

    >>> import numpy as np
    >>> availability("cyclic:groups=2").available(5, 1, np.random.default_rng(0))
    array([1, 3])
    """
    return AVAILABILITIES.build(which, **parameters)
