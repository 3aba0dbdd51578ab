"""Old public names, which work for one more version and say what they are called now."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module whose names have changed: old name to new name."""

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        said = f"{module}.{name} has become {module}.{names[name]}."
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return look_up
