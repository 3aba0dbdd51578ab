"""An old name: tasks are in `fedcohort.learning`."""

import warnings
from typing import Any

from fedcohort import learning


def __getattr__(name: str) -> Any:
    if name not in learning.__all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    said = (
        f"fedcohort.simulation's tasks and work are fedcohort.learning; import {name} from there."
    )
    warnings.warn(said, DeprecationWarning, stacklevel=2)
    return getattr(learning, name)
