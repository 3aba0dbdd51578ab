"""What the settings of a run must be where a report reads them, checked when a file is read.

Runs and run folders may come from elsewhere. A setting that nobody reads may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedcohort.core import shaped
from fedcohort.core.errors import BadInput

ROUND_LIMIT = 10_000_000
"""The most rounds that a run can have."""
RUN: Mapping[str, Any] = {
    "scheme": str, "label": str, "seed": int, "run_seed": int, "partition": int, "rounds": int,
    "parameters": dict[str, Any], "availability": dict[str, Any], "privacy": dict[str, Any] | None,
    "hardened": list[str] | None, "withdrawn": list[str], "own parts": list[str],
    "dimension": int,
}  # fmt: skip
"""Settings of one run."""
FOLDER: Mapping[str, Any] = {
    "schemes": dict[str, str], "seeds": list[int], "partitions": list[int], "rounds": int,
    "code": dict[str, str], "fingerprint": str, "fingerprints": dict[str, str],
    "options": dict[str, Any], "target": float | None, "crossing": str | None,
    "reference": str | None, "validation": float | None,
}  # fmt: skip
"""Settings of a folder of runs."""
_COUNTS = {"rounds": ROUND_LIMIT, "dimension": 2**62}


def check(settings: Any, declared: Mapping[str, Any]) -> None:
    """Refuse settings of another type than declared, or numbers out of their range."""
    shaped.check("settings", settings, dict[str, Any], {})
    for name, hint in declared.items():
        if name in settings:
            shaped.check(name, settings[name], hint, {})
    for name, most in _COUNTS.items():
        if name in declared and not 0 <= settings.get(name, 0) <= most:
            raise BadInput(f"'{name}' has a number outside its range")
