"""Old public names, which work for one more version and say what they are called now."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

PARTS = {"server": "optimiser", "estimator": "aggregator"}
"""What parts of a server were called in arguments and in settings that were saved."""


def renamed(module: str, names: Mapping[str, str], stacklevel: int = 2) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module whose names have changed: old name to new name."""

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        said = f"{module}.{name} has become {module}.{names[name]}."
        warnings.warn(said, DeprecationWarning, stacklevel)
        return getattr(sys.modules[module], names[name])

    return look_up


def renamed_keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that an older version may have written, under the names of now.

    >>> renamed_keys({"server": "adam", "seed": 1})
    {'optimiser': 'adam', 'seed': 1}
    """
    return {PARTS.get(key, key): value for key, value in settings.items()}
