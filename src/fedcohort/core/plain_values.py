"""Values as JSON has them."""

from __future__ import annotations

import math
from typing import Any


def for_json(value: Any) -> Any:
    """The same, with None for numbers that are not finite: JSON has no word for those.

    >>> for_json({"epsilon": float("inf"), "curve": ((0.5, 1.5), (1.0, float("inf")))})
    {'epsilon': None, 'curve': ((0.5, 1.5), (1.0, None))}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: for_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [for_json(each) for each in value]
    return tuple(for_json(each) for each in value) if isinstance(value, tuple) else value
