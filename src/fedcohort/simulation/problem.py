"""A learning problem in words: which data, divided how, learnt by which model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedcohort import data
from fedcohort.core.federation import importance_of
from fedcohort.core.registry import Prepared
from fedcohort.core.streams import stream
from fedcohort.data.partition import PARTITIONS
from fedcohort.learning import Task
from fedcohort.learning.models import MODELS

__all__ = ["MODELS", "Problem"]


@dataclass(frozen=True)
class Problem:
    """What a comparison trains on; `task` builds it.

    The division is drawn from its own seed, so that all runs of a comparison share it.

    Parameters
    ----------
    data, partition, model
        Words, as on the command line.
    partition_options, model_options
        Settings of the partition and of the model that do not stand in the word.
    partition_seed
        Decides how data is divided.
    importance
        What clients count for: by ``"size"``, all ``"equal"``, or one number each.

    Examples
    --------
    >>> Problem("digits", "iid:n=5", model="mlp:hidden=20").task().sizes
    array([289, 289, 288, 288, 288])
    """

    data: str = "digits"
    partition: str = "one-class-per-client"
    partition_options: Mapping[str, Any] = field(default_factory=dict)
    model: str = "softmax"
    model_options: Mapping[str, Any] = field(default_factory=dict)
    partition_seed: int = 0
    importance: str | ArrayLike = "size"

    def _parts(self) -> tuple[Prepared, Prepared]:
        model = MODELS.build(self.model, **self.model_options)
        return PARTITIONS.build(self.partition, **self.partition_options), model

    def task(self) -> Task:
        """Load, divide and set up the model."""
        divide, model = self._parts()
        dataset = data.load(self.data)
        rng = stream(self.partition_seed, "partition")
        division = divide(y=dataset.y_train, rng=rng, groups=dataset.groups_train)
        wanted = importance_of(self.importance, division.sizes)
        given = {} if wanted is None else {"importance": wanted}
        made: Task = model(dataset, division, **given)
        return made

    def settings(self) -> dict[str, Any]:
        """In plain values, to be kept with the runs; parts by their words, with all settings."""
        divide, model = self._parts()
        words = {"partition": divide.spec, "model": model.spec}
        kept = {key: value for key, value in asdict(self).items() if not key.endswith("options")}
        if not isinstance(self.importance, str):
            kept["importance"] = np.asarray(self.importance).tolist()
        return kept | words
