"""A learning problem in words: which data, divided how, learnt by which model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fedcohort import data
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
        Settings of the partition and the model, where they do not stand in the word.
    partition_seed
        Decides how data is divided.

    Examples
    --------
    >>> Problem("digits", "iid:n=5").task().sizes
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
        model = MODELS.build(self.model, **self.model_options)
        divide = PARTITIONS.build(self.partition, **self.partition_options)
        dataset = data.load(self.data)
        rng = stream(self.partition_seed, "partition")
        division = divide(y=dataset.y_train, rng=rng, groups=dataset.groups_train)
        made: Task = model(dataset, division)
        return made

    def settings(self) -> dict[str, Any]:
        """In plain values, to be kept with the runs."""
        return asdict(self)
