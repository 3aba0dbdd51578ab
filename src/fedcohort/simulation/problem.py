"""A learning problem in words: which data, divided how, learnt by which model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fedcohort import data
from fedcohort.core.errors import UnknownName
from fedcohort.core.streams import stream
from fedcohort.data.partition import make
from fedcohort.learning import MLP, Softmax, Task

MODELS: dict[str, type[MLP] | type[Softmax]] = {"softmax": Softmax, "mlp": MLP}


@dataclass(frozen=True)
class Problem:
    """What a comparison trains on; `task` builds it.

    The division is drawn from its own seed, so that all runs of a comparison share it.

    >>> Problem("digits", "iid", {"n": 5}).task().sizes
    array([289, 289, 288, 288, 288])
    """

    data: str = "digits"
    partition: str = "one-class-per-client"
    partition_options: Mapping[str, Any] = field(default_factory=dict)
    model: str = "softmax"
    model_options: Mapping[str, Any] = field(default_factory=dict)
    partition_seed: int = 0

    def task(self) -> Task:
        """Load, divide and set up the model."""
        if self.model not in MODELS:
            raise UnknownName("model", self.model, MODELS)
        declared = inspect.signature(MODELS[self.model]).parameters.values()
        known = [each.name for each in declared if each.kind is each.KEYWORD_ONLY]
        for setting in self.model_options:
            if setting not in known:
                raise UnknownName(f"setting of the model '{self.model}'", setting, known)
        dataset = data.load(self.data)
        division = make(
            self.partition,
            dataset.y_train,
            stream(self.partition_seed, "partition"),
            groups=dataset.groups_train,
            **self.partition_options,
        )
        return MODELS[self.model].from_partition(dataset, division, **self.model_options)

    def settings(self) -> dict[str, Any]:
        """In plain values, to be kept with the runs."""
        return asdict(self)
