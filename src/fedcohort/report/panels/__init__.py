"""The panels of the report: one per file, found by itself, in the order of their places.

Other packages add theirs through the entry point group ``fedcohort.panels``.
"""

from __future__ import annotations

from fedcohort.core.registry import Kind
from fedcohort.report.panels.base import Content, Panel, Shown

__all__ = ["PANELS", "Content", "Panel", "Shown"]

PANELS: Kind[Panel] = Kind("panel", __name__, Panel)
