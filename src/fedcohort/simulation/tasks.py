"""An old name: tasks are in `fedcohort.learning`."""

import warnings
from typing import Any

from fedcohort import learning


def __getattr__(name: str) -> Any:
    if name not in learning.__all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    warnings.warn(
        f"{__name__} has become fedcohort.learning; import {name} from there.",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(learning, name)
