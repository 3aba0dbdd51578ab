"""Files of the explorer that are made when the site is built."""

from __future__ import annotations


def files() -> dict[str, str]:
    """Nothing yet."""
    return {}
