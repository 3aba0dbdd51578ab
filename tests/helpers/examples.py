"""Fewer hypothesis examples, for tests of which one example takes long."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

USUAL = 50
"""The number of examples that `make test` tries."""


def few(number: int, **others: Any) -> settings:
    """Return settings with `number` examples in `make test`, and as much more as all elsewhere."""
    return settings(max_examples=number * settings.default.max_examples // USUAL, **others)
