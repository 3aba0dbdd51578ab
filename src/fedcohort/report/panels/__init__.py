"""The panels of the report: one per file, found by itself, in the order of their places.

Other packages add theirs through the entry point group ``fedcohort.panels``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from fedcohort._internal.errors import FedcohortError, FedcohortWarning
from fedcohort._internal.registry import Kind
from fedcohort.report.panels.base import Content, Paint, Panel, Shown, drawings

__all__ = ["PANELS", "Content", "Paint", "Panel", "Shown", "drawings", "of_each"]

PANELS: Kind[Panel] = Kind("panel", (__name__,), Panel)
T = TypeVar("T")


def of_each(get: Callable[[Panel], T]) -> list[tuple[Panel, T]]:
    """What every panel gives, in their order; one that cannot is left out, with a warning."""
    out = []
    for panel in sorted((cls() for cls in PANELS.all().values()), key=lambda each: each.place):
        try:
            out.append((panel, get(panel)))
        except FedcohortError:
            raise
        except Exception as error:  # one of another package is not to spoil the page
            said = f"The panel '{panel.name}' is left out: {type(error).__name__}: {error}"
            warnings.warn(said, FedcohortWarning, stacklevel=2)
    return out
