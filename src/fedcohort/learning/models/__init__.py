"""Models by name, one file each; other packages add theirs as ``fedcohort.models``."""

from typing import Any

from fedcohort.core.registry import Kind
from fedcohort.learning.task import Task

MODELS: Kind[Any] = Kind(
    "model",
    __name__,
    Task,
    given=("x_train", "y_train", "x_test", "y_test", "clients", "classes", "importance"),
    make="from_partition",
)
